"""Proof by counterfactual: a cause is proven where taking it away, and nothing else, gains what it was said to cost.

    comparison, findings -> `plan` -> experiments: one knob turned in the run that spends more
    both forms measured in turns -> `judge` -> Proof: predicted gain beside the observed one

Findings that one knob answers together (fusion and dispatch, by a compiler) are one experiment: the knob cannot take
one of them away alone. What is recorded of both forms is compared, fact by fact: where anything differs that the knob
does not move, or the products are not the same, nothing is proven.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

import msgspec
import numpy as np

from roofline import units
from roofline.core import sentences, statistics
from roofline.core.analysis import Analysis, analyze
from roofline.core.comparison import Comparison
from roofline.core.difference import plain
from roofline.core.explanation import Finding
from roofline.core.knob import MALLOC, Knob, Setting
from roofline.core.profile import Op, Profile, slug

Interval = tuple[float, float]
Facts = dict[str, str]
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

#: Model FLOPs that differ by less are the same work (DESIGN section 5: parity).
_SAME_WORK = 1e-3
#: Versions that change no step.
_OURS = frozenset(("roofline",))


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a cause when it was taken away. Times of one step [s]; None: not measured.

    rule, rules: of the largest finding, and of all that the knob answers. run: which of the two was measured again.
    predicted: what the findings say it costs; observed: wall of the original, measured again, less that of the flipped
    one. original, flipped: their walls. rounds: how often they took turns. changed: what is recorded of them that
    differs, fact -> (original, flipped). contended: other programs used the processor meanwhile.
    """

    rule: str
    rules: tuple[str, ...]
    run: Literal["a", "b"]
    knob: str | None
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
    """A knob to turn in one run, and the findings that it answers; setting None: there is none for them."""

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
    knobs: Callable[[str], Sequence[Knob]],
    names: tuple[str, str] | None = None,
) -> tuple[Experiment, ...]:
    """The experiments that findings ask for, the largest finding first; each finding is in exactly one.

    knobs: those of a backend. names: what the runs are called; by default as in the findings' sentences.
    """
    profiles = {"a": comparison.a.profile, "b": comparison.b.profile}
    called = names or sentences.names(comparison)
    found: dict[tuple[str, str], Experiment] = {}
    for number, finding in enumerate(findings):
        run: Literal["a", "b"] = "a" if finding.seconds > 0 else "b"
        mine, other = profiles[run], profiles["b" if run == "a" else "a"]
        setting = setting_for(finding.rule, mine, other, knobs(mine.backend))
        key = (run, setting.text if setting else str(number))
        known = found.get(key)
        name = plain(called[0 if run == "a" else 1])
        found[key] = Experiment(run, name, setting, (*(known.findings if known else ()), finding))
    return tuple(found.values())


def setting_for(rule: str, mine: Profile, other: Profile, knobs: Sequence[Knob]) -> Setting | None:
    """The knob to turn in `mine` for a finding of `rule`: the backend's own, else one of every run; None: none."""
    for knob in knobs:
        if rule in knob.rules and mine.device.kind in knob.devices:
            setting = _turned(knob, mine, other)
            if setting is not None:
                return setting
    common = _COMMON.get(rule)
    return common(mine, other) if common else None


def _turned(knob: Knob, mine: Profile, other: Profile) -> Setting | None:
    """A knob set as in the other run, if it can be and is not so already, else to its opposite."""
    now = _stands(knob, mine)
    if now is None:
        return None
    theirs = _stands(knob, other)
    as_theirs = theirs in knob.turns.values() and theirs != now
    target = theirs if as_theirs else knob.turns.get(now, knob.turns.get("*"))
    if target is None or target == now:
        return None
    return Setting(
        text=f"{knob.name} {knob.words.get(now, plain(now))} -> {knob.words.get(target, target)}",
        moves=knob.moves,
        backend=knob.backend,
        options={**mine.options, knob.option: target} if knob.option else dict(mine.options),
    )


def _stands(knob: Knob, profile: Profile) -> str | None:
    return profile.switches.get(knob.reads, profile.options.get(knob.reads, knob.assumed))


def _threads(mine: Profile, other: Profile) -> Setting | None:
    """As many threads as the other run had."""
    now, target = mine.environment.get("threads", ""), other.environment.get("threads", "")
    if not (target.isascii() and target.isdecimal()) or int(target) < 1 or now == target:
        return None
    names = ("threads", "NPROC", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "intra-op threads")
    return Setting(
        text=f"threads {plain(now) or 'not recorded'} -> {int(target)}",
        moves=tuple(f"environment {name}" for name in names),
        threads=int(target),
    )


def _precision(mine: Profile, other: Profile) -> Setting | None:
    """TF32 for products of float32 data, or none of it: what this run does not do, and the other does if they differ.

    None where it is not known how this run's products ran, or where they did not run as was asked for: then nothing
    that could be asked for is sure to change them.
    """
    if mine.device.kind != "cuda" or mine.precision not in ("default", "fp32", "tf32"):
        return None
    now = _tf32(mine)
    if now is None and mine.precision != "default":
        now = mine.precision == "tf32"
    if now is None:
        return None
    target = "fp32" if now else "tf32"
    if target == mine.precision:
        return None
    moves = ("precision", "switch float32 *", "switch jax_default_matmul_precision")
    return Setting(text=f"precision {mine.precision} -> {target}", moves=moves, precision=target)


def _tf32(profile: Profile) -> bool | None:
    """Whether products of float32 data ran in less than IEEE arithmetic, by executed FLOPs; None: not recorded.

    What was asked for says little: frameworks differ in what they do by default, and switches may not reach a kernel.
    """
    flops = {True: 0.0, False: 0.0}
    for op in profile.ops:
        arithmetic = _arithmetic(profile, op)
        if arithmetic is not None:
            flops[arithmetic != "fp32"] += profile.signatures[op.signature].cost.flops or 0.0
    return None if not any(flops.values()) else flops[True] > flops[False]


def _arithmetic(profile: Profile, op: Op) -> str | None:
    """That of a product of float32 data: of the op, or of the first of its constituents that has one."""
    for number in (op.signature, *op.constituents):
        precision = profile.signatures[number].precision
        if precision is not None:
            return precision.arithmetic if precision.inputs == "fp32" else None
    return None


def _allocation(mine: Profile, other: Profile) -> Setting | None:
    """glibc's malloc told to keep what was freed, so that the next step finds its pages mapped."""
    if mine.device.kind != "cpu" or any(name in mine.environment for name in MALLOC):
        return None
    # No block is mapped for itself, the heap is never trimmed, and grows by 64 MiB at once.
    values = ("0", str(1 << 40), str(1 << 26))
    return Setting(
        text="freed memory given back -> kept",
        moves=tuple(f"environment {name}" for name in MALLOC),
        variables=dict(zip(MALLOC, values, strict=True)),
    )


_COMMON: Mapping[str, Callable[[Profile, Profile], Setting | None]] = {
    "threads": _threads,
    "precision": _precision,
    "allocation": _allocation,
}


# What is recorded of a run


def facts(profile: Profile) -> Facts:
    """All that is recorded of how a step was built and run, by name: what parity of two measurements rests on."""
    found = {
        "model": profile.model,
        "backend": profile.backend,
        "mode": profile.mode,
        "size": profile.size,
        "precision": profile.precision,
    }
    for name in ("batch", "seq", "layers", "parameters", "trainable", "samples", "tokens"):
        value = getattr(profile, name)
        if value is not None:
            found[name] = str(value)
    tables = {"option": profile.options, "switch": profile.switches, "environment": profile.environment}
    for kind, table in tables.items():
        found |= {f"{kind} {name}": value for name, value in table.items()}
    return found | {f"version {name}": value for name, value in profile.versions.items() if name not in _OURS}


def differing(before: Profile, after: Profile) -> dict[str, tuple[str | None, str | None]]:
    """The facts in which two profiles differ; None: not recorded of that one."""
    one, other = facts(before), facts(after)
    return {
        name: (one.get(name), other.get(name)) for name in sorted({*one, *other}) if one.get(name) != other.get(name)
    }


def model_flops(analysis: Analysis) -> dict[str, float]:
    """Model FLOPs of products by phase [FLOP]; in one sum where the phases could not be told apart."""
    by_phase = {phase: products.model for phase, products in analysis.products.items()}
    unresolved = "phases-unresolved" in map(slug, analysis.profile.flags)
    return {"step": sum(by_phase.values())} if unresolved else by_phase


def counted_work(profile: Profile) -> dict[str, float]:
    """`model_flops` of a profile that was counted."""
    return model_flops(analyze(profile))


def _other_work(before: Mapping[str, float], after: Mapping[str, float]) -> list[str]:
    """What is not the same work, in words."""
    if ("step" in before) != ("step" in after):
        before, after = {"step": sum(before.values())}, {"step": sum(after.values())}
    apart = []
    for phase in dict.fromkeys((*before, *after)):
        one, other = before.get(phase, 0.0), after.get(phase, 0.0)
        if abs(one - other) > _SAME_WORK * max(one, other):
            apart.append(f"model FLOPs of the {plain(phase)} ({units.flop(one)} to {units.flop(other)})")
    return apart


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
    other = _other_work(model_flops(recorded), measured.work)
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
    """Why nothing is proven, if so: what moved beside the knob, or has moved since the run was recorded."""
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
        knob=experiment.setting.text if experiment.setting else None,
        predicted=experiment.predicted,
        predicted_ci95=experiment.predicted_ci95,
        verdict=found,
        text=text,
        **measured,  # type: ignore[arg-type]
    )


def _named(names: object) -> str:
    listed = [plain(str(name)) for name in names]  # type: ignore[attr-defined]
    more = f" and {len(listed) - 3} more" if len(listed) > 3 else ""
    return ", ".join(listed[:3]) + more


def _time(seconds: float, interval: Interval | None) -> str:
    """A gain in words: "3.10 ms (2.80 ms to 3.40 ms)"."""
    if interval is None:
        return units.seconds(seconds)
    return f"{units.seconds(seconds)} ({units.seconds(interval[0])} to {units.seconds(interval[1])})"
