"""Build the first table of a write-up: where the work is, where the time went, and which roof limits it.

Rows close to the wall: the ops by a key, the gap, and their total. A step that was counted and not timed has a table of
its work alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roofline import units
from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.analysis.caches.counted import counters_on
from roofline.analysis.totals import Total, WorkTotal
from roofline.content.choice import LONG as LONG
from roofline.content.choice import OPS as OPS
from roofline.content.choice import TOP as TOP
from roofline.content.choice import USUAL, Choice, chosen, shown_name
from roofline.core.vocabulary import BOUNDS, Bound

#: One flag per op of a profile.
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Times:
    """Times of the ops under one bound [s]; seconds is share time, floor + loss is own time.

    floor to reach: the range of the floor, where the contents of the caches or the time of a launch are not known.
    turning: the part of `seconds` that has another roof above it at the upper end.
    """

    seconds: float
    floor: float
    reach: float
    loss: float
    turning: float

    def __add__(self, times: Times) -> Times:
        return Times(*(getattr(self, field) + getattr(times, field) for field in self.__slots__))

    @property
    def closing(self) -> Times:
        """Scale floor and loss so that they add up to `seconds`: ops that overlapped count by their share.

        Own times of ops that ran at once are more than the time that they ran in; each part is less in proportion.
        """
        own_seconds = self.floor + self.loss
        proportion = self.seconds / own_seconds if own_seconds > 0 else 0.0
        return Times(
            self.seconds, self.floor * proportion, self.reach * proportion, self.loss * proportion, self.turning
        )

    @property
    def pieces(self) -> tuple[float, float, float]:
        """Split `seconds` into the floor, what may be floor or above it, and the rest: what is drawn of a bar [s].

        Ops that ran faster than their floors fill their time; the words say by how much.
        """
        floor, reach = (min(self.seconds, end) for end in (self.closing.floor, self.closing.reach))
        return floor, reach - floor, self.seconds - reach

    @property
    def attained(self) -> float | None:
        """Return floor / own time; None where nothing is costed."""
        own_seconds = self.floor + self.loss
        return self.floor / own_seconds if self.reach > 0 and own_seconds > 0 else None

    @property
    def attained_high(self) -> float | None:
        """Return the upper end of that share."""
        own_seconds = self.floor + self.loss
        return self.reach / own_seconds if self.reach > 0 and own_seconds > 0 else None


def split(analysis: Analysis, among: Mask | None = None) -> dict[Bound, Times]:
    """Split the busy time by bound. Uncosted time is under `unknown`, which has no floor and no loss.

    among: the ops that count, one flag per op; all where it is None.
    """
    table = analysis.table
    turning = table.share * (table.bound_high != table.bound)
    bounds = table.bound if among is None else table.bound[among]
    sums = [
        np.bincount(bounds, weights=weights if among is None else weights[among], minlength=len(BOUNDS))
        for weights in (table.share, table.floor, table.floor_reach, table.loss, turning)
    ]
    return {name: Times(*(float(values[code]) for values in sums)) for code, name in enumerate(BOUNDS)}


def split_at_upper_end(analysis: Analysis, among: Mask | None = None) -> dict[Bound, Times]:
    """Split with the highest floors, as if no cache held anything before: each op under its roof there."""
    table = analysis.table
    own_seconds = table.floor + table.loss
    bounds = table.bound_high if among is None else table.bound_high[among]
    seconds, reach, loss = (
        np.bincount(bounds, weights=weights if among is None else weights[among], minlength=len(BOUNDS)).tolist()
        for weights in (table.share, table.floor_reach, own_seconds - table.floor_reach)
    )
    return {
        name: Times(seconds[code], reach[code], reach[code], loss[code], turning=0.0)
        for code, name in enumerate(BOUNDS)
    }


def ends(times: Times, upper: Times) -> tuple[Times, Times, Times]:
    """Return the ops under one bound at the lower end, these at the upper end, and those under it at the upper end.

    times: by `split`; upper: by `split_at_upper_end`, where other ops may be under it. Each closes.
    """
    low = times.closing
    return low, replace(low, floor=low.reach, loss=low.loss - (low.reach - low.floor)), upper.closing


def attained(times: Times, upper: Times) -> tuple[float, float] | None:
    """Return the range that ops attain of the roof above them, of one bound; None where nothing is costed.

    times: by `split`; upper: by `split_at_upper_end`, where other ops may be under it. Which ops a cache served is open
    for each of them, so that it may be either end, or the ops of the first with the floors of the other.
    """
    shares = [share for share in (times.attained, times.attained_high, upper.attained) if share is not None]
    return (min(shares), max(shares)) if shares else None


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table. flops, bytes: shares of the step's known work; time, floor, loss: shares of the wall.

    busy: share of the time in which any op runs. floor_high, attained_high: the upper ends of ranges. attained: None
    also where over half of its time has no floor. rate: attained FLOP/s relative to the step's matmuls. bound: holds
    most of its time; roof: the same in words, empty for the gap and the total. None is unknown or does not apply.
    parts: what was fused into its ops. named: whether the label is a name of the profile, and not a sum or the gap.
    moved, counted: compulsory bytes, and those that hardware counters saw, of main memory; partly: whether these are
    not of all of its ops.
    """

    label: str
    ops: int | None
    flops: float | None
    bytes: float | None
    seconds: float | None
    time: float | None
    floor: float | None
    loss: float | None
    rate: float | None
    roof: str
    attained: float | None
    busy: float | None = None
    floor_high: float | None = None
    attained_high: float | None = None
    bound: Bound = "unknown"
    parts: tuple[str, ...] = ()
    named: bool = False
    moved: float | None = None
    counted: float | None = None
    partly: bool = False


@dataclass(frozen=True, slots=True)
class WorkRow:
    """A line of a table of work. flops, bytes: shares of the step's known work; None is unknown.

    model, executed, vector: FLOP; read, written: bytes. parts, named: as of a `Row`.
    """

    label: str
    ops: int
    flops: float | None
    bytes: float | None
    model: float | None
    executed: float | None
    vector: float | None
    read: float | None
    written: float | None
    parts: tuple[str, ...] = ()
    named: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column: heading (lines of it), the function that writes a cell, whether it holds numbers, and its rank.

    cell: of a `Row`, or of a `WorkRow` in a table of work. rank: the highest goes first for want of room, 0 stays;
    in_paper: the same in a paper, where it differs: minimum and above add up to a row's share of the step. about: what
    a caption says of it. in_one_unit: writes all of its cells, where these have units; None: as `cell`.
    """

    heading: str
    cell: Callable[[Any], str]
    number: bool = True
    rank: int = 0
    about: str = ""
    in_one_unit: Callable[[Sequence[Any]], list[str]] | None = None
    in_paper: int | None = None

    @property
    def name(self) -> str:
        """Write the heading on one line."""
        return self.heading.replace("\n", " ")

    def cells(self, rows: Sequence[Any]) -> list[str]:
        """Write the cells of a column, amounts all in the unit of the largest."""
        return [self.cell(row) for row in rows] if self.in_one_unit is None else self.in_one_unit(rows)


def amounts(
    heading: str,
    amount: Callable[[Any], float | None],
    unit: str,
    rank: int = 0,
    about: str = "",
    mark: Callable[[Any], str] = lambda row: "",
) -> Column:
    """Make a column of amounts [unit]: s, FLOP or B. mark: what stands before each."""
    write = units.seconds if unit == "s" else partial(units.scaled, unit=unit)

    def in_one_unit(rows: Sequence[Any]) -> list[str]:
        values = [amount(row) for row in rows]
        largest = max((abs(value) for value in values if value is not None), default=0.0)
        write_all = units.seconds_unit(largest) if unit == "s" else units.scaled_unit(largest, unit)
        return [f"{mark(row)}{write_all(value)}" for row, value in zip(rows, values, strict=True)]

    return Column(heading, lambda row: f"{mark(row)}{write(amount(row))}", True, rank, about, in_one_unit)


def fused(parts: Sequence[str]) -> str:
    """List the ops fused into those of a row, in brackets; "" where there are none."""
    return f"[{', '.join(part.removeprefix('aten::') for part in parts)}]" if parts else ""


def percent(share: float | None) -> str:
    """Write a share without the sign: the heading has it."""
    text = units.percent(share).removesuffix(" %")
    return "0.0" if text == "-0.0" else text


def between(low: float | None, high: float | None) -> str:
    """Write a share, or its range, without the sign: in whole percents where these tell its ends apart."""
    first = percent(low)
    if low is None or high is None or low == high or first == (last := percent(high)):
        return first
    if round(100 * low) == round(100 * high):
        return f"{first}–{last}"
    return f"{round(100 * low)}–{round(100 * high)}"


def _loss(row: Row) -> str:
    if row.floor is None or row.floor_high is None or row.loss is None:
        return percent(row.loss)
    return between(row.loss - (row.floor_high - row.floor), row.loss)


def relative(value: float | None) -> str:
    """Write a ratio to the matmuls."""
    if value is None:
        return units.UNKNOWN
    return "0" if value == 0 else "<0.001" if value < 0.0005 else f"{value:.3f}"


#: Of the lines of captions.
_OF_WORK, _OF_STEP = "share of the known work", "share of the step"
COLUMNS = (
    Column("FLOP\n%", lambda row: percent(row.flops), rank=4, about=_OF_WORK, in_paper=12),
    Column("bytes\n%", lambda row: percent(row.bytes), rank=5, about=_OF_WORK, in_paper=7),
    amounts("time", lambda row: row.seconds, "s"),
    Column("time\n%", lambda row: percent(row.time), rank=1, about=_OF_STEP, in_paper=11),
    Column("% of\nbusy", lambda row: percent(row.busy), rank=9, about="share of the time in which any op runs"),
    Column(
        "minimum\n%",
        lambda row: between(row.floor, row.floor_high),
        rank=6,
        about="least time on this device, share of the step",
    ),
    Column("above\n%", _loss, rank=7, about="own time − minimum, share of the step"),
    Column("FLOP/s\nvs matmul", lambda row: relative(row.rate), rank=8, about="rate over that of the matmuls"),
    Column(
        "limited\nby", lambda row: row.roof or units.UNKNOWN, number=False, rank=3, about="roof that sets the minimum"
    ),
    Column("of roof\n%", lambda row: between(row.attained, row.attained_high), rank=2, about="minimum / own time"),
)
#: What stands behind them, where hardware counted the bytes of ops.
_COUNTED = (
    amounts("bytes\nto move", lambda row: row.moved, "B", rank=4, about="the least by the ops' formulas"),
    amounts(
        "bytes\ncounted",
        lambda row: row.counted,
        "B",
        rank=4,
        about="to and from main memory, by hardware counters",
        mark=lambda row: "≥ " if row.partly else "",
    ),
)
#: What stands first in tables with long names.
NUMBER = Column("ops", lambda row: "" if row.ops is None else units.count(row.ops), rank=10)
WORK_COLUMNS = (
    Column("ops", lambda row: units.count(row.ops), rank=3),
    amounts("model\nFLOP", lambda row: row.model, "FLOP", rank=6, about="what the program asks for"),
    amounts("executed\nFLOP", lambda row: row.executed, "FLOP", rank=2, about="what runs"),
    amounts("vector\nFLOP", lambda row: row.vector, "FLOP", rank=7, about="what is no matmul"),
    Column("FLOP\n%", lambda row: percent(row.flops), about=_OF_WORK),
    amounts("read", lambda row: row.read, "B", rank=4),
    amounts("written", lambda row: row.written, "B", rank=5),
    Column("bytes\n%", lambda row: percent(row.bytes), rank=1, about=_OF_WORK),
)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows and their columns. sums: number of the last rows that say that the others add up, each below a rule."""

    columns: tuple[Column, ...]
    rows: Sequence[Row | WorkRow]
    sums: int


def table(analysis: WorkAnalysis, by: str, gap: str, choice: Choice = USUAL) -> Table:
    """Build the table by a key: of a timed step its time and work, else its work alone. gap: the name of the gap."""
    if isinstance(analysis, Analysis):
        columns = COLUMNS if counters_on(analysis.profile, analysis.device) is None else (*COLUMNS, *_COUNTED)
        return Table(_of_known(columns, analysis.coverage), rows(analysis, by, gap, choice), 2)
    return Table(WORK_COLUMNS, work_rows(analysis, by, choice), 1)


def _of_known(columns: Sequence[Column], coverage: Mapping[str, float | None]) -> tuple[Column, ...]:
    """Say in the headings of shares of work that these are of the known work, where not nearly all is known."""
    partly_known = {
        f"{kind}\n%"
        for kind, share in (("FLOP", coverage["flops"]), ("bytes", coverage["bytes"]))
        if share is None or not units.is_whole(share)
    }
    return tuple(
        replace(column, heading=f"known\n{column.heading.replace(chr(10), ' ')}")
        if column.heading in partly_known
        else column
        for column in columns
    )


def work_rows(analysis: WorkAnalysis, by: str, choice: Choice = USUAL) -> list[WorkRow]:
    """Build the rows of work by a key, the others summed in one more, and the total."""
    chosen_rows = chosen(analysis, by, choice)
    return [
        *(
            replace(
                _work_row(analysis, shown_name(analysis, by, label), total),
                parts=chosen_rows.fused.get(label, ()),
                named=True,
            )
            for label, total in chosen_rows.shown.items()
        ),
        *(_work_row(analysis, label, total) for label, total in chosen_rows.remainders),
        _work_row(analysis, "total", analysis.total),
    ]


def _work_row(analysis: WorkAnalysis, label: str, total: WorkTotal) -> WorkRow:
    if not total.costed:
        return WorkRow(label, total.ops, None, None, None, None, None, None, None)
    step = analysis.total
    return WorkRow(
        label,
        total.ops,
        _share(total.flops + total.vector_flops, step.flops + step.vector_flops),
        _share(total.bytes_read + total.bytes_written, step.bytes_read + step.bytes_written),
        total.model_flops,
        total.flops,
        total.vector_flops,
        total.bytes_read,
        total.bytes_written,
    )


def rows(analysis: Analysis, by: str, gap: str, choice: Choice = USUAL) -> list[Row]:
    """Build the rows by a key, the others summed in one more, the gap (called `gap`) and the total."""
    selection = chosen(analysis, by, choice)
    matmul = analysis.by("group").get("matmul")
    rate = matmul.flop_rate if matmul else None
    table = [
        _row(analysis, shown_name(analysis, by, label), total, rate, selection.fused.get(label, ()))
        for label, total in selection.shown.items()
    ]
    table = [replace(row, named=True) for row in table]
    # What many ops have in common is no roof.
    table += [replace(_row(analysis, label, total, rate), roof="") for label, total in selection.remainders]
    wall, gap_seconds = analysis.wall, analysis.gap_told
    gap_share = None if gap_seconds is None else gap_seconds / wall
    table.append(Row(gap, None, None, None, gap_seconds, gap_share, None, None, None, "", None))
    total = _row(analysis, "total", analysis.total, rate)
    return [*table, replace(total, seconds=wall, time=1.0, roof="", bound="unknown")]


def _row(analysis: Analysis, label: str, total: Total, matmul_rate: float | None, parts: tuple[str, ...] = ()) -> Row:
    step = analysis.total
    costed = total.own_seconds > total.uncosted
    known_flops = total.own_seconds > total.unknown_flops
    known_bytes = total.own_seconds > total.unknown_bytes
    rate = total.flop_rate if known_flops else None
    return Row(
        label=label,
        ops=total.ops,
        flops=_share(total.flops + total.vector_flops, step.flops + step.vector_flops) if known_flops else None,
        bytes=_share(total.bytes_read + total.bytes_written, step.bytes_read + step.bytes_written)
        if known_bytes
        else None,
        seconds=total.seconds,
        time=total.seconds / analysis.wall,
        floor=total.floor / analysis.wall if costed else None,
        loss=total.loss / analysis.wall if costed else None,
        rate=rate / matmul_rate if rate is not None and matmul_rate else None,
        roof="near ridge" if total.near_ridge > total.seconds / 2 else total.bound,
        attained=total.attained if total.mostly_costed else None,
        busy=_share(total.seconds, analysis.busy),
        floor_high=total.floor_reach / analysis.wall if costed else None,
        attained_high=total.attained_high if total.mostly_costed else None,
        bound=total.bound,
        parts=parts,
        moved=total.bytes_read + total.bytes_written if known_bytes else None,
        counted=total.counted_read + total.counted_written if total.counted else None,
        partly=total.counted > 0 and total.uncounted > 0,
    )


def _share(part: float, total: float) -> float | None:
    return part / total if total else None
