"""Runs what comparison/proof plans: a run with one switch turned, profiled once and then in turns with the original."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from roofline import plugins
from roofline.comparison.proof.proof import Experiment, Proof, cannot, judge, plan, without_switch
from roofline.comparison.ranking import RankedPair
from roofline.comparison.turns import MOST, judge_turns
from roofline.core.schema import Profile, slug
from roofline.core.switch import Setting, Switch
from roofline.errors import InputError, RooflineError
from roofline.measuring import session
from roofline.measuring.requests import checked
from roofline.measuring.turns import Form, form_of, shared_variables, take_turns, unmeasured
from roofline.recording.backend import load
from roofline.recording.recording import Recording, Say
from roofline.recording.request import Request


def prove(
    pair: RankedPair, requests: tuple[Request | None, Request | None], say: Say, *, most: int = MOST
) -> tuple[Proof, ...]:
    """Turn each switch that answers rows of the account, and measure what that moves; in the order of the rows.

    requests: what the runs are asked for; None: that run cannot be run again. most: turns, at most. What cannot be run
    is said in its proof; nothing is raised for it.
    """
    comparison = pair.comparison
    experiments = plan(comparison, pair.account, _switches, pair.names)
    # All that are measured wait alike.
    variables = shared_variables((comparison.a.profile, comparison.b.profile))
    runs = {
        letter: _Run(analysis.profile, request, name, variables)
        for letter, analysis, request, name in zip(
            "ab", (comparison.a, comparison.b), requests, pair.names, strict=True
        )
    }
    turned = [runs[experiment.run].turn(experiment, say) for experiment in experiments]
    _in_turns([each for each in turned if each is not None], say, most)
    proofs = zip(experiments, turned, strict=True)
    return tuple(_proof(pair, experiment, runs[experiment.run], flipped) for experiment, flipped in proofs)


class _Run:
    """A run that was recorded, and what is measured again of it. original: None where it cannot be run."""

    def __init__(self, profile: Profile, request: Request | None, name: str, variables: dict[str, str]) -> None:
        self.profile, self.variables = profile, variables
        self.original = None if request is None else form_of(name, profile, request, variables)

    def turn(self, experiment: Experiment, say: Say) -> _Flipped | None:
        """Profile the form with a switch turned: what keeps it from being run is known before anything is timed."""
        setting = experiment.setting
        if setting is None:
            return None
        if self.original is None:
            return _Flipped(why="This run cannot be run again.")
        name = f"{experiment.name} ({setting.text})"
        say(f"Profiling {name}.")
        try:
            request = _with(self.original.request, setting)
            variables = {**self.variables, **setting.variables}
            profile = _profiled(msgspec.structs.replace(request, steps=None, api=None), variables, self.profile)
        except RooflineError as error:
            return _Flipped(why=str(error))
        expected = self.original.expected
        return _Flipped(self.original, Form(name, request, variables, expected), profile)


@dataclass(frozen=True, slots=True)
class _Flipped:
    """A form with a switch turned, its original, and its profile; why: what keeps it from being measured."""

    original: Form | None = None
    form: Form | None = None
    profile: Profile | None = None
    why: str = ""


def _in_turns(turned: Sequence[_Flipped], say: Say, most: int) -> None:
    """Let all forms take turns, each flipped one against its original."""
    forms: list[Form] = []
    pairs = []
    for flipped in turned:
        if flipped.original is not None and flipped.form is not None:
            if flipped.original not in forms:
                forms.append(flipped.original)
            forms.append(flipped.form)
            pairs.append((forms.index(flipped.original), len(forms) - 1))
    if pairs:
        take_turns(forms, pairs, say, most=most)


def _proof(pair: RankedPair, experiment: Experiment, run: _Run, flipped: _Flipped | None) -> Proof:
    if flipped is None:
        return without_switch(experiment)
    original, form, profile = flipped.original, flipped.form, flipped.profile
    if original is None or form is None or profile is None:
        return cannot(experiment, flipped.why)
    if original.why or form.why:
        return cannot(experiment, original.why or form.why)
    paired = judge_turns(original.turns(""), form.turns(""))
    first = next((recording for recording in original.recordings if recording is not None), None)
    if paired is None or first is None:
        return cannot(experiment, "There were too few turns.")
    try:
        before = unmeasured(first, original.request)
        return judge(experiment, pair.comparison, pair.account, before, profile, paired)
    except RooflineError as error:
        return cannot(experiment, str(error))


def _switches(profile: Profile) -> Sequence[Switch]:
    """Return those that can be turned in a run; none of a backend that is not here, which a profile may name."""
    if profile.backend not in plugins.names("roofline.backends"):
        return ()
    backend = load(profile.backend)
    return backend.own_switches if profile.own_step else backend.switches


def _profiled(request: Request, variables: dict[str, str], beside: Profile) -> Profile:
    """Profile a form under the ceilings of the run that it is a form of.

    Raises InputError where a compiler that was turned on compiled nothing.
    """
    recording = _record(request, variables)
    if request.turned and "nothing-compiled" in map(slug, recording.flags):
        raise InputError("Nothing of this step was compiled, so that compiling it shows nothing.")
    return session.to_profile(msgspec.structs.replace(recording, ceilings={}), request, beside.device, "")


def _record(request: Request, variables: dict[str, str]) -> Recording:
    """Return what a process recorded that times, profiles and counts a step."""
    return session.record_whole(request, load(request.backend), variables)


def _with(original: Request, setting: Setting) -> Request:
    """Return the request with one switch turned. Raises InputError where the backend has no such value."""
    workload = original.workload
    if setting.precision is not None:
        workload = replace(workload, precision=setting.precision)
    if setting.options is not None:
        workload = replace(workload, options=dict(setting.options))
    turned = msgspec.structs.replace(
        original,
        workload=workload,
        backend=original.backend if setting.backend is None else setting.backend,
        threads=original.threads if setting.threads is None else setting.threads,
        turned=dict(setting.in_step),
    )
    return checked(turned)
