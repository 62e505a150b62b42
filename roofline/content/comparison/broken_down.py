"""Compared ops in rows by class, op, kernel or another key: lines and words that formats and the figure share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from roofline import units
from roofline.analysis.bootstrap import FEWEST, Interval, interval
from roofline.comparison.breakdown.breakdown import Breakdown
from roofline.comparison.breakdown.rows import Ends, Row, Split, split_busy
from roofline.comparison.common_ceilings import same_device
from roofline.comparison.ranking import RankedPair
from roofline.content import tables, wording
from roofline.content.comparison import comparing, term_table
from roofline.content.grid import Grid
from roofline.content.names.distinct import distinct
from roofline.content.signed import Scale, scale, signed, snapped
from roofline.core.schema import Profile

#: Ops that are told beside the table, and beside each of several pairs.
OBSERVED, FEW = 8, 3
#: How many times a row's number the largest one of a table may be, to be written in the same unit.
_DIGITS = 1e4
#: What goes first of the columns for want of room: the highest.
RANKS = {"A": 1, "B": 1, "A − B": 0, "ceilings": 4, "kernels": 3, "other": 5, "95 % interval": 2}
_PLURAL = {"class": "classes", "group": "groups", "phase": "phases", "source": "sources"}
#: What a caption says of the columns.
ABOUT = {
    "ceilings": "the part that the devices' peak rates explain, of work that both runs do",
    "kernels": "the rest of the time of that work, which reaches another share of its roof",
    "other": "work of one run alone or without a known minimum time, and time that ops share",
}
_ABOUT_ALL = " ".join(f"{name.capitalize()}: {about}." for name, about in ABOUT.items())
_RANGES = (
    "A part is a range where ops are below half of their roof and one run's kernels are worse by their share of it, "
    "the other's by their time above the minimum; and where it is not recorded what the caches held: the first number "
    "holds if all that fits a cache came from it, the last if nothing did."
)
LEGEND = f"A − B = ceilings + kernels + other. {_ABOUT_ALL} {_RANGES}"


@dataclass(frozen=True, slots=True)
class Line:
    """A line [s]. times: of A and B, None where it has none; split: None where it does not apply.

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


def lines(pair: RankedPair, breakdown: Breakdown) -> Lines:
    """Return the lines of a breakdown; of keys without a natural end the largest rows, and the others in one."""
    limit = tables.TOP if breakdown.by in tables.LONG else len(breakdown.rows)
    rows = [line(row) for row in breakdown.rows[:limit]]
    grouped = breakdown.rows[limit:]
    if grouped:
        rows.append(_together(f"({len(grouped)} more)", grouped))
    a, b = pair.comparison.a, pair.comparison.b
    every = _together("all ops", breakdown.rows)
    drawn = pair.comparison.work.a.resamples, pair.comparison.work.b.resamples
    of_all = interval(drawn[0].busy - drawn[1].busy, *drawn, kind="ops")
    gap = tuple(
        Line(row.label, (None, None), row.seconds, row.ci95, name=row.label)
        for row in term_table.gap_rows(pair.comparison)
    )
    total = Line("total", (a.wall, b.wall), pair.comparison.difference, pair.comparison.ci95)
    return Lines(tuple(rows), Line(every.label, (a.busy, b.busy), every.seconds, of_all, every.split), gap, total)


def line(row: Row) -> Line:
    """Make a line of a row."""
    a, b = (None if part is None else part.seconds for part in row.parts)
    seconds = snapped(row.seconds, max(a or 0.0, b or 0.0))
    return Line(wording.plain(row.label) or "(none)", (a, b), seconds, row.ci95, row.split, row.label)


def _together(label: str, rows: Sequence[Row]) -> Line:
    times = [[part.seconds for row in rows if (part := row.parts[side])] for side in (0, 1)]
    splits = [row.split for row in rows if row.split is not None]
    split = None
    if splits:
        ceilings, kernels = (
            (sum(end[0] for end in ends), sum(end[1] for end in ends))
            for ends in ([split.ceilings for split in splits], [split.kernels for split in splits])
        )
        split = Split(ceilings, kernels, sum(split.unshared for split in splits))
    a, b = (sum(seconds) if seconds else None for seconds in times)
    return Line(label, (a, b), snapped(sum(row.seconds for row in rows), max(a or 0.0, b or 0.0)), None, split)


def differences(pair: RankedPair) -> Grid:
    """Write the table that adds up to the difference: the terms by phase and block, or the ops by another key."""
    if pair.breakdown is None:
        return term_table.grid(pair.comparison)
    by, content = pair.breakdown.by, lines(pair, pair.breakdown)
    return _grid(content.rows, (content.ops, *content.gap, content.total), by, last=by in tables.LONG)


def observed(pair: RankedPair, limit: int, table: Breakdown | None) -> tuple[Grid | None, str]:
    """Write the ops that differ most, and a sentence that says what they are.

    None where none are told, none differ, or the `table` that follows has the same rows.
    """
    breakdown = pair.observations
    if breakdown is None or (table is not None and table.by == breakdown.by):
        return None, ""
    rows = tuple(line(row) for row in breakdown.rows[:limit] if snapped(row.seconds))
    shares = [units.percent(share, 0) for share in breakdown.common]
    coverage = f"{shares[0]} of A's time and {shares[1]} of B's is in {_rows(breakdown)} that both have"
    sentence = f"Where the runs differ most, by {breakdown.by} ({coverage}):"
    return _grid(rows, (), breakdown.by, last=True) if rows else None, sentence


def _grid(shown: Sequence[Line], sums: Sequence[Line], by: str, *, last: bool) -> Grid:
    """Write some rows and their sums."""
    rows, in_unit = (*shown, *sums), scale_of(shown, sums)
    heads, *row_cells = cells(rows, in_unit)
    return Grid(
        by,
        in_unit.unit,
        heads,
        row_cells,
        ranks=[RANKS[head] for head in heads],
        about=[ABOUT.get(head, "") for head in heads],
        labels=[row.label for row in rows],
        names=lambda room, sanitize: labels(rows, room, by, sanitize),
        rules=(len(shown), len(shown) + 1, len(rows) - 1) if sums else (),
        last=last,
    )


# ------------------------------------------------------------------------------------------------------------- cells


def scale_of(rows: Sequence[Line], sums: Sequence[Line] = ()) -> Scale:
    """Choose one unit for all numbers of some lines, so that they add up: by the rows, not by the gap and the step.

    Ops that are next to nothing of their step are in its unit all the same: a number has no ten digits.
    """
    fine, coarse = (max(_times(run_lines), default=0.0) for run_lines in (rows, (*rows, *sums)))
    return scale([fine if coarse <= _DIGITS * fine else coarse])


def _times(shown: Sequence[Line]) -> list[float]:
    times = [time for row in shown for time in (row.seconds, *row.times, *(row.ci95 or ()))]
    parts = [part for row in shown if row.split for part in (*row.split.ceilings, *row.split.kernels)]
    return [abs(time) for time in (*times, *parts) if time]


def cells(shown: Sequence[Line], written: Scale) -> list[list[str]]:
    """Return the heads of the columns and the cells of each line, without columns that are 0 or empty throughout."""
    heads = ["A", "B", "A − B", "ceilings", "kernels", "other", "95 % interval"]
    row_cells = [_cells(line, written) for line in shown]
    columns = [
        column
        for column in range(len(heads))
        if column < 3 or any(any(digit in "123456789" for digit in row[column]) for row in row_cells)
    ]
    return [[row[column] for column in columns] for row in (heads, *row_cells)]


def labels(
    shown: Sequence[Line], room: int | None, by: str, sanitize: Callable[[str], str] = wording.plain
) -> list[str]:
    """Write the label of each line in `room` letters; no two names are alike. sanitize: as in `distinct`."""
    names = iter(distinct([row.name for row in shown if row.name is not None], room, by, sanitize))
    return [row.label if row.name is None else next(names) or row.label for row in shown]


def _cells(row: Line, written: Scale) -> list[str]:
    times = ["" if time is None else written.write(time).lstrip("+") for time in row.times]
    split = ["", "", ""]
    if row.split is not None and not any((*row.split.ceilings, *row.split.kernels)):
        split[2] = written.write(row.split.unshared)  # nothing that both runs do
    elif row.split is not None:
        split = [
            _range(row.split.ceilings, written),
            _range(row.split.kernels, written),
            written.write(row.split.unshared),
        ]
    return [*times, written.write(row.seconds), *split, written.between(row.ci95)]


def _range(ends: Ends, written: Scale) -> str:
    low, high = (written.write(end) for end in ends)
    return low if low == high else f"{low} to {high}"


# --------------------------------------------------------------------------------------------------------- sentences


def why(pair: RankedPair) -> str:
    """Say why the rows are what they are, of a key that nobody asked for; empty of others."""
    breakdown = pair.breakdown
    if breakdown is None or not breakdown.why:
        return ""
    return f"{breakdown.why}, so that the rows are {_rows(breakdown)}; --by block|scope|class|op|kernel chooses others."


def _rows(breakdown: Breakdown) -> str:
    return _PLURAL.get(breakdown.by, f"{breakdown.by}s")


def unresolved(pair: RankedPair) -> str:
    """Say what runs of too few steps do not resolve; empty of others."""
    comparison = pair.comparison
    numbers = [_steps(run.profile) for run in (comparison.a, comparison.b)]
    if min(numbers) >= FEWEST:
        return ""
    few = f"{wording.counted(numbers[0], 'step')} of A and {wording.counted(numbers[1], 'step')} of B"
    if all("ops" in side.resamples.known for side in (comparison.work.a, comparison.work.b)):
        gaps = "" if comparison.has_intervals else "; time without an op has none"
        return (
            f"With {few}, intervals are those by which calls of one op, and times from one op to the next, differ "
            f"within a step{gaps}. Other steps may differ by more ({FEWEST} of each would tell)."
        )
    what = "difference" if comparison.ci95 is None else "row below"
    return (
        f"With {few}, no {what} can be separated from noise (that needs {FEWEST} of each): the numbers below hold "
        "for these steps, and other steps may differ."
    )


def _steps(profile: Profile) -> int:
    profiled = len(profile.profiled.corrected) if profile.profiled else 0
    return min(len(profile.wall.steps), profiled)


def asked(pair: RankedPair) -> Breakdown | None:
    """Return the rows by a key that the user asked for."""
    return pair.breakdown if pair.breakdown is not None and not pair.breakdown.why else None


def legend(pair: RankedPair) -> str:
    """Explain the columns of the table; empty where they explain themselves."""
    if pair.breakdown is None:
        return f"{term_table.LEGEND} {remarks(pair)}"
    return LEGEND if remarks(pair) else ""


def remarks(pair: RankedPair) -> str:
    """Say what of the table is said of no column; empty where nothing is split."""
    if pair.breakdown is None:
        ranges = any(wording.is_range(run) for run in (pair.comparison.a, pair.comparison.b))
        return term_table.PHASES + term_table.LOWER_ENDS * ranges
    splits = [row.split for row in pair.breakdown.rows if row.split is not None]
    return _RANGES if any(any((*split.ceilings, *split.kernels, split.unshared)) for split in splits) else ""


def hardware(pair: RankedPair) -> str:
    """Say what ceilings and kernels make of the difference of all ops of runs on different devices."""
    comparison = pair.comparison
    if same_device(comparison.a.device, comparison.b.device):
        return ""
    sides = (comparison.a, comparison.b)
    names = [wording.device(run) for run in sides]
    devices = " against ".join(names)
    blank = [name for name, run in zip(names, sides, strict=True) if not run.device.ceilings]
    if blank:
        reason = f"the ceilings of {wording.conjunction(blank)} are not known, so"
        return f"{devices}: {reason} hardware and kernels cannot be separated."
    # Of a table by another key the same work may be split at other borders: one output tells one split.
    split = split_busy(comparison) if pair.breakdown is None else _together("", pair.breakdown.rows).split
    if split is None:
        return ""
    parts = [_amount(split.ceilings), _amount(split.kernels), signed(split.unshared)]
    gap = f"{signed(sum(row.seconds for row in term_table.gap_rows(comparison)))} the {term_table.gap_name(comparison)}"
    return (
        f"{devices}: of {signed(comparison.difference)}, the devices' ceilings explain {parts[0]} and the kernels' "
        f"distance from them {parts[1]}; {parts[2]} is other work or work without a minimum, and {gap}."
    )


def _amount(ends: Ends) -> str:
    low, high = map(signed, ends)
    return low if low == high else f"{low} to {high}"


def sentence(pair: RankedPair, row: Row) -> str:
    """Say in a sentence what each run spends in a row, and no more."""
    spent = [
        f"{comparing.name(pair, side)} has none" if part is None else
        f"{comparing.name(pair, side)} spends {units.seconds(part.seconds)}"
        for side, part in enumerate(row.parts)
    ]  # fmt: skip
    return f"{wording.plain(row.label, 300) or '(none)'}: {wording.conjunction(spent)}."
