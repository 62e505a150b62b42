"""Build the first table of a write-up: where the work is, where the time went, and which roof limits it.

Rows close to the wall: the ops by a key, the gap, and their total. A step that was counted and not timed has a table of
its work alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from roofline import units
from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.analysis.caches.counted import counters_on
from roofline.analysis.totals import Total, WorkTotal
from roofline.content.choice import LONG as LONG
from roofline.content.choice import OPS as OPS
from roofline.content.choice import TOP as TOP
from roofline.content.choice import USUAL, Choice, chosen
from roofline.content.grid import Grid
from roofline.content.names.distinct import distinct
from roofline.content.wording import gap_name, plain
from roofline.core.vocabulary import Bound


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


def above(floor: float | None, reach: float | None, loss: float | None) -> str:
    """Write what is above a minimum that is a range from `floor` to `reach`, as shares without the sign."""
    if floor is None or reach is None or loss is None:
        return percent(loss)
    return between(loss - (reach - floor), loss)


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
    Column(
        "above\n%",
        lambda row: above(row.floor, row.floor_high, row.loss),
        rank=7,
        about="own time − minimum, share of the step",
    ),
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

    def names(self, room: int | None, by: str, sanitize: Callable[[str], str] = plain) -> list[str]:
        """Write the label of each row in so many letters, as `distinct` does; no two names are alike."""
        names = iter(distinct([row.label for row in self.rows if row.named], room, by, sanitize))
        return [next(names) if row.named else sanitize(row.label) for row in self.rows]


def table(analysis: WorkAnalysis, by: str, choice: Choice = USUAL) -> Table:
    """Build the table by a key: of a timed step its time and work, else its work alone."""
    if isinstance(analysis, Analysis):
        columns = COLUMNS if counters_on(analysis.profile, analysis.device) is None else (*COLUMNS, *_COUNTED)
        return Table(_of_known(columns, analysis.coverage), rows(analysis, by, choice), 2)
    return Table(WORK_COLUMNS, work_rows(analysis, by, choice), 1)


def grid(
    analysis: WorkAnalysis,
    by: str,
    choice: Choice = USUAL,
    *,
    numbered: bool = False,
    without: Collection[str] = (),
    paper: bool = False,
) -> Grid:
    """Write the table by a key.

    numbered: with the number of ops in a row, of keys with long names. without: names of columns to leave out. paper:
    all amounts of a column in one unit, and columns ranked as there.
    """
    content, is_long = table(analysis, by, choice), by in LONG
    rows, columns = content.rows, [column for column in content.columns if column.name not in without]
    if numbered and is_long and isinstance(analysis, Analysis):
        columns.insert(0, NUMBER)
    cells = [column.cells(rows) if paper else [column.cell(row) for row in rows] for column in columns]
    return Grid(
        by,
        "",
        [column.heading for column in columns],
        list(zip(*cells, strict=True)),
        ranks=[column.in_paper if paper and column.in_paper is not None else column.rank for column in columns],
        about=[column.about for column in columns],
        labels=[plain(row.label) for row in rows],
        names=lambda room, sanitize: content.names(room, by, sanitize),
        rules=tuple(range(len(rows) - content.sums, len(rows))),
        last=is_long,
        words=[number for number, column in enumerate(columns) if not column.number],
        parts=[plain(fused(row.parts)) for row in rows],
    )


def says_shares(coverage: float | None) -> bool:
    """Tell whether shares of the known work say something of the step: where that is known for half of the time.

    coverage: the share of the busy time of which it is known, None for none.
    """
    return 2 * (coverage or 0.0) >= 1


def _of_known(columns: Sequence[Column], coverage: Mapping[str, float | None]) -> tuple[Column, ...]:
    """Say in the headings of shares of work that these are of the known work, where not nearly all is known.

    Shares that say nothing of the step are left out (`says_shares`).
    """
    known = {"FLOP\n%": coverage["flops"], "bytes\n%": coverage["bytes"]}
    partly_known = {heading for heading, share in known.items() if share is None or not units.is_whole(share)}
    columns = [column for column in columns if says_shares(known.get(column.heading, 1.0))]
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
                _work_row(analysis, label, total),
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


def rows(analysis: Analysis, by: str, choice: Choice = USUAL) -> list[Row]:
    """Build the rows by a key, the others summed in one more, the gap and the total."""
    selection = chosen(analysis, by, choice)
    matmul = analysis.by("group").get("matmul")
    rate = matmul.flop_rate if matmul else None
    table = [
        _row(analysis, label, total, rate, selection.fused.get(label, ())) for label, total in selection.shown.items()
    ]
    table = [replace(row, named=True) for row in table]
    # What many ops have in common is no roof.
    table += [replace(_row(analysis, label, total, rate), roof="") for label, total in selection.remainders]
    wall, gap_seconds = analysis.wall, analysis.gap_told
    gap_share = None if gap_seconds is None else gap_seconds / wall
    table.append(Row(gap_name(analysis), None, None, None, gap_seconds, gap_share, None, None, None, "", None))
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
