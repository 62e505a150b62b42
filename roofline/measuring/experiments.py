"""Runs what comparison/proof plans: both runs, and each with one switch turned, in turns, in fresh processes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import msgspec

from roofline import plugins
from roofline.analysis.analysis import Analysis
from roofline.comparison.account.findings import Finding
from roofline.comparison.causes.facts import run_names
from roofline.comparison.proof import headline
from roofline.comparison.proof.experiment import Experiment, Measured, Proof, cannot, judge, plan, without_switch
from roofline.comparison.proof.same_run import counted_work
from roofline.comparison.terms import Comparison
from roofline.core.device import Device
from roofline.core.schema import Profile, slug
from roofline.core.switch import Setting, Switch
from roofline.errors import InputError, RooflineError
from roofline.measuring import session
from roofline.measuring.requests import checked, request_of, variables_of
from roofline.recording.backend import load
from roofline.recording.recording import Recording, Say
from roofline.recording.request import Request
from roofline.units import seconds

#: How often the original and the flipped forms take turns.
ROUNDS = 3
#: Steps of a process that take less than this in all [s] are more, up to so many. By choice: a tenth of what it takes.
_ENOUGH, _MOST_STEPS = 0.5, 100
#: What a process takes before its first step, about [s]: only for the plan that is told.
_START = 5.0


def prove(
    comparison: Comparison,
    findings: Sequence[Finding],
    say: Say,
    *,
    names: tuple[str, str] | None = None,
    requests: tuple[Request | None, Request | None] = (None, None),
    rounds: int = ROUNDS,
    whole: bool = False,
) -> tuple[Proof, ...]:
    """Take each cause away where there is a switch for it, and measure what that gains; in the order of the findings.

    names: what the runs are called. requests: what the runs were asked for, where the caller knows. whole: the
    difference of the runs comes first, both measured again in the same turns. What cannot be run is said in its proof;
    nothing is raised for it.
    """
    called = names or run_names(comparison)
    experiments = plan(comparison, findings, _switches, called)
    # All that are measured wait alike.
    variables = variables_of(comparison.a.profile) | variables_of(comparison.b.profile)
    runs = {
        letter: _Run(analysis, request, name, variables)
        for letter, analysis, request, name in zip("ab", (comparison.a, comparison.b), requests, called, strict=True)
    }
    for letter, run in runs.items():
        if whole or any(each.run == letter and each.setting for each in experiments):
            run.find(say)
    forms = {n: runs[each.run].turned(each, say) for n, each in enumerate(experiments) if each.setting}
    ready = [form for form in forms.values() if not form.why]
    both = whole and not any(run.why for run in runs.values())
    originals = [run.original for run in runs.values() if both or any(form.of is run for form in ready)]
    _in_turns([*filter(None, originals), *ready], rounds, say)
    proofs = [
        _proof(each, forms[number]) if number in forms else without_switch(each)
        for number, each in enumerate(experiments)
    ]
    if both or (whole and any(run.profile.own_step for run in runs.values())):
        proofs.insert(0, _difference(comparison, called, runs["a"], runs["b"]))
    return headline.beside(proofs, comparison)


def _steps(profile: Profile) -> int:
    """As many plain steps as were recorded; more of short ones, of which a process is done before it has begun."""
    wall = profile.wall
    return max(len(wall.steps), min(_MOST_STEPS, math.ceil(_ENOUGH / median(wall.steps))))


def _switches(profile: Profile) -> Sequence[Switch]:
    """Those that can be turned in a run; none of a backend that is not here, as a profile may come from anywhere."""
    if profile.backend not in plugins.names("roofline.backends"):
        return ()
    backend = load(profile.backend)
    return backend.own_switches if profile.own_step else backend.switches


class _Run:
    """A run that was recorded: what is measured again of it, or why nothing can be."""

    def __init__(self, analysis: Analysis, request: Request | None, name: str, variables: dict[str, str]) -> None:
        self.analysis, self.name, self.why = analysis, name, ""
        self.original: _Form | None = None
        self._request, self._variables = request, variables

    @property
    def profile(self) -> Profile:
        """As it was recorded."""
        return self.analysis.profile

    def find(self, say: Say) -> None:
        """Whether it can be measured again. A step of the user's own is counted: it may be another one by now."""
        try:
            request = request_of(self.profile) if self._request is None else self._request
            request = msgspec.structs.replace(request, steps=_steps(self.profile))
            self.original = _Form(self, request, self._variables, self.name)
            if self.profile.own_step:
                say(f"Counting {self.name}.")
                self.original.count()
                if self.profile.sources != self.original.sources:
                    raise InputError(
                        "What its file imports from its folder has changed since this was measured, so that running it "
                        "proves nothing about it: measure it again."
                    )
        except RooflineError as error:
            self.why = str(error)

    def turned(self, experiment: Experiment, say: Say) -> _Form:
        """The flipped form, its work counted: what keeps it from being run is known before anything is timed."""
        setting = experiment.setting
        assert setting is not None
        name = f"{experiment.name}, {setting.text}"
        if self.original is None or self.why:
            return _Form(self, None, {}, name, self.why)
        say(f"Proving {' and '.join(f.rule for f in experiment.findings)}: {name}.")
        try:
            request = _with(self.original.request, setting)
            form = _Form(self, request, {**self._variables, **setting.variables}, name)
            form.count()
        except RooflineError as error:
            return _Form(self, None, {}, name, str(error))
        return form


class _Form:
    """A step to be measured: of which run, what is asked of its process, and what came of it.

    why: what keeps it from being measured, a sentence.
    """

    def __init__(self, of: _Run, request: Request | None, variables: dict[str, str], name: str, why: str = "") -> None:
        self.of, self._request, self.variables, self.name, self.why = of, request, variables, name, why
        self.times: list[Sequence[float]] = []
        self.contended = False
        self._counted: Profile | None = None
        self._plain: Profile | None = None

    @property
    def request(self) -> Request:
        """What is asked for."""
        assert self._request is not None
        return self._request

    @property
    def profile(self) -> Profile:
        """What is recorded of its first process of plain steps; what only counting tells is from there."""
        assert self._plain is not None
        if self._counted is None:
            return self._plain
        switches = {**self._counted.switches, **self._plain.switches}
        return msgspec.structs.replace(self._plain, mode=self._counted.mode, switches=switches)

    @property
    def sources(self) -> dict[str, str]:
        """What was read for a step of the user's own."""
        return {} if self._counted is None else dict(self._counted.sources)

    @property
    def work(self) -> dict[str, float]:
        """Model FLOPs by phase; empty where nobody counted."""
        return {} if self._counted is None else counted_work(self._counted)

    def count(self) -> None:
        """Count one step in a process. Raises InputError where a compiler that was turned on compiled nothing."""
        recording = _record(msgspec.structs.replace(self.request, count_only=True), self.variables)
        if self.request.turned and "nothing-compiled" in map(slug, recording.flags):
            raise InputError("Nothing of this step was compiled, so that compiling it shows nothing.")
        self._counted = _profile(recording, self.request)

    def measure(self) -> None:
        """Time plain steps in one more process; where that fails it is not measured again."""
        from roofline.recording import contention

        try:
            recording = _record(session.plainly(self.request), self.variables)
        except RooflineError as error:
            self.why = str(error)
            return
        if self.request.workload.device == "cpu":
            threads = int(recording.environment.get("threads", 1))
            self.contended |= contention.was_contended(recording.conditions, threads)
        self.times.append(recording.wall.steps)
        if self._plain is None:
            self._plain = _profile(recording, self.request)


def _in_turns(forms: Sequence[_Form], rounds: int, say: Say) -> None:
    """Every form once per round, each round in the other direction: a machine that slows down slows all alike."""
    if not forms:
        return
    walls = [form.of.profile.wall for form in forms]
    each = [
        _START + (wall.first or 0.0) + _steps(form.of.profile) * median(wall.steps)
        for form, wall in zip(forms, walls, strict=True)
    ]
    say(f"{rounds} rounds of {len(forms)} processes: about {seconds(rounds * sum(each))}.")
    for number in range(rounds):
        for form in forms if number % 2 == 0 else forms[::-1]:
            if not form.why:
                say(f"Round {number + 1} of {rounds}: {form.name}.")
                form.measure()


def _proof(experiment: Experiment, form: _Form) -> Proof:
    """What came of an experiment."""
    original = form.of.original
    why = form.why or (original.why if original else "")
    if original is None or why:
        return cannot(experiment, why)
    return judge(experiment, form.of.analysis, _beside(original, form))


def _difference(comparison: Comparison, names: tuple[str, str], a: _Run, b: _Run) -> Proof:
    """What came of measuring both runs again; where one cannot be, why."""
    for run, name in zip((a, b), names, strict=True):
        why = run.why or (run.original.why if run.original else "")
        if why:
            return headline.cannot(comparison, names, why if a.why == b.why else f"{name}: {why}")
    assert a.original is not None
    assert b.original is not None
    return headline.difference(comparison, names, _beside(a.original, b.original), a.original.work)


def _beside(original: _Form, other: _Form) -> Measured:
    return Measured(
        original=original.times,
        flipped=other.times,
        before=original.profile,
        after=other.profile,
        work=other.work,
        contended=original.contended or other.contended,
    )


def _record(request: Request, variables: dict[str, str]) -> Recording:
    """One process: what it recorded."""
    return session.record(request, load(request.backend), variables)


def _profile(recording: Recording, request: Request) -> Profile:
    """A recording with what was asked for; without ceilings, on which neither times nor work depend."""
    return session.to_profile(recording, request, Device(name="", kind=request.workload.device, ceilings={}), "")


def _with(original: Request, setting: Setting) -> Request:
    """The request with one switch turned. Raises InputError where the backend has no such value."""
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
