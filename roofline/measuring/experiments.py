"""Runs what comparison/proof plans: a run and the same run with one switch turned, in turns, in fresh processes."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import msgspec

from roofline import plugins
from roofline.analysis.analysis import Analysis
from roofline.comparison.causes.findings import Finding
from roofline.comparison.parity.difference import plain
from roofline.comparison.proof.experiment import Experiment, Measured, Proof, cannot, judge, plan, without_switch
from roofline.comparison.proof.same_run import counted_work
from roofline.comparison.terms import Comparison
from roofline.core.device import Device
from roofline.core.schema import Profile, slug
from roofline.core.step import Workload
from roofline.core.switch import Setting, Switch
from roofline.errors import InputError, RooflineError
from roofline.measuring import session
from roofline.recording.backend import load
from roofline.recording.recording import Recording, Say
from roofline.recording.request import Request
from roofline.units import seconds

#: How often the original and the flipped forms take turns.
ROUNDS = 3
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
) -> tuple[Proof, ...]:
    """Take each cause away where there is a switch for it, and measure what that gains; in the order of the findings.

    names: what the runs are called. requests: what the runs were asked for, where the caller knows: a profile does not
    hold a step of the user's own. What cannot be run is said in its proof; nothing is raised for it.
    """
    experiments = plan(comparison, findings, _switches, names)
    runs = {"a": (comparison.a, requests[0]), "b": (comparison.b, requests[1])}
    proofs: dict[int, Proof] = {}
    for run, (analysis, request) in runs.items():
        chosen = {n: each for n, each in enumerate(experiments) if each.run == run and each.setting is not None}
        if chosen:
            found = _prove_run(analysis, request, list(chosen.values()), say, rounds)
            proofs |= dict(zip(chosen, found, strict=True))
    return tuple(
        proofs[number] if number in proofs else without_switch(experiment)
        for number, experiment in enumerate(experiments)
    )


def _switches(backend: str) -> Sequence[Switch]:
    """The switches of a backend; none of one that is not here, as a profile may come from anywhere."""
    if backend not in plugins.names("roofline.backends"):
        return ()
    return load(backend).switches


def _prove_run(
    analysis: Analysis, request: Request | None, experiments: Sequence[Experiment], say: Say, rounds: int
) -> list[Proof]:
    """The proofs of all experiments with one run: they share its original, which is measured again in each round."""
    try:
        original = request_of(analysis.profile) if request is None else request
    except RooflineError as error:
        return [cannot(experiment, str(error)) for experiment in experiments]
    forms: dict[int, _Form] = {}
    proofs: dict[int, Proof] = {}
    for number, experiment in enumerate(experiments):
        try:
            forms[number] = _flipped(original, experiment, analysis.profile, say)
        except RooflineError as error:
            proofs[number] = cannot(experiment, str(error))
    try:
        if forms:
            again = _Form(original, _variables(analysis.profile), experiments[0].name)
            _in_turns(again, list(forms.values()), analysis, rounds, say)
        for number, form in forms.items():
            measured = Measured(
                original=again.times,
                flipped=form.times,
                before=again.profile,
                after=form.profile,
                work=form.work,
                contended=again.contended or form.contended,
            )
            proofs[number] = judge(experiments[number], analysis, measured)
    except RooflineError as error:
        proofs |= {number: cannot(experiments[number], str(error)) for number in forms}
    return [proofs[number] for number in range(len(experiments))]


class _Form:
    """A step to be measured: what is asked of its process, and what came of it."""

    def __init__(self, request: Request, variables: dict[str, str], name: str, work: dict[str, float] | None = None):
        self.request, self.variables, self.name, self.work = request, variables, name, work or {}
        self.times: list[Sequence[float]] = []
        self.contended = False
        self._profile: Profile | None = None

    @property
    def profile(self) -> Profile:
        """What is recorded of its first process."""
        assert self._profile is not None
        return self._profile

    def measure(self) -> None:
        """Time plain steps in one more process."""
        from roofline.recording import contention

        recording = _record(msgspec.structs.replace(self.request, plain_only=True), self.variables)
        if self.request.workload.device == "cpu":
            threads = int(recording.environment.get("threads", 1))
            self.contended |= contention.was_contended(recording.conditions, threads)
        self.times.append(recording.wall.steps)
        if self._profile is None:
            self._profile = _profile(recording, self.request)


def _flipped(original: Request, experiment: Experiment, profile: Profile, say: Say) -> _Form:
    """The flipped form, its work counted. Raises what keeps it from being run, before anything is timed."""
    setting = experiment.setting
    assert setting is not None
    request = _with(original, setting)
    variables = {**_variables(profile), **setting.variables}
    name = f"{experiment.name}, {setting.text}"
    say(f"Proving {' and '.join(f.rule for f in experiment.findings)}: {name}.")
    counted = _record(msgspec.structs.replace(request, count_only=True), variables)
    return _Form(request, variables, name, counted_work(_profile(counted, request)))


def _in_turns(original: _Form, flipped: Sequence[_Form], analysis: Analysis, rounds: int, say: Say) -> None:
    """Every form once per round, each round in the other direction: a machine that slows down slows both alike."""
    forms = [original, *flipped]
    wall = analysis.profile.wall
    each = _START + (wall.first or 0.0) + len(wall.steps) * median(wall.steps)
    say(f"{rounds} rounds of {len(forms)} processes: about {seconds(rounds * len(forms) * each)}.")
    for number in range(rounds):
        for form in forms if number % 2 == 0 else forms[::-1]:
            say(f"Round {number + 1} of {rounds}: {form.name}.")
            form.measure()


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
    )
    return _checked(turned)


def _variables(profile: Profile) -> dict[str, str]:
    """The variable that a measurement on contended cores sets for itself (session.measure), as it was recorded."""
    policy = profile.environment.get("OMP_WAIT_POLICY")
    return {"OMP_WAIT_POLICY": policy} if policy in ("PASSIVE", "ACTIVE") else {}


def request_of(profile: Profile) -> Request:
    """What must be asked for to measure a profile's step again, from what is recorded of it.

    Nothing that a profile names is run but our own models: it may come from anywhere. Raises InputError with the reason
    where its step cannot be run again here.
    """
    if profile.imported is not None or profile.wall.source != "plain":
        raise InputError("It is an import, which holds no step that could be run again.")
    if "in-process" in map(slug, profile.flags):
        raise InputError("It was profiled inside a process of yours, which cannot be run again from here.")
    if ":" in profile.model or profile.model.endswith(".py"):
        raise InputError(
            "Its step is a file of yours, which is not run because a profile names it: "
            "use `roofline compare FILE.py:function --backends ... --prove`."
        )
    try:
        words = shlex.split(profile.command)
    except ValueError:
        words = []
    if any(word == "--python" or word.startswith("--python=") for word in words):
        raise InputError("It was measured in another Python interpreter; compare and prove it from there.")
    threads = profile.environment.get("threads", "")
    asked = {
        "options": dict(profile.options),
        "model": profile.model,
        "mode": profile.mode,
        "batch": profile.batch,
        "seq": profile.seq,
        "size": profile.size,
        "layers": profile.layers,
        "precision": profile.precision,
        "device": profile.device.kind,
        "input": profile.switches.get("input", "device"),
        "optimizer": profile.mode != "train" or "--no-optimizer" not in words,
    }
    try:
        workload = msgspec.convert(asked, Workload)
    except msgspec.ValidationError as error:
        raise InputError(f"What it says of itself cannot be asked for ({plain(str(error))}).") from None
    request = Request(
        backend=profile.backend,
        workload=workload,
        threads=int(threads) if threads.isascii() and threads.isdecimal() else None,
        steps=len(profile.wall.steps),
    )
    _checked(request)
    _check_machine(profile)
    return request


def _checked(request: Request) -> Request:
    """The request, if it is one that the command line would take. Raises InputError otherwise."""
    from roofline.devices import cpu
    from roofline.models import dimensions

    backend = load(request.backend)
    for option, value in request.workload.options.items():
        if value not in backend.options.get(option, ()):
            raise InputError(f"The {request.backend} backend takes no {plain(option)}={plain(value)}.")
    available = len(cpu.affinity())
    if request.threads is None or not 1 <= request.threads <= available:
        raise InputError(f"It takes {request.threads or 'an unknown number of'} threads; there are {available} here.")
    if request.file is None:
        plugins.require(backend.models, request.workload.model, "model")
        dimensions(request.workload)
    return request


def _check_machine(profile: Profile) -> None:
    """Raises InputError for a profile of another device than the one that is here."""
    from roofline.devices import calibration

    kind = profile.device.kind
    if kind not in ("cpu", "cuda"):
        raise InputError(f"A step on {plain(kind)} cannot be run from here.")
    calibration.resolve(kind)
    here = calibration.key(kind, 1)["cpu" if kind == "cpu" else "gpu"]
    if here != profile.device.name:
        raise InputError(
            f"It was measured on {plain(profile.device.name)} and this is {here or 'another device'}: prove it there."
        )
