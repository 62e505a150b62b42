"""Run the experiments of comparison/proof: one switch turned, profiled once, then in turns with the original."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import msgspec

from roofline import plugins
from roofline.comparison.proof.proof import Experiment, Proof, cannot, judge, plan, without_switch
from roofline.comparison.ranking import RankedPair
from roofline.comparison.terms import Comparison
from roofline.comparison.turns import MOST
from roofline.core.schema import Profile, slug
from roofline.core.switch import Setting, Switch
from roofline.errors import InputError, RooflineError
from roofline.measuring import session
from roofline.measuring.requests import validate_request
from roofline.measuring.turns import Form, form_of, judge_forms, shared_variables, take_turns
from roofline.recording.backend import load
from roofline.recording.recording import Say
from roofline.recording.request import Request


def prove(
    pair: RankedPair, requests: tuple[Request | str, Request | str], say: Say, *, most_turns: int = MOST
) -> tuple[Proof, ...]:
    """Turn each switch that belongs to rows of the account, and measure the effect; in the order of the rows.

    requests: of the two runs, or in words why that run cannot be run again. An experiment that cannot be run states the
    reason in its proof; nothing is raised for it.
    """
    comparison = pair.comparison
    profiles = comparison.a.profile, comparison.b.profile
    # The threads of all forms wait alike.
    variables = shared_variables(profiles)
    originals = {
        letter: request if isinstance(request, str) else form_of(name, profile, request, variables)
        for letter, name, profile, request in zip("ab", pair.names, profiles, requests, strict=True)
    }
    trials = [
        _trial(experiment, originals[experiment.run], comparison, say)
        for experiment in plan(comparison, pair.account, _switches, pair.names)
    ]
    pairs = [(trial.original, trial.flipped) for trial in trials if isinstance(trial, _Trial)]
    if pairs:
        take_turns(list(dict.fromkeys(chain.from_iterable(pairs))), pairs, say, most_turns=most_turns)
    return tuple(trial if isinstance(trial, Proof) else _proof(pair, trial) for trial in trials)


@dataclass(frozen=True, slots=True)
class _Trial:
    """Hold an experiment with a turned switch: the form without it, the flipped one, and the profile of the latter."""

    experiment: Experiment
    original: Form
    flipped: Form
    profile: Profile


def _trial(experiment: Experiment, original: Form | str, comparison: Comparison, say: Say) -> _Trial | Proof:
    """Profile the form with a switch turned; return the proof where that cannot be, before anything is timed.

    original: the form without it, or why it cannot be run again.
    """
    setting = experiment.setting
    if setting is None:
        return without_switch(experiment)
    if isinstance(original, str):
        return cannot(experiment, f"This run cannot be run again. {original}")
    recorded = comparison.a if experiment.run == "a" else comparison.b
    name = f"{experiment.name} ({setting.text})"
    say(f"Profiling {name}.")
    try:
        request = _turn_switch(original.request, setting)
        variables = {**original.variables, **setting.variables}
        profile = _profiled(msgspec.structs.replace(request, steps=None, api=None), variables, recorded.profile)
    except RooflineError as error:
        return cannot(experiment, str(error))
    return _Trial(experiment, original, Form(name, request, variables, original.expected), profile)


def _proof(pair: RankedPair, trial: _Trial) -> Proof:
    experiment, original, flipped = trial.experiment, trial.original, trial.flipped
    if original.why or flipped.why:
        return cannot(experiment, original.why or flipped.why)
    paired = judge_forms(original, flipped)
    if paired is None:
        return cannot(experiment, "There were too few turns.")
    try:
        return judge(experiment, pair.comparison, pair.account, original.measured(), trial.profile, paired)
    except RooflineError as error:
        return cannot(experiment, str(error))


def _switches(profile: Profile) -> Sequence[Switch]:
    """List the switches that can be turned in a run; none of an unknown backend, which a profile may name."""
    if profile.backend not in plugins.names("roofline.backends"):
        return ()
    backend = load(profile.backend)
    return backend.own_switches if profile.own_step else backend.switches


def _profiled(request: Request, variables: dict[str, str], recorded: Profile) -> Profile:
    """Profile a form under the ceilings of the recorded run.

    Raises InputError where a compiler that was turned on compiled nothing.
    """
    recording = session.record_whole(request, load(request.backend), variables)
    if request.turned and "nothing-compiled" in map(slug, recording.flags):
        raise InputError("No part of this step was compiled, so there is nothing to compare.")
    return session.to_profile(msgspec.structs.replace(recording, ceilings={}), request, recorded.device, "")


def _turn_switch(original: Request, setting: Setting) -> Request:
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
    return validate_request(turned)
