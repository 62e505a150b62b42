"""Turn a switch and say what that moved: the account before and after, and the gain in turns (docs/proving.md).

`plan` makes experiments of an account, each a switch turned in one run; `judge` makes a proof of both forms in turns.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

import msgspec

from roofline import units
from roofline.analysis.analysis import WorkAnalysis
from roofline.analysis.bootstrap import Interval
from roofline.analysis.scope_names import label_scopes
from roofline.comparison.account.account import account as account_of
from roofline.comparison.account.row import NAMES, Account, Row
from roofline.comparison.machine_speed import PROCESSES
from roofline.comparison.proof.same_run import changed_since, differing, model_flops, other_work
from roofline.comparison.proof.switches import kinds_of, setting_for, why_none
from roofline.comparison.terms import Comparison, compare
from roofline.comparison.turns import Paired
from roofline.core.schema import Profile
from roofline.core.switch import Setting, Switch
from roofline.units import plain

Side = Literal["a", "b"]
#: What docs/proving.md says of each.
Verdict = Literal[
    "confirmed", "measured", "resolved now", "smaller than predicted", "larger than predicted", "refuted",
    "not resolved", "not proven", "no switch",
]  # fmt: skip


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """A row before and after a switch was turned, in A - B [s]; None: the account has no such row."""

    label: str
    before: float | None
    after: float | None

    @property
    def seconds(self) -> float:
        """Return the seconds that turning the switch moved."""
        return (self.before or 0.0) - (self.after or 0.0)


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """The effect on rows of turning a switch; its fields are those of the JSON (docs/proving.md).

    Times of one step [s]; None: not measured. A switch that takes away what the other run lacks has a negative gain.
    """

    rule: str
    rules: tuple[str, ...]
    rows: tuple[int, ...]
    run: Side
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

    run: Side
    name: str
    setting: Setting | None
    names: tuple[str, ...]
    rows: Mapping[int, Row]
    reason: str = ""

    @property
    def prediction(self) -> tuple[float | None, Interval | None]:
        """Return what turning it must gain, and the 95 % interval of that, of any process of both runs [s].

        That is all that its rows say this run spends more than the other; a setting predicts nothing.
        """
        sign = 1 if self.run == "a" else -1
        rows = [row for row in self.rows.values() if row.kind != "setting"]
        gain = sign * sum(row.seconds or 0.0 for row in rows)
        below, above = [], []
        for row in rows:
            if row.ci95 is None:
                return gain, None
            ends = sorted(sign * (end - (row.seconds or 0.0)) for end in row.ci95)
            processes = [PROCESSES * (amount.seconds or 0.0) for amount in (row.a, row.b)]
            below.append(math.hypot(ends[0], *processes))
            above.append(math.hypot(ends[1], *processes))
        return (gain, (gain - math.hypot(*below), gain + math.hypot(*above))) if rows else (None, None)


def plan(
    comparison: Comparison, account: Account, switches: Callable[[Profile], Sequence[Switch]], names: tuple[str, str]
) -> tuple[Experiment, ...]:
    """Return the experiments that an account asks for, in the order of its rows.

    Rows that one switch answers together are one experiment: it cannot take one of them away alone. switches: those
    that can be turned in a run. names: what the runs are called.
    """
    profiles: dict[Side, Profile] = {"a": comparison.a.profile, "b": comparison.b.profile}
    experiments: dict[tuple[str, str], Experiment] = {}
    for number, row in enumerate(account.rows, 1):
        for name, kinds in kinds_of(row).items():
            run, setting = _switch_to_turn(row, kinds, profiles, switches)
            if setting is None and row.kind == "setting":
                continue
            key = run, setting.text if setting else name
            earlier = experiments.get(key)
            experiments[key] = Experiment(
                run=run,
                name=plain(names["ab".index(run)]),
                setting=setting,
                names=tuple(dict.fromkeys((*(earlier.names if earlier else ()), name))),
                rows={**(earlier.rows if earlier else {}), number: row},
                reason="" if setting else why_none(kinds, profiles[run]),
            )
    return tuple(experiments.values())


def _switch_to_turn(
    row: Row, kinds: Sequence[str], profiles: Mapping[Side, Profile], switches: Callable[[Profile], Sequence[Switch]]
) -> tuple[Side, Setting | None]:
    """Return the run to turn a switch in, and how: in the one that spends more, or undone in the other one.

    Of a setting it is not known which one spends more: then either is turned before anything is undone.
    """
    slower: Side = "b" if (row.seconds or 0.0) < 0 else "a"
    faster: Side = "b" if slower == "a" else "a"
    ways = [(slower, False), (faster, True)]
    if row.kind == "setting":
        ways = [(slower, False), (faster, False), (faster, True), (slower, True)]
    for run, undone in ways:
        mine, other_profile = profiles[run], profiles["b" if run == "a" else "a"]
        setting = setting_for(kinds, mine, other_profile, switches(mine), undone=undone)
        if setting is not None:
            return run, setting
    return slower, None


def judge(
    experiment: Experiment, comparison: Comparison, account: Account, before: Profile, after: Profile, paired: Paired
) -> Proof:
    """Return the proof of what was measured.

    account: of the runs. before: plain steps of the original, as it is now. after: the flipped form, profiled.
    paired: both in turns.
    """
    assert experiment.setting is not None
    if experiment.run == "a":
        turned = compare(after, comparison.b.profile)
        recorded, flipped = comparison.a, turned.a
    else:
        turned = compare(comparison.a.profile, after)
        recorded, flipped = comparison.b, turned.b
    changed = differing(recorded.profile, after)
    reason = _objection(experiment.setting, recorded, before, flipped, changed)
    predicted, predicted_ci95 = experiment.prediction
    verdict = "not proven" if reason else judge_gain(predicted, predicted_ci95, paired)
    outcome = "" if predicted is None else f"predicted {_spread(predicted, predicted_ci95)}, "
    outcome += f"observed {_spread(paired.difference, paired.ci95)}: {verdict}"
    outcome += f": {reason}" if reason else ""
    outcome += "; others used the processor" if any(paired.busy) else ""
    return _proof(
        experiment,
        verdict,
        f": {outcome}.",
        reason,
        observed=paired.difference,
        observed_ci95=paired.ci95,
        original=paired.a,
        flipped=paired.b,
        rounds=paired.number,
        moved=moved_rows(account, account_of(turned)),
        changed=changed,
        contended=any(paired.busy),
    )


def _objection(
    setting: Setting, recorded: WorkAnalysis, before: Profile, flipped: WorkAnalysis, changed: Collection[str]
) -> str:
    """Say why nothing is proven; empty where nothing speaks against it. changed: the facts that the switch moved."""
    since = changed_since(recorded.profile, before)
    if since:
        return f"the original is no longer what was recorded, as {_listed(since)} changed"
    strangers = [name for name in changed if not any(fnmatchcase(name, pattern) for pattern in setting.moves)]
    if strangers:
        return f"also {_listed(strangers)} changed"
    if not changed:
        by_itself = ", as where the step sets it itself" if setting.in_step or setting.variables else ""
        return f"nothing that is recorded changed{by_itself}"
    work = other_work(model_flops(recorded), model_flops(flipped))
    return f"also {' and '.join(work)} changed" if work else ""


def judge_gain(predicted: float | None, predicted_ci95: Interval | None, paired: Paired) -> Verdict:
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
    if paired.difference * predicted < 0:
        return "refuted"
    if overlap:
        return "confirmed"
    return "larger than predicted" if abs(paired.difference) > abs(predicted) else "smaller than predicted"


def moved_rows(before: Account, after: Account) -> tuple[Moved, ...]:
    """Return each row of two accounts before and after a switch was turned, what moved most first.

    Their seconds add up to what the profiled steps gained.
    """
    sums = _sums(before), _sums(after)
    labels = dict.fromkeys((*sums[0], *sums[1]))
    moved = (Moved(label=label, before=sums[0].get(label), after=sums[1].get(label)) for label in labels)
    return tuple(sorted(moved, key=lambda row: -abs(row.seconds)))


def _sums(account: Account) -> dict[str, float]:
    """Add up the rows of an account by what they are about, in words that are the same in another one."""
    sums: dict[str, float] = defaultdict(float)
    for row in account.rows:
        if row.seconds is not None:
            where = ", ".join(filter(None, (row.place or label_scopes(row.scopes), row.phase))) or "elsewhere"
            sums[f"{row.op_class}, the same ops" if row.kind == "rate" else where] += row.seconds
    return sums


def cannot(experiment: Experiment, reason: str) -> Proof:
    """Return the proof of an experiment that could not be run; reason: a sentence."""
    return _proof(experiment, "not proven", f": not proven. {reason}", reason)


def without_switch(experiment: Experiment) -> Proof:
    """Return what is said of a row for which nothing can be turned."""
    predicted, predicted_ci95 = experiment.prediction
    costs = "" if predicted is None else f" ({_spread(predicted, predicted_ci95)})"
    why = f"no switch: {experiment.reason}" if experiment.reason else "there is no switch for it"
    return _proof(experiment, "no switch", f"{costs}: {why}.", experiment.reason)


def _proof(experiment: Experiment, verdict: Verdict, outcome: str, reason: str, **measured: Any) -> Proof:
    """Make the proof of an experiment. outcome: what its sentence says of what was turned, or of the row."""
    switch = experiment.setting.text if experiment.setting else None
    predicted, predicted_ci95 = experiment.prediction
    return Proof(
        rule=experiment.names[0],
        rules=experiment.names,
        rows=tuple(experiment.rows),
        run=experiment.run,
        switch=switch,
        predicted=predicted,
        predicted_ci95=predicted_ci95,
        verdict=verdict,
        text=f"{experiment.name}, {switch or experiment.names[0]}{outcome}",
        reason=reason,
        **measured,
    )


def _spread(seconds: float, interval: Interval | None) -> str:
    """Write a gain: "3.10 ms (2.80 ms to 3.40 ms)"."""
    ends = "" if interval is None else f" ({units.seconds(interval[0])} to {units.seconds(interval[1])})"
    return f"{units.seconds(seconds)}{ends}"


def _listed(names: Sequence[str]) -> str:
    suffix = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return ", ".join(map(plain, names[:NAMES])) + suffix
