"""Run steps in turns in fresh processes, A B B A A B, until it is settled which of them is faster.

Every second turn has the opposite order, so that a machine that gets slower slows all steps alike. What it costs is
said before it starts; it is bounded, and ends where it is settled or where more turns would not settle it.
"""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

import msgspec

from roofline.analysis.bootstrap import FEWEST
from roofline.comparison.proof.same_run import changed_since
from roofline.comparison.turns import MOST, Paired, judge_turns
from roofline.core.device import Device
from roofline.core.executor import waited_for_a_core
from roofline.core.schema import Profile, Turns
from roofline.errors import RooflineError
from roofline.measuring import session
from roofline.measuring.requests import variables_of
from roofline.recording import contention
from roofline.recording.backend import load
from roofline.recording.recording import Recording, Say
from roofline.recording.request import Request
from roofline.units import seconds

#: What a process takes before its first step, about [s]: only for the plan that is told.
_START = 5.0
#: Steps of a process take so long in all [s], of a short one no more than so many: within seconds a machine that others
#: use gets faster and slower.
_ENOUGH, _STEPS = 2.0, 200


@dataclass(slots=True, eq=False)
class Form:
    """A step that takes turns. expected: what a process of it takes, about [s].

    recordings: of its processes, by turn; None: it had none in that turn. why: what keeps it from being measured.
    """

    name: str
    request: Request
    variables: dict[str, str]
    expected: float = _START
    recordings: list[Recording | None] = field(default_factory=list)
    why: str = ""

    @property
    def medians(self) -> list[float | None]:
        """Return the median step of each turn [s]."""
        return [None if each is None else median(each.wall.steps) for each in self.recordings]

    def turns(self, token: str) -> Turns:
        """Return what a profile keeps of its turns."""
        device = self.request.workload.device
        return Turns(
            token=token,
            medians=tuple(self.medians),
            waited=tuple(None if each is None else waited_for_a_core(each.conditions) for each in self.recordings),
            disturbed=tuple(each is not None and device == "cpu" and _disturbed(each) for each in self.recordings),
        )

    def measure(self) -> None:
        """Time plain steps in one more process. Where that fails, it is not measured again."""
        try:
            request = msgspec.structs.replace(session.plainly(self.request), quiet=True)
            self.recordings.append(_record(request, self.variables))
        except RooflineError as error:
            self.recordings.append(None)
            self.why = str(error)


def form_of(name: str, profile: Profile, request: Request, variables: dict[str, str]) -> Form:
    """Return the form of a step that was recorded: as many steps as make its median sure."""
    step = median(profile.wall.steps)
    steps = max(FEWEST, min(_STEPS, math.ceil(_ENOUGH / step)))
    expected = _START + (profile.wall.first or 0.0) + steps * step
    return Form(name, msgspec.structs.replace(request, steps=steps), variables, expected)


def take_turns(forms: Sequence[Form], pairs: Sequence[tuple[int, int]], say: Say, *, most: int = MOST) -> None:
    """Take turns until each pair of forms is settled, or more turns would not settle it; `most` turns at most.

    pairs: numbers of two forms. A form whose pairs are done takes no more turns.
    """
    _announce(forms, say, most)
    for number in range(most):
        active = _active(forms, pairs, number)
        if not active:
            break
        for place in range(len(forms))[:: 1 if number % 2 == 0 else -1]:
            if place in active and any(place in pair for pair in _running(forms, pairs)):
                forms[place].measure()
            else:
                forms[place].recordings.append(None)
        times = [f"{form.name} {seconds(form.medians[number])}" for form in forms if form.recordings[number]]
        say(f"Turn {number + 1} of at most {most}: {', '.join(times) or 'nothing could be measured'}.")
    for a, b in pairs:
        say(_outcome(forms[a], forms[b]))


def _announce(forms: Sequence[Form], say: Say, most: int) -> None:
    each = sum(form.expected for form in forms)
    least = min(FEWEST, most)
    cost = f"{least} to {most} turns" if most > least else f"{most} {'turn' if most == 1 else 'turns'}"
    time = seconds(least * each) if most == least else f"{seconds(least * each)} to {seconds(most * each)}"
    say(f"In turns until settled: {', '.join(form.name for form in forms)}, a fresh process each time.")
    say(f"Expected: {cost} of {len(forms)} processes, about {time}.")


def _active(forms: Sequence[Form], pairs: Sequence[tuple[int, int]], number: int) -> set[int]:
    """Return the forms that are needed in the next turn."""
    active: set[int] = set()
    for a, b in _running(forms, pairs):
        judged = _judged(forms[a], forms[b]) if number >= FEWEST else None
        if judged is None or not (judged.settled or judged.hopeless):
            active |= {a, b}
    return active


def _running(forms: Sequence[Form], pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """List the pairs of which neither form has failed."""
    return [(a, b) for a, b in pairs if not (forms[a].why or forms[b].why)]


def _judged(a: Form, b: Form) -> Paired | None:
    return judge_turns(a.turns(""), b.turns(""))


def _outcome(a: Form, b: Form) -> str:
    names = f"{a.name} against {b.name}"
    if a.why or b.why:
        return f"{names}: not measured in turns. {a.why or b.why}"
    judged = _judged(a, b)
    if judged is None:
        return f"{names}: too few turns to settle anything."
    turns = f"{judged.number} turns"
    if any(judged.busy):
        return f"{names}: not settled, as other programs used the processor."
    return f"{names}: {'settled' if judged.settled else 'not settled'} in {turns}."


def settle_runs(
    names: Sequence[str], profiles: Sequence[Profile], requests: Sequence[Request], say: Say, *, most: int = MOST
) -> list[Profile]:
    """Run steps that were recorded in turns, each against the fastest; return their profiles with these turns.

    A profile stays as it is where its step could not be run, or is no longer what was recorded, which is said.
    """
    if most < 1:
        return list(profiles)
    variables = shared_variables(profiles)
    forms = [form_of(*each, variables) for each in zip(names, profiles, requests, strict=True)]
    fastest = min(range(len(profiles)), key=lambda number: median(profiles[number].wall.steps))
    take_turns(forms, [(number, fastest) for number in range(len(forms)) if number != fastest], say, most=most)
    token = secrets.token_hex(8)
    return [_with_turns(profile, form, token, say) for profile, form in zip(profiles, forms, strict=True)]


def shared_variables(profiles: Sequence[Profile]) -> dict[str, str]:
    """Return the variables under which all are measured: their threads wait alike. What the user set holds anyway."""
    found: dict[str, str] = {}
    for profile in profiles:
        found |= variables_of(profile)
    return {name: value for name, value in found.items() if name not in os.environ}


def _with_turns(profile: Profile, form: Form, token: str, say: Say) -> Profile:
    recordings = [recording for recording in form.recordings if recording is not None]
    if not recordings:
        return profile
    changed = changed_since(profile, unmeasured(recordings[0], form.request))
    if changed:
        say(f"{form.name} is no longer what was recorded: {', '.join(changed)} changed; its turns are left out.")
        return profile
    wall = profile.wall
    steps = (recording.wall.steps for recording in recordings)
    wall = msgspec.structs.replace(wall, processes=(*wall.processes, *steps), turns=(*wall.turns, form.turns(token)))
    return msgspec.structs.replace(profile, wall=wall)


def unmeasured(recording: Recording, request: Request) -> Profile:
    """Return the profile of a recording, without ceilings: neither times nor work depend on them."""
    return session.to_profile(recording, request, Device(name="", kind=request.workload.device, ceilings={}), "")


def _disturbed(recording: Recording) -> bool:
    return contention.was_contended(recording.conditions, int(recording.environment.get("threads", 1)))


def _record(request: Request, variables: dict[str, str]) -> Recording:
    """Return what one process recorded."""
    return session.record(request, load(request.backend), variables)
