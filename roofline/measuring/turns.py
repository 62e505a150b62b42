"""Run steps in turns in fresh processes, A B B A A B, until it is settled which is faster (docs/comparing.md).

Every second turn has the opposite order, so that a machine that gets slower slows all steps alike.
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

#: Time of a process before its first step, about [s]: only for the announced plan.
_START = 5.0
#: Time of all steps of a process [s], and the largest number of steps: within seconds a machine that others use gets
#: faster and slower.
_ENOUGH, _STEPS = 2.0, 200


@dataclass(slots=True, eq=False)
class Form:
    """Hold a step that takes turns. expected: time of a process of it, about [s].

    recordings: of its processes, by turn; None: it had none in that turn. why: the reason why it cannot be measured.
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
        return [None if recording is None else median(recording.wall.steps) for recording in self.recordings]

    def turns(self, token: str = "") -> Turns:
        """Return its turns as a profile saves them."""
        on_cpu = self.request.workload.device == "cpu"
        return Turns(
            token=token,
            medians=tuple(self.medians),
            waited=tuple(None if run is None else waited_for_a_core(run.conditions) for run in self.recordings),
            disturbed=tuple(on_cpu and run is not None and _is_disturbed(run) for run in self.recordings),
        )

    def measure(self) -> None:
        """Time plain steps in one more process. Where that fails, it is not measured again."""
        try:
            request = msgspec.structs.replace(session.plain_request(self.request), quiet=True)
            self.recordings.append(session.record(request, load(request.backend), self.variables))
        except RooflineError as error:
            self.recordings.append(None)
            self.why = str(error)

    def measured(self) -> Profile:
        """Return its first process as a profile, without ceilings: neither times nor work depend on them."""
        recording = next(filter(None, self.recordings))
        device = Device(name="", kind=self.request.workload.device, ceilings={})
        return session.to_profile(recording, self.request, device, "")


def form_of(name: str, profile: Profile, request: Request, variables: dict[str, str]) -> Form:
    """Make the form of a recorded step, with enough steps for a sure median."""
    step = median(profile.wall.steps)
    steps = max(FEWEST, min(_STEPS, math.ceil(_ENOUGH / step)))
    expected = _START + (profile.wall.first or 0.0) + steps * step
    return Form(name, msgspec.structs.replace(request, steps=steps), variables, expected)


def take_turns(forms: Sequence[Form], pairs: Sequence[tuple[Form, Form]], say: Say, *, most_turns: int = MOST) -> None:
    """Take turns until each pair of forms is settled, or more turns would not settle it; `most_turns` at most.

    A form whose pairs are done takes no more turns.
    """
    _announce(forms, say, most_turns)
    for number in range(most_turns):
        if all(_is_done(*pair) for pair in pairs):
            break
        for form in forms[:: 1 if number % 2 == 0 else -1]:
            if all(_is_done(*pair) for pair in pairs if form in pair):
                form.recordings.append(None)
            else:
                form.measure()
        times = [f"{form.name} {seconds(form.medians[number])}" for form in forms if form.recordings[number]]
        say(f"Turn {number + 1} of at most {most_turns}: {', '.join(times) or 'nothing could be measured'}.")
    for a, b in pairs:
        say(f"{a.name} against {b.name}: {_outcome(a, b)}")


def judge_forms(a: Form, b: Form) -> Paired | None:
    """Judge the turns of two forms; None where they took too few."""
    return judge_turns(a.turns(), b.turns())


def _announce(forms: Sequence[Form], say: Say, most_turns: int) -> None:
    turn, least = sum(form.expected for form in forms), min(FEWEST + 1, most_turns)
    cost, time = f"{most_turns} {'turn' if most_turns == 1 else 'turns'}", seconds(most_turns * turn)
    if most_turns > least:
        cost, time = f"{least} to {cost}", f"{seconds(least * turn)} to {time}"
    say(f"In turns until settled: {', '.join(form.name for form in forms)}, a fresh process each time.")
    say(f"Expected: {cost} of {len(forms)} processes, about {time}.")


def _is_done(a: Form, b: Form) -> bool:
    """Tell whether two forms are done: one cannot be measured, or they are settled or would not settle."""
    paired = judge_forms(a, b)
    return bool(a.why or b.why) or (paired is not None and (paired.settled or paired.hopeless))


def _outcome(a: Form, b: Form) -> str:
    paired = judge_forms(a, b)
    if a.why or b.why:
        return f"not measured in turns. {a.why or b.why}"
    if paired is None:
        return "too few turns to settle anything."
    if any(paired.busy):
        return "not settled, as other programs used the processor."
    return f"{'settled' if paired.settled else 'not settled'} in {paired.number} turns."


def settle_runs(
    names: Sequence[str], profiles: Sequence[Profile], requests: Sequence[Request], say: Say, *, most_turns: int = MOST
) -> list[Profile]:
    """Run recorded steps in turns, each against the fastest; return their profiles with these turns.

    A profile stays as it is where its step could not be run, or has changed since it was recorded, which is reported.
    """
    if most_turns < 1:
        return list(profiles)
    variables = shared_variables(profiles)
    forms = [form_of(*run, variables) for run in zip(names, profiles, requests, strict=True)]
    fastest = forms[min(range(len(forms)), key=lambda number: median(profiles[number].wall.steps))]
    take_turns(forms, [(form, fastest) for form in forms if form is not fastest], say, most_turns=most_turns)
    token = secrets.token_hex(8)
    return [_with_turns(profile, form, token, say) for profile, form in zip(profiles, forms, strict=True)]


def shared_variables(profiles: Sequence[Profile]) -> dict[str, str]:
    """Return the variables for all runs, so that their threads wait alike; without those that the user set."""
    variables = (variable for profile in profiles for variable in variables_of(profile).items())
    return {name: value for name, value in variables if name not in os.environ}


def _with_turns(profile: Profile, form: Form, token: str, say: Say) -> Profile:
    steps = [recording.wall.steps for recording in form.recordings if recording is not None]
    changed = changed_since(profile, form.measured()) if steps else []
    if changed:
        say(f"{form.name} is no longer what was recorded: {', '.join(changed)} changed; its turns are left out.")
    if changed or not steps:
        return profile
    wall = profile.wall
    wall = msgspec.structs.replace(wall, processes=(*wall.processes, *steps), turns=(*wall.turns, form.turns(token)))
    return msgspec.structs.replace(profile, wall=wall)


def _is_disturbed(recording: Recording) -> bool:
    return contention.was_contended(recording.conditions, int(recording.environment.get("threads", 1)))
