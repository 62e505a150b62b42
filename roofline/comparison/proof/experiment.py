"""Proof by counterfactual: a cause is proven where taking it away, and nothing else, gains what it was said to cost.

    comparison, findings -> `plan` -> experiments: one switch turned in the run that spends more
    both forms measured in turns -> `judge` -> Proof: predicted gain beside the observed one

Findings that one switch answers together (fusion and dispatch, by a compiler) are one experiment: the switch cannot
take one of them away alone. What is recorded of both forms is compared, fact by fact: where anything differs that the
switch does not move, or the products are not the same, nothing is proven.

The switch to turn is chosen in `settings`; what is recorded of both forms is in `same_run`; how gains stand to what was
predicted is in `verdicts`; the difference of the runs as a whole, and proofs beside it, are in `headline`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

import msgspec
import numpy as np

from roofline.analysis.analysis import Analysis
from roofline.comparison.account.findings import Finding
from roofline.comparison.causes.facts import run_names
from roofline.comparison.parity.difference import plain
from roofline.comparison.proof.same_run import differing, model_flops, moved_since, other_work
from roofline.comparison.proof.settings import setting_for, why_none
from roofline.comparison.proof.verdicts import Interval, Verdict, gain, spread, verdict
from roofline.comparison.terms import Comparison
from roofline.core.schema import Profile
from roofline.core.switch import Setting, Switch


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a cause when it was taken away. Times of one step [s]; None: not measured.

    rule, rules: of the largest finding, and of all that the switch answers. run: which of the two was measured again.
    predicted: what the findings say it costs; observed: wall of the original, measured again, less that of the flipped
    one. original, flipped: their walls. rounds: how often they took turns. changed: what is recorded of them that
    differs, fact -> (original, flipped). contended: other programs used the processor meanwhile. reason: why nothing is
    proven, or why there is no switch, where there is more to say.

    Of the difference of the runs as a whole (rule `DIFFERENCE`) the original is A and the other form B. A switch that
    takes away what the other run lacks has a negative gain.
    """

    rule: str
    rules: tuple[str, ...]
    run: Literal["a", "b"]
    switch: str | None
    predicted: float
    predicted_ci95: Interval | None
    observed: float | None = None
    observed_ci95: Interval | None = None
    original: float | None = None
    flipped: float | None = None
    rounds: int = 0
    changed: dict[str, tuple[str | None, str | None]] = {}
    contended: bool = False
    verdict: Verdict
    text: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A switch to turn in one run, and the findings that it answers; setting None: there is none for them.

    reason: why there is none, where there is more to say.
    """

    run: Literal["a", "b"]
    name: str
    setting: Setting | None
    findings: tuple[Finding, ...]
    reason: str = ""

    @property
    def predicted(self) -> float:
        """What turning it must gain [s]: all that its findings say this run spends more than the other."""
        return sum(self._sign * finding.seconds for finding in self.findings)

    @property
    def predicted_ci95(self) -> Interval | None:
        """The 95 % interval of that [s]: half widths of several findings add up like independent ones.

        None where a finding has none.
        """
        below, above = [], []
        for finding in self.findings:
            if finding.ci95 is None:
                return None
            seconds, ends = self._sign * finding.seconds, [self._sign * end for end in finding.ci95]
            below.append(seconds - min(ends))
            above.append(max(ends) - seconds)
        return self.predicted - math.hypot(*below), self.predicted + math.hypot(*above)

    @property
    def _sign(self) -> int:
        return 1 if self.run == "a" else -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """An experiment's original and flipped form, measured in turns.

    original, flipped: times of plain steps [s], by round. before, after: what is recorded of the two forms. work:
    model FLOPs of the flipped form, as `model_flops` gives them. contended: whether others used the processor.
    """

    original: Sequence[Sequence[float]]
    flipped: Sequence[Sequence[float]]
    before: Profile
    after: Profile
    work: Mapping[str, float]
    contended: bool = False


def plan(
    comparison: Comparison,
    findings: Sequence[Finding],
    switches: Callable[[Profile], Sequence[Switch]],
    names: tuple[str, str] | None = None,
) -> tuple[Experiment, ...]:
    """The experiments that findings ask for, the largest finding first; each finding is in exactly one.

    switches: those that can be turned in a run. names: what the runs are called; by default as in the findings'
    sentences.
    """
    profiles = {"a": comparison.a.profile, "b": comparison.b.profile}
    called = names or run_names(comparison)
    found: dict[tuple[str, str], Experiment] = {}
    for number, finding in enumerate(findings):
        more: Literal["a", "b"] = "a" if finding.seconds > 0 else "b"
        less: Literal["a", "b"] = "b" if more == "a" else "a"
        run, setting = more, setting_for(finding.rule, profiles[more], profiles[less], switches(profiles[more]))
        if setting is None:
            undone = setting_for(finding.rule, profiles[less], profiles[more], switches(profiles[less]), undone=True)
            run, setting = (more, None) if undone is None else (less, undone)
        reason = why_none(finding.rule, profiles[more]) if setting is None else ""
        key = (run, setting.text if setting else str(number))
        known = found.get(key)
        name = plain(called[0 if run == "a" else 1])
        found[key] = Experiment(run, name, setting, (*(known.findings if known else ()), finding), reason)
    return tuple(found.values())


def judge(experiment: Experiment, recorded: Analysis, measured: Measured) -> Proof:
    """The proof from what was measured; `recorded`: the run as it was compared."""
    setting = experiment.setting
    assert setting is not None
    observed, interval = gain(measured.original, measured.flipped)
    changed = differing(measured.before, measured.after)
    proof = _proof(
        experiment,
        "not proven",
        "",
        observed=observed,
        observed_ci95=interval,
        original=float(np.median([np.median(times) for times in measured.original])),
        flipped=float(np.median([np.median(times) for times in measured.flipped])),
        rounds=len(measured.original),
        changed=changed,
        contended=measured.contended,
    )
    reason = since(moved_since(recorded.profile, measured.before)) or _why_not(setting, changed)
    other = other_work(model_flops(recorded), measured.work)
    if not reason and other:
        reason = f"also {' and '.join(other)} changed"
    found: Verdict = "not proven"
    if not reason:
        found = verdict(proof.predicted, proof.predicted_ci95, observed, interval)
    proof = msgspec.structs.replace(proof, verdict=found, reason=reason)
    return msgspec.structs.replace(proof, text=told(proof, f"{experiment.name}, {setting.text}"))


def told(proof: Proof, what: str) -> str:
    """The sentence of what was measured; what: the run and the switch."""
    times = f"predicted {spread(proof.predicted, proof.predicted_ci95)}"
    if proof.observed is not None:
        times += f", observed {spread(proof.observed, proof.observed_ci95)}"
    words = proof.verdict + (f": {proof.reason}" if proof.reason else "")
    return f"{what}: {times}: {words}{'; others used the processor' if proof.contended else ''}."


def since(apart: Mapping[str, object], which: str = "the original") -> str:
    """Why nothing is proven where a step is not the one that was recorded; empty where it is."""
    return f"{which} is no longer what was recorded, as {_named(apart)} changed" if apart else ""


def _why_not(setting: Setting, changed: Mapping[str, tuple[str | None, str | None]]) -> str:
    """Why nothing is proven, if so: what moved beside the switch, or that the switch did not."""
    strangers = [name for name in changed if not any(fnmatchcase(name, pattern) for pattern in setting.moves)]
    if strangers:
        return f"also {_named(strangers)} changed"
    by_itself = ", as where the step sets it itself" if setting.in_step or setting.variables else ""
    return "" if changed else f"nothing that is recorded changed{by_itself}"


def cannot(experiment: Experiment, reason: str) -> Proof:
    """The proof of an experiment that could not be run; reason: a sentence."""
    assert experiment.setting is not None
    text = f"{experiment.name}, {experiment.setting.text}: not proven. {reason}"
    return _proof(experiment, "not proven", text, reason=reason)


def without_switch(experiment: Experiment) -> Proof:
    """What is said of a finding for which nothing can be turned."""
    finding, reason = experiment.findings[0], experiment.reason
    costs = spread(experiment.predicted, experiment.predicted_ci95)
    why = f"no switch: {reason}" if reason else "no switch for this cause"
    return _proof(experiment, "no switch", f"{experiment.name}, {finding.rule} ({costs}): {why}.", reason=reason)


def _proof(experiment: Experiment, found: Verdict, text: str, **measured: object) -> Proof:
    rules = tuple(dict.fromkeys(finding.rule for finding in experiment.findings))
    return Proof(
        rule=rules[0],
        rules=rules,
        run=experiment.run,
        switch=experiment.setting.text if experiment.setting else None,
        predicted=experiment.predicted,
        predicted_ci95=experiment.predicted_ci95,
        verdict=found,
        text=text,
        **measured,  # type: ignore[arg-type]
    )


def _named(names: Iterable[object]) -> str:
    listed = [plain(str(name)) for name in names]
    more = f" and {len(listed) - 3} more" if len(listed) > 3 else ""
    return ", ".join(listed[:3]) + more
