"""Proof by counterfactual: a cause is proven where taking it away, and nothing else, gains what it was said to cost.

    comparison, findings -> `plan` -> experiments: one switch turned in the run that spends more
    both forms measured in turns -> `judge` -> Proof: predicted gain beside the observed one

Findings that one switch answers together (fusion and dispatch, by a compiler) are one experiment: the switch cannot
take one of them away alone. What is recorded of both forms is compared, fact by fact: where anything differs that the
switch does not move, or the products are not the same, nothing is proven.

The switch to turn is chosen in `settings`; what is recorded of both forms is in `same_run`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

import msgspec
import numpy as np

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.comparison.causes.facts import run_names
from roofline.comparison.causes.findings import Finding
from roofline.comparison.parity.difference import plain
from roofline.comparison.proof.same_run import differing, model_flops, other_work
from roofline.comparison.proof.settings import setting_for
from roofline.comparison.terms import Comparison
from roofline.core import statistics
from roofline.core.schema import Profile
from roofline.core.switch import Setting, Switch

Interval = tuple[float, float]
#: not resolved: the observed gain's interval holds 0 and the prediction; not proven: something else changed too, or the
#: step could not be run; no switch: nothing can be turned for this cause.
Verdict = Literal[
    "confirmed",
    "smaller than predicted",
    "larger than predicted",
    "refuted",
    "not resolved",
    "not proven",
    "no switch",
]


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a cause when it was taken away. Times of one step [s]; None: not measured.

    rule, rules: of the largest finding, and of all that the switch answers. run: which of the two was measured again.
    predicted: what the findings say it costs; observed: wall of the original, measured again, less that of the flipped
    one. original, flipped: their walls. rounds: how often they took turns. changed: what is recorded of them that
    differs, fact -> (original, flipped). contended: other programs used the processor meanwhile.
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


@dataclass(frozen=True, slots=True)
class Experiment:
    """A switch to turn in one run, and the findings that it answers; setting None: there is none for them."""

    run: Literal["a", "b"]
    name: str
    setting: Setting | None
    findings: tuple[Finding, ...]

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
    switches: Callable[[str], Sequence[Switch]],
    names: tuple[str, str] | None = None,
) -> tuple[Experiment, ...]:
    """The experiments that findings ask for, the largest finding first; each finding is in exactly one.

    switches: those of a backend. names: what the runs are called; by default as in the findings' sentences.
    """
    profiles = {"a": comparison.a.profile, "b": comparison.b.profile}
    called = names or run_names(comparison)
    found: dict[tuple[str, str], Experiment] = {}
    for number, finding in enumerate(findings):
        run: Literal["a", "b"] = "a" if finding.seconds > 0 else "b"
        mine, other = profiles[run], profiles["b" if run == "a" else "a"]
        setting = setting_for(finding.rule, mine, other, switches(mine.backend))
        key = (run, setting.text if setting else str(number))
        known = found.get(key)
        name = plain(called[0 if run == "a" else 1])
        found[key] = Experiment(run, name, setting, (*(known.findings if known else ()), finding))
    return tuple(found.values())


# Judging


def gain(original: Sequence[Sequence[float]], flipped: Sequence[Sequence[float]]) -> tuple[float, Interval | None]:
    """Observed gain of a step and its 95 % interval [s], from plain steps by round.

    The median over rounds of what the medians of a round differ by: both forms of a round see the same of a machine.
    Rounds and the steps in them are resampled. None below 3 steps of either.
    """
    rounds = list(zip(original, flipped, strict=True))
    apart = [float(np.median(a) - np.median(b)) for a, b in rounds]
    seconds = float(np.median(apart))
    if min(sum(map(len, original)), sum(map(len, flipped))) < 3:
        return seconds, None
    rng = statistics.generator(*(times for pair in rounds for times in pair))
    drawn = np.stack(
        [
            np.median(statistics.resample(a, rng), axis=1) - np.median(statistics.resample(b, rng), axis=1)
            for a, b in rounds
        ],
        axis=1,
    )
    chosen = rng.integers(0, len(rounds), (statistics.RESAMPLES, len(rounds)))
    low, high = np.percentile(np.median(drawn[np.arange(len(drawn))[:, None], chosen], axis=1), (2.5, 97.5))
    return seconds, (float(low), float(high))


def verdict(
    predicted: float, predicted_ci95: Interval | None, observed: float, observed_ci95: Interval | None
) -> Verdict:
    """How an observed gain stands to the predicted one; without both intervals nobody can tell."""
    if observed_ci95 is None or predicted_ci95 is None:
        return "not resolved"
    overlap = observed_ci95[0] <= predicted_ci95[1] and predicted_ci95[0] <= observed_ci95[1]
    if observed_ci95[0] <= 0 <= observed_ci95[1]:
        return "not resolved" if overlap else "refuted"
    if observed * predicted < 0:
        return "refuted"
    if overlap:
        return "confirmed"
    return "larger than predicted" if abs(observed) > abs(predicted) else "smaller than predicted"


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
    reason = _why_not(setting, changed, differing(recorded.profile, measured.before))
    other = other_work(model_flops(recorded), measured.work)
    if not reason and other:
        reason = f"also {' and '.join(other)} changed"
    found: Verdict = "not proven"
    if not reason:
        found = verdict(proof.predicted, proof.predicted_ci95, observed, interval)
    times = f"predicted {_time(proof.predicted, proof.predicted_ci95)}, observed {_time(observed, interval)}"
    words = found + (f": {reason}" if reason else "") + ("; others used the processor" if measured.contended else "")
    text = f"{experiment.name}, {setting.text}: {times}: {words}."
    return msgspec.structs.replace(proof, verdict=found, text=text)


def _why_not(
    setting: Setting, changed: Mapping[str, tuple[str | None, str | None]], since: Mapping[str, object]
) -> str:
    """Why nothing is proven, if so: what moved beside the switch, or has moved since the run was recorded."""
    if since:
        return f"the original is no longer what was recorded, as {_named(since)} changed"
    strangers = [name for name in changed if not any(fnmatchcase(name, pattern) for pattern in setting.moves)]
    if strangers:
        return f"also {_named(strangers)} changed"
    return "" if changed else "nothing that is recorded changed"


def cannot(experiment: Experiment, reason: str) -> Proof:
    """The proof of an experiment that could not be run; reason: a sentence."""
    assert experiment.setting is not None
    return _proof(experiment, "not proven", f"{experiment.name}, {experiment.setting.text}: not proven. {reason}")


def without_switch(experiment: Experiment) -> Proof:
    """What is said of a finding for which nothing can be turned."""
    finding = experiment.findings[0]
    costs = _time(experiment.predicted, experiment.predicted_ci95)
    return _proof(experiment, "no switch", f"{experiment.name}, {finding.rule} ({costs}): no switch for this cause.")


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


def _time(seconds: float, interval: Interval | None) -> str:
    """A gain in words: "3.10 ms (2.80 ms to 3.40 ms)"."""
    if interval is None:
        return units.seconds(seconds)
    return f"{units.seconds(seconds)} ({units.seconds(interval[0])} to {units.seconds(interval[1])})"
