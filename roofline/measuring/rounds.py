"""Profile a model on several backends. Their times are compared in turns afterwards (`turns`)."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from roofline.core.device import Device
from roofline.core.schema import Profile
from roofline.core.step import Workload
from roofline.errors import RooflineError
from roofline.measuring import session
from roofline.measuring.ceilings import Progress
from roofline.recording.recording import Say
from roofline.recording.request import Request


@dataclass(frozen=True, slots=True)
class Candidate:
    """Hold a backend to compare: its name, as the user wrote it, and the request to its child."""

    name: str
    request: Request


def keep_installed(candidates: Sequence[Candidate], say: Say) -> list[Candidate]:
    """Drop candidates whose framework is missing, and name them. Raises their error if fewer than two remain."""
    remaining = list(candidates)
    for candidate in candidates:
        try:
            session.ready(candidate.request)
        except RooflineError as error:
            remaining.remove(candidate)
            leave_out(candidate.name, error, len(remaining), say)
    return remaining


def leave_out(name: str, error: RooflineError, remaining: int, say: Say) -> None:
    """Say why a backend is left out, or raise its error where fewer than two others remain."""
    if remaining < 2:
        raise error
    say(f"{name} is left out: {error}")


def plan(candidates: Sequence[Candidate], turns: int) -> list[str]:
    """Describe the measurement in lines, with its largest time as far as it is known before the first step."""
    names = ", ".join(candidate.name for candidate in candidates)
    request = candidates[0].request
    steps = f"{request.steps} plain steps" if request.steps else f"plain steps for at most {request.budget:.0f} s"
    lines = [f"{len(candidates)} backends: {names}. Each is profiled in a process of its own, which runs {steps}."]
    if turns > 1:
        lines.append(f"Then they take turns in fresh processes until it is settled which is faster, {turns} at most.")
    return lines


def measure(
    candidates: Sequence[Candidate],
    *,
    say: Say,
    progress: Progress | None = None,
    given_device: Device | None = None,
) -> dict[int, Profile]:
    """Profile all candidates; return the profiles by index in `candidates`, since two may be alike.

    given_device: the ceilings of all, None for this machine's. A backend that fails is named and left out; its error is
    raised where two others do not remain.
    """
    running, profiles = list(candidates), dict[int, Profile]()
    for place, candidate in enumerate(candidates):
        say(f"Profiling {candidate.name}.")
        command = profile_command(candidate.request)
        try:
            profiles[place] = session.measure(
                candidate.request, command=command, say=say, progress=progress, given_device=given_device
            )
        except RooflineError as error:
            running.remove(candidate)
            leave_out(candidate.name, error, len(running), say)
    return profiles


def profile_command(request: Request) -> str:
    """Write the `roofline profile` command that measures the same, for the profile; without folders."""
    asked, backend = request.workload, request.backend
    if asked.options:
        backend += ":" + ",".join(f"{name}={value}" for name, value in asked.options.items())
    words = ["roofline", "profile", asked.model, "--backend", backend]
    usual = Workload(model=asked.model)
    for name in ("mode", "batch", "seq", "new_tokens", "size", "layers", "precision"):
        if getattr(asked, name) != getattr(usual, name):
            words += [f"--{name.replace('_', '-')}", str(getattr(asked, name))]
    words += ["--device", asked.device]
    words += [] if request.threads is None else ["--threads", str(request.threads)]
    words += [] if request.steps is None else ["--steps", str(request.steps)]
    words += [] if asked.input == usual.input else ["--input", asked.input]
    words += [] if asked.optimizer else ["--no-optimizer"]
    return shlex.join(words)
