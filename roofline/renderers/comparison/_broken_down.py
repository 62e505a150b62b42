"""Compared ops in rows by class, op, kernel or another key: lines and words that formats and the figure share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from roofline import units
from roofline.analysis.bootstrap import FEWEST, Interval, interval
from roofline.comparison.breakdown.breakdown import Breakdown
from roofline.comparison.breakdown.rows import Ends, Row, Split, whole
from roofline.comparison.common_ceilings import same_device
from roofline.comparison.ranking import RankedPair
from roofline.core.schema import Profile
from roofline.renderers import _tables, _words
from roofline.renderers._names.distinct import distinct
from roofline.renderers._signed import Scale, scale, signed, snapped
from roofline.renderers.comparison import _comparing, _term_table

#: Ops that are told beside the table, and beside each of several pairs.
OBSERVED, FEW = 8, 3
#: How many times a row's number the largest one of a table may be, to be written in the same unit.
_DIGITS = 1e4
#: What goes first of the columns for want of room: the highest.
RANKS = {"A": 1, "B": 1, "A − B": 0, "ceilings": 4, "kernels": 3, "other": 5, "95 % interval": 2}
_PLURAL = {"class": "classes", "group": "groups", "phase": "phases", "source": "sources"}
LEGEND = (
    "A − B = ceilings + kernels + other. ceilings: the part of A − B that the devices' peak rates explain, of the "
    "same work (of ops at less than half of their roof, what their minimum times differ by; a range, up to that as "
    "many times as their time holds their minimum, where the run further above it attains more); kernels: the rest of "
    "that time, at another share of the roof; other: work of one run alone, or without a known minimum, and what ops "
    "share of an instant. Of every other range the first number holds if what fits a cache of known bandwidth came "
    "from it, the last if nothing did."
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line [s]. times: of A and B, None where it has none; split: None where it does not apply.

    name: what a profile calls it; None: the line is a sum of others.
    """

    label: str
    times: tuple[float | None, float | None]
    seconds: float
    ci95: Interval | None = None
    split: Split | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Lines:
    """Rows by size, the sum of the ops, the gap by cause, and the total."""

    rows: tuple[Line, ...]
    ops: Line
    gap: tuple[Line, ...]
    total: Line


def lines(pair: RankedPair, found: Breakdown) -> Lines:
    """What is shown of a breakdown; of keys without a natural end the largest rows, and the others in one."""
    most = _tables.TOP if found.by in _tables.LONG else len(found.rows)
    rows = [line(row) for row in found.rows[:most]]
    left = found.rows[most:]
    if left:
        rows.append(_together(f"({len(left)} more)", left))
    a, b = pair.comparison.a, pair.comparison.b
    every = _together("all ops", found.rows)
    drawn = pair.comparison.work.a.resamples, pair.comparison.work.b.resamples
    of_all = interval(drawn[0].busy - drawn[1].busy, *drawn)
    gap = tuple(
        Line(row.label, (None, None), row.seconds, row.ci95, name=row.label)
        for row in _term_table.gap_rows(pair.comparison)
    )
    total = Line("total", (a.wall, b.wall), pair.comparison.difference, pair.comparison.ci95)
    return Lines(tuple(rows), Line(every.label, (a.busy, b.busy), every.seconds, of_all, every.split), gap, total)


def line(row: Row) -> Line:
    """A row as it is shown."""
    a, b = (None if part is None else part.seconds for part in row.parts)
    seconds = snapped(row.seconds, max(a or 0.0, b or 0.0))
    return Line(_words.plain(row.label) or "(none)", (a, b), seconds, row.ci95, row.split, row.label)


def _together(label: str, rows: Sequence[Row]) -> Line:
    times = [[part.seconds for row in rows if (part := row.parts[side])] for side in (0, 1)]
    splits = [row.split for row in rows if row.split is not None]
    split = None
    if splits:
        ceilings, kernels = (
            (sum(end[0] for end in ends), sum(end[1] for end in ends))
            for ends in ([each.ceilings for each in splits], [each.kernels for each in splits])
        )
        split = Split(ceilings, kernels, sum(each.unshared for each in splits))
    a, b = (sum(each) if each else None for each in times)
    return Line(label, (a, b), snapped(sum(row.seconds for row in rows), max(a or 0.0, b or 0.0)), None, split)


# ------------------------------------------------------------------------------------------------------------- cells


def scale_of(rows: Sequence[Line], sums: Sequence[Line] = ()) -> Scale:
    """One unit for all numbers of some lines, so that they can be added: that of the rows, not of the gap and the step.

    Ops that are next to nothing of their step are in its unit all the same: a number has no ten digits.
    """
    fine, whole = (max(_times(some), default=0.0) for some in (rows, (*rows, *sums)))
    return scale([fine if whole <= _DIGITS * fine else whole])


def _times(some: Sequence[Line]) -> list[float]:
    times = [time for one in some for time in (one.seconds, *one.times, *(one.ci95 or ()))]
    parts = [each for one in some if one.split for each in (*one.split.ceilings, *one.split.kernels)]
    return [abs(time) for time in (*times, *parts) if time]


def cells(some: Sequence[Line], written: Scale) -> list[list[str]]:
    """The heads of the columns and a list of cells for each line; what would be 0 or empty in all lines is left out."""
    heads = ["A", "B", "A − B", "ceilings", "kernels", "other", "95 % interval"]
    found = [_cells(each, written) for each in some]
    kept = [
        column
        for column in range(len(heads))
        if column < 3 or any(any(digit in "123456789" for digit in row[column]) for row in found)
    ]
    return [[row[column] for column in kept] for row in (heads, *found)]


def labels(some: Sequence[Line], room: int | None, by: str, made: Callable[[str], str] = _words.plain) -> list[str]:
    """What is written for each line in `room` letters; no two names are alike. made: as in `distinct`."""
    names = iter(distinct([each.name for each in some if each.name is not None], room, by, made))
    return [each.label if each.name is None else next(names) or each.label for each in some]


def _cells(one: Line, written: Scale) -> list[str]:
    times = ["" if time is None else written.write(time).lstrip("+") for time in one.times]
    split = ["", "", ""]
    if one.split is not None and not any((*one.split.ceilings, *one.split.kernels)):
        split[2] = written.write(one.split.unshared)  # nothing that both runs do
    elif one.split is not None:
        split = [
            _range(one.split.ceilings, written),
            _range(one.split.kernels, written),
            written.write(one.split.unshared),
        ]
    return [*times, written.write(one.seconds), *split, written.between(one.ci95)]


def _range(ends: Ends, written: Scale) -> str:
    low, high = (written.write(end) for end in ends)
    return low if low == high else f"{low} to {high}"


# --------------------------------------------------------------------------------------------------------- sentences


def why(pair: RankedPair) -> str:
    """Why the rows are what they are, of a key that nobody asked for; empty of others."""
    found = pair.breakdown
    if found is None or not found.why:
        return ""
    return f"{found.why}, so that the rows are {_rows(found)}; --by block|scope|class|op|kernel chooses others."


def _rows(found: Breakdown) -> str:
    return _PLURAL.get(found.by, f"{found.by}s")


def unresolved(pair: RankedPair) -> str:
    """Say that runs of too few steps resolve nothing; empty of others."""
    if pair.comparison.ci95 is not None:
        return ""
    numbers = [_steps(run.profile) for run in (pair.comparison.a, pair.comparison.b)]
    few = f"{_words.counted(numbers[0], 'step')} of A and {_words.counted(numbers[1], 'step')} of B"
    return (
        f"With {few} no difference can be told from noise, which takes {FEWEST} of each: what stands below was "
        "observed in these steps, and others may differ."
    )


def _steps(profile: Profile) -> int:
    kept = len(profile.profiled.corrected) if profile.profiled else 0
    return min(len(profile.wall.steps), kept)


def asked(pair: RankedPair) -> Breakdown | None:
    """The rows by a key that the user asked for."""
    return pair.breakdown if pair.breakdown is not None and not pair.breakdown.why else None


def observed(pair: RankedPair, most: int, table: Breakdown | None) -> tuple[tuple[Line, ...], str]:
    """The ops that differ most, and a sentence that says what they are.

    Nothing where none are told, none differ, or the `table` that follows has the same rows.
    """
    found = pair.observations
    if found is None or (table is not None and table.by == found.by):
        return (), ""
    rows = tuple(line(row) for row in found.rows[:most] if snapped(row.seconds))
    both = [units.percent(share, 0) for share in found.common]
    told = f"{both[0]} of A's time and {both[1]} of B's is in {_rows(found)} that both have"
    return rows, f"Where the runs differ most, by {found.by} ({told}):"


def legend(pair: RankedPair) -> str:
    """What the columns of the table are; empty where they say it themselves."""
    if pair.breakdown is None:
        ranges = any(_words.is_range(run) for run in (pair.comparison.a, pair.comparison.b))
        return _term_table.LEGEND + _term_table.LOWER_ENDS * ranges
    splits = [row.split for row in pair.breakdown.rows if row.split is not None]
    return LEGEND if any(any((*each.ceilings, *each.kernels, each.unshared)) for each in splits) else ""


def hardware(pair: RankedPair) -> str:
    """Of runs on different devices, what the ceilings and what the kernels make of the difference of all ops."""
    found = pair.comparison
    if same_device(found.a.profile, found.b.profile):
        return ""
    sides = (found.a, found.b)
    names = [_words.device(run) for run in sides]
    devices = " against ".join(names)
    blank = [name for name, run in zip(names, sides, strict=True) if not run.device.ceilings]
    if blank:
        told = f"no ceilings are known of {_words.conjunction(blank)}, so that"
        return f"{devices}: {told} hardware and kernels cannot be told apart."
    # Of a table by another key the same work may be split at other borders: one output tells one split.
    split = whole(found) if pair.breakdown is None else _together("", pair.breakdown.rows).split
    if split is None:
        return ""
    parts = [_amount(split.ceilings), _amount(split.kernels), signed(split.unshared)]
    gap = f"{signed(sum(row.seconds for row in _term_table.gap_rows(found)))} the {_term_table.gap_name(found)}"
    return (
        f"{devices}: of {signed(found.difference)}, {parts[0]} is the ceilings of the devices, {parts[1]} the kernels' "
        f"distance from them, {parts[2]} other work or work without a minimum, and {gap}."
    )


def _amount(ends: Ends) -> str:
    low, high = map(signed, ends)
    return low if low == high else f"{low} to {high}"


def told(pair: RankedPair, row: Row) -> str:
    """A row in a sentence that says what each run spends, and no more."""
    spent = [
        f"{_comparing.name(pair, side)} has none" if part is None else
        f"{_comparing.name(pair, side)} spends {units.seconds(part.seconds)}"
        for side, part in enumerate(row.parts)
    ]  # fmt: skip
    return f"{_words.plain(row.label, 300) or '(none)'}: {_words.conjunction(spent)}."
