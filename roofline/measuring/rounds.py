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
    """One of the backends to compare: its name, as the user wrote it, and what its child is asked to do."""

    name: str
    request: Request


def installed(candidates: Sequence[Candidate], say: Say) -> list[Candidate]:
    """Those whose framework is installed here; the others are named. Raises their error where two do not remain."""
    kept = list(candidates)
    for candidate in candidates:
        try:
            session.ready(candidate.request)
        except RooflineError as error:
            kept.remove(candidate)
            leave_out(candidate.name, error, len(kept), say)
    return kept


def leave_out(name: str, error: RooflineError, left: int, say: Say) -> None:
    """Say why a backend is left out, or raise its error where fewer than two others are left."""
    if left < 2:
        raise error
    say(f"{name} is left out: {error}")


def plan(candidates: Sequence[Candidate], turns: int) -> list[str]:
    """Say what will be measured, and how long that takes at most as far as it is known before the first step."""
    names = ", ".join(candidate.name for candidate in candidates)
    request = candidates[0].request
    steps = f"{request.steps} plain steps" if request.steps else f"plain steps for at most {request.budget:.0f} s"
    told = [f"{len(candidates)} backends: {names}. Each is profiled in a process of its own, which runs {steps}."]
    if turns > 1:
        told.append(f"Then they take turns in fresh processes until it is settled which is faster, {turns} at most.")
    return told


def measure(
    candidates: Sequence[Candidate],
    *,
    say: Say,
    progress: Progress | None = None,
    given: Device | None = None,
) -> dict[int, Profile]:
    """Return the profiles of all that could be measured, by place in `candidates`: two may be alike.

    given: the ceilings that all are put under, None for this machine's. A backend that fails is named and left out; its
    error is raised where two others do not remain.
    """
    running, profiles = list(candidates), dict[int, Profile]()
    for place, candidate in enumerate(candidates):
        say(f"Profiling {candidate.name}.")
        command = profile_command(candidate.request)
        try:
            profiles[place] = session.measure(
                candidate.request, command=command, say=say, progress=progress, given=given
            )
        except RooflineError as error:
            running.remove(candidate)
            leave_out(candidate.name, error, len(running), say)
    return profiles


def profile_command(request: Request) -> str:
    """The `roofline profile` that measures the same: what stands in the profile, folders left out."""
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
