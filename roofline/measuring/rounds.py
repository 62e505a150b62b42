"""Measuring several backends in turns, so that what the machine does meanwhile falls on all of them alike."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from roofline import units
from roofline.core.device import Device
from roofline.core.schema import Profile
from roofline.core.step import Workload
from roofline.errors import RooflineError
from roofline.measuring import session
from roofline.measuring.ceilings import Progress
from roofline.recording.recording import Say
from roofline.recording.request import Request

#: Variables that a first round may have found to be needed (session.measure) and that later rounds must share.
_KEPT = ("OMP_WAIT_POLICY",)


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


def plan(candidates: Sequence[Candidate], rounds: int) -> list[str]:
    """What will be measured, and how long that takes at most as far as it is known before the first step."""
    names = ", ".join(candidate.name for candidate in candidates)
    processes = len(candidates) * rounds
    told = [f"{len(candidates)} backends in {rounds} {'round' if rounds == 1 else 'rounds'}, in turns: {names}."]
    told.append(
        "Round 1 times plain steps, profiles a few and counts one"
        + ("." if rounds == 1 else "; the other rounds time plain steps again, each in a fresh process.")
    )
    request = candidates[0].request
    steps = f"{request.steps} plain steps" if request.steps else f"plain steps for at most {request.budget:.0f} s"
    told.append(f"Expected: {processes} processes, each of which loads its framework and runs {steps}.")
    return told


def measure(
    candidates: Sequence[Candidate],
    *,
    rounds: int,
    say: Say,
    progress: Progress | None = None,
    given: Device | None = None,
) -> dict[int, Profile]:
    """The profiles of all that could be measured, by place in `candidates`: two may be alike.

    given: the ceilings that all are put under, None for this machine's.
    rounds: how often each is timed, in the order A B C, A B C, ...; the first round of each also profiles and counts.
    A backend that fails in it is named and left out; its error is raised where two others do not remain. One that
    fails later keeps the rounds it has.
    """
    running, profiles = list(enumerate(candidates)), dict[int, Profile]()
    for number in range(1, rounds + 1):
        began = time.monotonic()
        for place, candidate in list(running):
            name, request = candidate.name, candidate.request
            say(f"Round {number} of {rounds}: {name}.")
            try:
                if number == 1:
                    command = profile_command(request, rounds)
                    profiles[place] = session.measure(
                        request, command=command, rounds=1, say=say, progress=progress, given=given
                    )
                else:
                    profiles[place] = _with_process(profiles[place], _steps(request, profiles[place]))
            except RooflineError as error:
                if number == 1:
                    running.remove((place, candidate))
                    leave_out(name, error, len(running), say)
                else:
                    say(f"{name} has no round {number}: {error}")
        took = time.monotonic() - began
        if number < rounds:
            left = rounds - number
            more = "the last one takes" if left == 1 else f"each of the {left} others takes"
            say(f"Round {number} took {units.seconds(took)}; {more} {'less' if number == 1 else 'about as long'}.")
    return profiles


def _steps(request: Request, profile: Profile) -> tuple[float, ...]:
    """Plain steps [s] of one more process, under the variables that the first one ran with."""
    variables = {name: profile.environment[name] for name in _KEPT if name in profile.environment}
    variables = {name: value for name, value in variables.items() if name not in os.environ}
    backend, request = session.ready(request)
    return session.record(session.plainly(request), backend, variables).wall.steps


def _with_process(profile: Profile, steps: tuple[float, ...]) -> Profile:
    wall = msgspec.structs.replace(profile.wall, processes=(*profile.wall.processes, steps))
    return msgspec.structs.replace(profile, wall=wall)


def profile_command(request: Request, rounds: int) -> str:
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
    words += ["--rounds", str(rounds)] if rounds > 1 else []
    return shlex.join(words)
