"""Turn a switch and say what that moved: the account before and after, and the gain of runs in turns.

    account -> `plan` -> experiments: one switch turned in one run
    both forms in turns -> `judge` -> Proof

A row with a name (an annotation, page faults) has seconds, which its switch must gain. A setting has none, so that
nothing is predicted: what turning it moves is its answer. What is recorded of both forms is compared, fact by fact:
where anything differs that the switch does not move, or the products are not the same, nothing is proven.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from roofline import units
from roofline.analysis.bootstrap import Interval
from roofline.comparison.account.account import account
from roofline.comparison.account.row import NAMES, Account, Row
from roofline.comparison.machine_speed import PROCESSES
from roofline.comparison.proof.same_run import changed_since, differing, model_flops, other_work
from roofline.comparison.proof.switches import kinds_of, setting_for, why_none
from roofline.comparison.terms import Comparison, compare
from roofline.comparison.turns import Paired
from roofline.core.schema import Profile
from roofline.core.switch import Setting, Switch
from roofline.units import plain

#: confirmed: the gain is what the rows say. measured: of a setting, which predicts nothing. resolved now: what was
#: predicted may have been nothing, and is something. not resolved: the turns do not settle the gain, and may hold the
#: prediction. not proven: something else changed too, or the step could not be run. no switch: nothing can be turned.
Verdict = Literal[
    "confirmed",
    "measured",
    "resolved now",
    "smaller than predicted",
    "larger than predicted",
    "refuted",
    "not resolved",
    "not proven",
    "no switch",
]


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """A row before and after a switch was turned, in A - B [s]; None: the account has no such row."""

    label: str
    before: float | None
    after: float | None

    @property
    def seconds(self) -> float:
        """What turning the switch moved [s]."""
        return (self.before or 0.0) - (self.after or 0.0)


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """What became of rows when a switch was turned. Times of one step [s]; None: not measured.

    rule, rules: names that the switch answers, annotations or settings. rows: numbers of their rows, from 1. run: which
    of the two was measured again. predicted: what the rows say turning it gains; None: they are settings. observed:
    time of the original, less that of the flipped one, in turns. original, flipped: their times. rounds: turns that
    count. moved: the rows of the account, before and after, as profiled; their sum is what the profiled form gained.
    changed: what is recorded of both that differs, fact -> (original, flipped). contended: other programs used the
    processor meanwhile. reason: why nothing is proven, or why there is no switch, where there is more to say.

    A switch that takes away what the other run lacks has a negative gain.
    """

    rule: str
    rules: tuple[str, ...]
    rows: tuple[int, ...]
    run: Literal["a", "b"]
    switch: str | None
    predicted: float | None = None
    predicted_ci95: Interval | None = None
    observed: float | None = None
    observed_ci95: Interval | None = None
    original: float | None = None
    flipped: float | None = None
    rounds: int = 0
    moved: tuple[Moved, ...] = ()
    changed: dict[str, tuple[str | None, str | None]] = {}
    contended: bool = False
    verdict: Verdict
    text: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A switch to turn in one run, and the rows that it answers, by their number; setting None: there is none.

    names: annotations and settings that it answers. reason: why there is no switch, where there is more to say.
    """

    run: Literal["a", "b"]
    name: str
    setting: Setting | None
    names: tuple[str, ...]
    rows: Mapping[int, Row]
    reason: str = ""

    @property
    def predicted(self) -> float | None:
        """Return what turning it must gain [s]: all that its rows say this run spends more than the other."""
        seconds = [row.seconds for row in self.rows.values() if row.seconds is not None]
        return self._sign * sum(seconds) if seconds else None

    @property
    def predicted_ci95(self) -> Interval | None:
        """Return the 95 % interval of that, of any process of both runs [s]; None where a row has none."""
        below, above = [0.0], [0.0]
        for row in self.rows.values():
            if row.seconds is None:
                continue
            if row.ci95 is None:
                return None
            ends = sorted(self._sign * (end - row.seconds) for end in row.ci95)
            spread = [PROCESSES * amount.seconds for amount in (row.a, row.b)]
            below.append(math.hypot(ends[0], *spread))
            above.append(math.hypot(ends[1], *spread))
        whole = self.predicted
        return None if whole is None else (whole - math.hypot(*below), whole + math.hypot(*above))

    @property
    def _sign(self) -> int:
        return 1 if self.run == "a" else -1


def plan(
    comparison: Comparison, told: Account, switches: Callable[[Profile], Sequence[Switch]], names: tuple[str, str]
) -> tuple[Experiment, ...]:
    """Return the experiments that an account asks for, in the order of its rows.

    Rows that one switch answers together are one experiment: it cannot take one of them away alone. switches: those
    that can be turned in a run. names: what the runs are called.
    """
    profiles: dict[Literal["a", "b"], Profile] = {"a": comparison.a.profile, "b": comparison.b.profile}
    found: dict[tuple[str, str], Experiment] = {}
    for number, row in enumerate(told.rows, 1):
        for name, kinds in kinds_of(row).items():
            run, setting = _chosen(row, kinds, profiles, switches)
            if setting is None and row.kind == "setting":
                continue
            key = run, setting.text if setting else name
            known = found.get(key)
            found[key] = Experiment(
                run=run,
                name=plain(names[0 if run == "a" else 1]),
                setting=setting,
                names=tuple(dict.fromkeys((*(known.names if known else ()), name))),
                rows={**(known.rows if known else {}), number: row},
                reason="" if setting else why_none(kinds, profiles[run]),
            )
    return tuple(found.values())


def _chosen(
    row: Row,
    kinds: Sequence[str],
    profiles: Mapping[Literal["a", "b"], Profile],
    switches: Callable[[Profile], Sequence[Switch]],
) -> tuple[Literal["a", "b"], Setting | None]:
    """Return the run to turn a switch in, and how: the one that spends more, or of a setting either."""
    more: Literal["a", "b"] = "b" if (row.seconds or 0.0) < 0 else "a"
    less: Literal["a", "b"] = "b" if more == "a" else "a"
    ways = [(more, less, False), (less, more, True)]
    if row.kind == "setting":
        ways = [(more, less, False), (less, more, False), (less, more, True), (more, less, True)]
    for run, other, undone in ways:
        setting = setting_for(kinds, profiles[run], profiles[other], switches(profiles[run]), undone=undone)
        if setting is not None:
            return run, setting
    return more, None


def judge(
    experiment: Experiment, comparison: Comparison, told: Account, before: Profile, after: Profile, paired: Paired
) -> Proof:
    """Return the proof of what was measured.

    told: the account of the runs. before: plain steps of the original, as it is now. after: the flipped form, profiled.
    paired: both in turns.
    """
    setting, observed = experiment.setting, paired.a - paired.b
    assert setting is not None
    recorded = comparison.a if experiment.run == "a" else comparison.b
    changed = differing(recorded.profile, after)
    flipped = (after, comparison.b.profile) if experiment.run == "a" else (comparison.a.profile, after)
    turned = compare(*flipped)
    reason = since(changed_since(recorded.profile, before)) or _why_not(setting, changed)
    other = other_work(model_flops(recorded), model_flops(turned.a if experiment.run == "a" else turned.b))
    if not reason and other:
        reason = f"also {' and '.join(other)} changed"
    predicted = experiment.predicted, experiment.predicted_ci95
    verdict: Verdict = "not proven" if reason else judge_gain(*predicted, observed, paired)
    proof = _proof(
        experiment,
        verdict,
        observed=observed,
        observed_ci95=paired.ci95,
        original=paired.a,
        flipped=paired.b,
        rounds=paired.number,
        moved=moved_rows(told, account(turned)),
        changed=changed,
        contended=any(paired.busy),
        reason=reason,
    )
    return msgspec.structs.replace(proof, text=_sentence(proof, f"{experiment.name}, {setting.text}"))


def judge_gain(predicted: float | None, predicted_ci95: Interval | None, observed: float, paired: Paired) -> Verdict:
    """Return how a gain in turns stands to the predicted one; without an interval of that nobody can tell."""
    if predicted is None:
        return "measured" if paired.settled else "not resolved"
    if predicted_ci95 is None:
        return "not resolved"
    low, high = paired.ci95
    overlap = low <= predicted_ci95[1] and predicted_ci95[0] <= high
    if not paired.settled:
        return "not resolved" if overlap or any(paired.busy) else "refuted"
    if predicted_ci95[0] <= 0 <= predicted_ci95[1]:
        return "resolved now"
    if observed * predicted < 0:
        return "refuted"
    if overlap:
        return "confirmed"
    return "larger than predicted" if abs(observed) > abs(predicted) else "smaller than predicted"


def moved_rows(before: Account, after: Account) -> tuple[Moved, ...]:
    """Return each row of two accounts before and after a switch was turned, what moved most first.

    Their seconds add up to what the profiled steps gained.
    """
    sums: dict[str, list[float | None]] = {}
    for number, told in enumerate((before, after)):
        for row in told.rows:
            if row.seconds is not None:
                entry = sums.setdefault(label(row), [None, None])
                entry[number] = (entry[number] or 0.0) + row.seconds
    moved = (Moved(label=name, before=entry[0], after=entry[1]) for name, entry in sums.items())
    return tuple(sorted(moved, key=lambda each: -abs(each.seconds)))


def label(row: Row) -> str:
    """Return what a row is about, in few words that are the same in another account."""
    if row.kind == "rate":
        return f"{row.op_class}, the same ops"
    places = ", ".join(filter(None, (row.place and plain(row.place), row.phase)))
    return places or "elsewhere"


def since(changed: Sequence[str]) -> str:
    """Say why nothing is proven where a step is not the one that was recorded; empty where it is."""
    return f"the original is no longer what was recorded, as {_named(changed)} changed" if changed else ""


def _why_not(setting: Setting, changed: Mapping[str, tuple[str | None, str | None]]) -> str:
    """Say why nothing is proven, if so: what moved with the switch, or that the switch did not."""
    strangers = [name for name in changed if not any(fnmatchcase(name, pattern) for pattern in setting.moves)]
    if strangers:
        return f"also {_named(strangers)} changed"
    by_itself = ", as where the step sets it itself" if setting.in_step or setting.variables else ""
    return "" if changed else f"nothing that is recorded changed{by_itself}"


def cannot(experiment: Experiment, reason: str) -> Proof:
    """Return the proof of an experiment that could not be run; reason: a sentence."""
    assert experiment.setting is not None
    text = f"{experiment.name}, {experiment.setting.text}: not proven. {reason}"
    return _proof(experiment, "not proven", text=text, reason=reason)


def without_switch(experiment: Experiment) -> Proof:
    """Return what is said of a row for which nothing can be turned."""
    costs = f" ({spread(experiment.predicted, experiment.predicted_ci95)})" if experiment.predicted is not None else ""
    why = f"no switch: {experiment.reason}" if experiment.reason else "there is no switch for it"
    text = f"{experiment.name}, {experiment.names[0]}{costs}: {why}."
    return _proof(experiment, "no switch", text=text, reason=experiment.reason)


def spread(seconds: float | None, interval: Interval | None) -> str:
    """Write a gain: "3.10 ms (2.80 ms to 3.40 ms)"."""
    if interval is None:
        return units.seconds(seconds)
    return f"{units.seconds(seconds)} ({units.seconds(interval[0])} to {units.seconds(interval[1])})"


def _sentence(proof: Proof, what: str) -> str:
    times = f"predicted {spread(proof.predicted, proof.predicted_ci95)}, " if proof.predicted is not None else ""
    times += f"observed {spread(proof.observed, proof.observed_ci95)}"
    words = proof.verdict + (f": {proof.reason}" if proof.reason else "")
    return f"{what}: {times}: {words}{'; others used the processor' if proof.contended else ''}."


def _proof(experiment: Experiment, verdict: Verdict, *, text: str = "", **measured: object) -> Proof:
    return Proof(
        rule=experiment.names[0],
        rules=experiment.names,
        rows=tuple(experiment.rows),
        run=experiment.run,
        switch=experiment.setting.text if experiment.setting else None,
        predicted=experiment.predicted,
        predicted_ci95=experiment.predicted_ci95,
        verdict=verdict,
        text=text,
        **measured,  # type: ignore[arg-type]
    )


def _named(names: Iterable[str]) -> str:
    listed = [plain(name) for name in names]
    more = f" and {len(listed) - NAMES} more" if len(listed) > NAMES else ""
    return ", ".join(listed[:NAMES]) + more
