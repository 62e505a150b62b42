"""Sentences and tables about compared runs, shared by the formats and figures. Plain text; each format escapes it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from roofline import units
from roofline.core import sentences
from roofline.core.analysis import Analysis
from roofline.core.comparison import NOT_RESOLVED, Comparison, Side, Term
from roofline.core.draws import interval
from roofline.core.parity import Parity
from roofline.core.ranking import Pair, Ranking
from roofline.renderers import _words
from roofline.renderers._words import plain

Interval = tuple[float, float]

#: A row below this share of the difference or the largest row, and all after so many, go to the other places.
_SMALL, _MOST = 0.01, 12
#: What is left of times [s] that cancel is rounding.
_ROUNDING = 1e-15
#: Findings of each pair that are told where there are more than two runs.
TOP = 3
#: Findings that one sentence names.
_CAUSES = 3
#: Model FLOPs this close are equal (the parity gate's limit).
_SAME_FLOPS = 1e-3

#: A heading of the table of terms, two lines of it, and the kinds of terms in that column. Each kind is in one column.
COLUMNS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("compute\nwork", ("floor.compute.work",)),
    ("memory\nwork", ("floor.memory.work",)),
    ("launch\nwork", ("floor.launch.work",)),
    ("ceil-\nings", ("floor.compute.ceiling", "floor.memory.ceiling", "floor.launch.ceiling")),
    ("other\nroof", ("floor.rebinding",)),
    ("loss\n", ("loss",)),
    ("un-\ncosted", ("uncosted",)),
    ("over-\nlap", ("overlap",)),
)
_PHASES = {"forward": "fwd", "backward": "bwd", "optimizer": "opt"}
LEGEND = (
    "A − B. work: more of it, at the mean of both rates; ceilings: another rate for it (hardware, precision, access "
    "pattern); other roof: another ceiling became the lowest; loss: own time − floor; overlap: what ops share of an "
    "instant, subtracted. fwd, bwd, opt: forward, backward, optimizer."
)


@dataclass(frozen=True, slots=True)
class Scale:
    """One unit for a whole table, and the decimals that give its largest number three digits or more."""

    factor: float
    unit: str
    decimals: int

    def write(self, value: float | None) -> str:
        """A signed number; unknown or absent is a dash."""
        if value is None:
            return units.UNKNOWN
        text = f"{snapped(value) / self.factor:+.{self.decimals}f}"
        return text if float(text) else f"{0:.{self.decimals}f}"

    def between(self, ci95: Interval | None) -> str:
        """An interval: "+1.2 to +3.4"."""
        return "" if ci95 is None else f"{self.write(ci95[0])} to {self.write(ci95[1])}"


def scale(values: Iterable[float]) -> Scale:
    """The unit of `values` [s]."""
    most = max((abs(value) for value in values), default=0.0)
    for factor_, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")):
        if most >= factor_ or unit == "ns":
            break
    digits = most / factor_
    return Scale(factor_, unit, 2 if digits < 100 else 1)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table of terms [s]. terms: sums by column, None where neither run has such a term."""

    label: str
    terms: tuple[float | None, ...]
    seconds: float
    ci95: Interval | None
    phase: str | None = None
    block: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Places by size, then the gap by cause. Rows and residual add up to the difference."""

    places: tuple[Row, ...]
    gap: tuple[Row, ...]
    total: Row
    residual: float

    @property
    def rows(self) -> tuple[Row, ...]:
        """All lines but the total."""
        return (*self.places, *self.gap)

    @property
    def scale(self) -> Scale:
        """One unit for all numbers, so that rows and columns can be added; columns may cancel in the sums."""
        rows = (*self.rows, self.total)
        return scale([value for row in rows for value in (row.seconds, *row.terms, *(row.ci95 or ())) if value])

    def columns(self, written: Scale) -> tuple[int, ...]:
        """The columns in which anything is not written as 0."""
        rows = (*self.places, self.total)
        return tuple(
            number
            for number in range(len(COLUMNS))
            if any(row.terms[number] is not None and float(written.write(row.terms[number])) for row in rows)
        )


# ------------------------------------------------------------------------------------------------------- sentences


def name(pair: Pair, side: int) -> str:
    """What a run is called."""
    return plain(pair.names[side], 60)


def said(pair: Pair, text: str) -> str:
    """A sentence of core about a pair, with the names that its runs have here where it could not tell them apart."""
    labels = sentences.names(pair.comparison)
    own = {label: name(pair, side) for side, label in enumerate(labels) if label.endswith((" (A)", " (B)"))}
    return _renamed(text, own | dict(zip(_UNNAMED, (name(pair, 0), name(pair, 1)), strict=True)))


def judgement(text: str, names: tuple[str, str]) -> str:
    """A sentence of the parity gate about two runs, with their names where it has none for them."""
    return _renamed(text, {label: plain(own, 60) for label, own in zip(_UNNAMED, names, strict=True)})


#: What the parity gate calls runs of one backend (core/difference.py).
_UNNAMED = ("the first run", "the second run")


def _renamed(text: str, names: Mapping[str, str]) -> str:
    return re.sub("|".join(map(re.escape, names)), lambda found: names[found[0]], text)


def factor(ratio: float) -> str:
    """How many times faster, never "1.00": 1.83x, 1.004x, 12.3x."""
    digits = 3
    while abs(ratio - 1) > 1e-9 and float(f"{ratio:.{digits - 1}f}") == 1.0 and digits < 7:
        digits += 1
    return f"{ratio:.{digits - 1}f}x" if ratio < 2 else f"{units.significant(ratio)}x"


def verdict(pair: Pair) -> str:
    """The sentence: which run is faster, by how much, and whether that is more than noise."""
    found = pair.comparison
    walls, names = (found.a.wall, found.b.wall), (name(pair, 0), name(pair, 1))
    if found.ci95 is None:
        times = f"{names[0]} takes {units.seconds(walls[0])} per step and {names[1]} {units.seconds(walls[1])}"
        return f"{times}; a run has fewer than 3 steps, so it is not known whether that is more than noise."
    low, high = map(snapped, found.ci95)
    if not found.resolved:
        times = f"{names[0]} takes {units.seconds(walls[0])} per step and {names[1]} {units.seconds(walls[1])}"
        apart = f"{units.seconds(snapped(found.difference))}, 95 % interval {_words.between(low, high)}"
        return f"{times}: no difference that these runs resolve ({apart})."
    if found.difference < 0:
        walls, names, low, high = walls[::-1], names[::-1], -high, -low
    apart = f"difference {units.seconds(walls[0] - walls[1])}, 95 % interval {_words.between(low, high)}"
    return (
        f"{names[1]} is {factor(walls[0] / walls[1])} faster than {names[0]}: {units.seconds(walls[1])} instead of "
        f"{units.seconds(walls[0])} per step ({apart})."
    )


def causes(pair: Pair) -> str:
    """The sentence after the verdict: the largest findings, and the largest of those that go the other way."""
    if not pair.comparison.resolved:
        return ""
    difference = pair.comparison.difference
    ahead = [finding for finding in pair.findings if finding.seconds * difference > 0][:_CAUSES]
    against = [finding for finding in pair.findings if finding.seconds * difference < 0][:1]
    if not ahead:
        return ""
    parts = [f"{units.seconds(abs(finding.seconds))} is {plain(said(pair, finding.label), 120)}" for finding in ahead]
    parts += [
        f"{units.seconds(abs(each.seconds))} the other way is {plain(said(pair, each.label), 120)}" for each in against
    ]
    return f"Of {units.seconds(abs(difference))}, {', '.join(parts)}; {_asked(pair.comparison)}."


def _asked(found: Comparison) -> str:
    """Whether both runs were asked for the same products."""
    a, b = found.a.total.model_flops, found.b.total.model_flops
    if abs(a - b) <= _SAME_FLOPS * max(a, b):
        return "model FLOPs of products are equal" if a else "neither has products of known work"
    return f"model FLOPs of products differ ({units.flop(a)} and {units.flop(b)})"


def subject(runs: Sequence[Analysis]) -> str:
    """What was run on which devices: "bert infer, b1 s128 on AMD EPYC, 1 thread"; each different one is named."""
    what = " against ".join(dict.fromkeys(_words.subject(run) for run in runs))
    where = " and ".join(dict.fromkeys(_words.device(run) for run in runs))
    return f"{what} on {where}"


def sign(pair: Pair) -> str:
    """What a positive number means."""
    return f"A − B: what is positive, {name(pair, 0)} (A) spends and {name(pair, 1)} (B) does not"


def warning(pair: Pair) -> str:
    """The warning that stands on every output of runs that are not comparable; empty for all others."""
    parity = pair.comparison.parity
    reasons = [plain(said(pair, difference.text), 300).rstrip(".") for difference in parity.of("refused")]
    if parity.verdict != "not comparable":
        return ""
    told = _words.conjunction(reasons) or "see parity"
    return f"NOT COMPARABLE, compared all the same: {told}."


def judged(parity: Parity) -> str:
    """The verdict of the parity gate in words."""
    doubts, named = len(parity.of("warning")), len(parity.of("named"))
    told = {
        "comparable": "comparable",
        "named differences": f"comparable, with {_words.counted(named, 'named difference')}",
        "not comparable": "not comparable",
    }[parity.verdict]
    return f"{told}; {_words.counted(doubts, 'doubt')} about the measurement" if doubts else told


def differences(pair: Pair) -> list[str]:
    """What differs, each in a sentence with the largest part of the difference that it can explain."""
    lines = []
    for one in pair.comparison.parity.differences:
        most = ""
        if one.seconds is not None:
            share = "" if one.share is None else f", {units.percent(one.share, 0)} of the difference"
            most = f" (at most {units.seconds(snapped(one.seconds))}{share})"
        head = {"refused": "not comparable: ", "named": "", "warning": "doubt: "}[one.severity]
        lines.append(f"{head}{plain(said(pair, one.text), 400).rstrip('.')}{most}.")
    return lines


def share(part: float, pair: Pair) -> str:
    """A part of the difference in percent; a dash where the runs resolve no difference."""
    if not pair.comparison.resolved or not pair.comparison.difference:
        return units.UNKNOWN
    percent = round(100 * part / pair.comparison.difference)  # a whole number: nothing is never "-0"
    return f"{percent} %"


def hardware(pair: Pair) -> str:
    """Runs on different devices: how much of the difference is the ceilings', and how much everything else."""
    found = pair.comparison
    if not found.hardware_differs:
        return ""
    parts = {"ceilings": 0.0, "work": 0.0, "other": 0.0}
    for term in found.work.terms:
        part = "other"
        if term.kind.endswith(".ceiling"):
            part = "ceilings"
        elif term.kind.startswith("floor.") and term.kind.endswith(".work"):
            part = "work"
        parts[part] += term.seconds
    devices = [_words.device(run) for run in (found.a, found.b)]
    blank = [name for name, run in zip(devices, (found.a, found.b), strict=True) if not run.device.ceilings]
    if blank:
        told = f"no ceilings are known of {_words.conjunction(blank)}, so that"
        return f"{devices[0]} against {devices[1]}: {told} hardware and work cannot be told apart."
    ceilings, work, other = (signed(part) for part in parts.values())
    return (
        f"{devices[0]} against {devices[1]}: of {signed(found.difference)}, {ceilings} is the ceilings of the devices, "
        f"{work} other work, {other} loss, gap and all else."
    )


def communication(pair: Pair) -> str:
    """Time in collectives, and how much of it no computation hides; empty where no profile tells of any."""
    lines = []
    for side, run in enumerate((pair.comparison.a, pair.comparison.b)):
        facts = run.profile.imported
        if facts is None or not facts.communication:
            continue
        if facts.exposed is None:
            hidden = "how much of it is hidden is not known"
        else:
            whole, bare = facts.communication, facts.exposed
            hidden = f"{units.seconds(bare)} exposed, {units.seconds(whole - bare)} hidden by computation"
        waiting = "" if facts.waiting is None else f", {units.seconds(facts.waiting)} of it waiting for slower ranks"
        lines.append(f"{name(pair, side)} {units.seconds(facts.communication)} per step: {hidden}{waiting}")
    return f"{'; '.join(lines)}." if lines else ""


def signed(value: float) -> str:
    """A time [s] with its sign."""
    value = snapped(value)
    return f"+{units.seconds(value)}" if value > 0 else units.seconds(value)


def snapped(value: float) -> float:
    """A difference of times [s]; 0 below a femtosecond, where its digits say something about the processor only."""
    return 0.0 if abs(value) < _ROUNDING else value


def mark(verdict: str) -> str:
    """Behind a speedup: nothing, "*" for named differences, "!" for runs that are not comparable."""
    return {"comparable": "", "named differences": "*", "not comparable": "!"}[verdict]


MARKS = "* comparable with named differences; ! not comparable"


def closing(comparison: Comparison) -> str:
    """Both views and what they leave."""
    told = []
    for what, view in (("work view", comparison.work), ("kernel view", comparison.kernel)):
        whole = sum(term.seconds for term in view.terms)
        told.append(f"{what} {len(view.terms)} terms, {signed(whole)}, residual {rounding(view.residual)}")
    return "; ".join(told)


def rounding(residual: float) -> str:
    """A residual [s]."""
    return f"{residual:.0e} s" if snapped(residual) else "below 1 fs"


# ------------------------------------------------------------------------------------------------------------ table


def table(comparison: Comparison, most: int = _MOST) -> Table:
    """The terms of the work view by phase and block, with what is small in one row, and the gap.

    most: rows of places. The gap is told by cause where the causes of both runs are known: a cause of one alone would
    stand beside what may be the same in the other.
    """
    view = comparison.work
    found: dict[tuple[str | None, str | None], list[Term]] = {}
    for term in view.terms:
        if not term.kind.startswith("gap."):
            found.setdefault((term.phase, term.block), []).append(term)
    sums = {place: sum(term.seconds for term in terms) for place, terms in found.items()}
    kept, small = _parted(sums, most, abs(comparison.difference))
    one_phase = len({phase for phase, _ in found}) == 1
    rows = [
        _row(plain(block or "") if one_phase else _place(phase, block), comparison, found, [(phase, block)])
        for phase, block in kept
    ]
    if small:
        rows.append(_row(f"other places ({len(small)})", comparison, found, small))
    columns = [_sum(row.terms[number] for row in rows) for number in range(len(COLUMNS))]
    total = Row("total", tuple(columns), comparison.difference, comparison.ci95)
    return Table(tuple(rows), _gap(comparison), total, view.residual)


def _gap(comparison: Comparison) -> tuple[Row, ...]:
    causes = [term for term in comparison.work.terms if term.kind.startswith("gap.")]
    nothing = (None,) * len(COLUMNS)
    what = gap_name(comparison)
    if len(causes) > 1 and NOT_RESOLVED not in comparison.gap:
        return tuple(
            Row(f"{what}: {plain(term.kind.removeprefix('gap.'))}", nothing, term.seconds, term.ci95) for term in causes
        )
    drawn = sum(comparison.gap_drawn.values(), np.zeros(1))
    draws = comparison.work.a.draws, comparison.work.b.draws
    return (Row(what, nothing, sum(term.seconds for term in causes), interval(drawn, *draws)),)


def gap_name(comparison: Comparison) -> str:
    """What the gap is called: host time where both runs are on a CPU."""
    return "host time" if comparison.a.device.kind == comparison.b.device.kind == "cpu" else "gap"


def _place(phase: str | None, block: str | None) -> str:
    short = _PHASES.get(phase or "", plain(phase or ""))
    return plain(block or "") if phase == block else f"{short} {plain(block or '')}"


Places = list[tuple[str | None, str | None]]


def _parted(sums: Mapping[tuple[str | None, str | None], float], most: int, difference: float) -> tuple[Places, Places]:
    """The places that get a row of their own, the largest first, and those that share one."""
    ordered = sorted(sums, key=lambda place: -abs(sums[place]))
    least = _SMALL * max([difference, *(abs(each) for each in sums.values())])
    kept = [place for place in ordered[:most] if abs(sums[place]) >= least]
    small = ordered[len(kept) :]
    return (ordered, []) if len(small) == 1 else (kept, small)


def _row(label: str, comparison: Comparison, found: Mapping[object, list[Term]], places: Places) -> Row:
    terms = [term for place in places for term in found[place]]
    columns = [_sum(term.seconds for term in terms if term.kind in kinds) for _, kinds in COLUMNS]
    single = places[0] if len(places) == 1 else (None, None)
    view, wanted = comparison.work, set(places)
    drawn = _drawn(view.a, wanted) - _drawn(view.b, wanted)
    return Row(
        label, tuple(columns), sum(term.seconds for term in terms), interval(drawn, view.a.draws, view.b.draws), *single
    )


def _drawn(side: Side, places: set[tuple[str | None, str | None]]) -> np.ndarray:
    rows = [n for place, many in side.rows.items() if (place.phase, place.block) in places for n in many]
    numbers = np.asarray(rows, np.int64)
    return side.drawn_own(numbers) - side.drawn_overlap(numbers)


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


# ------------------------------------------------------------------------------------------------------ several runs


def headline(ranking: Ranking) -> str:
    """The sentence over several runs."""
    best = ranking.runs[ranking.fastest]
    slowest = ranking.order[-1]
    return (
        f"{subject(ranking.runs)}: of {len(ranking.runs)} runs {plain(ranking.names[ranking.fastest], 60)} is the "
        f"fastest, {units.seconds(best.wall)} per step; {plain(ranking.names[slowest], 60)} is the slowest, "
        f"{units.seconds(ranking.runs[slowest].wall)} ({factor(ranking.runs[slowest].wall / best.wall)})."
    )
