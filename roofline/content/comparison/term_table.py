"""The table of terms of a comparison: places by the kind of their terms, then the gap. It adds up to the difference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from roofline.analysis.bootstrap import interval
from roofline.comparison.terms import NOT_RESOLVED, Comparison, Side, Term
from roofline.content.grid import Grid
from roofline.content.names.distinct import distinct
from roofline.content.signed import Interval, Scale, scale, snapped
from roofline.content.wording import plain

Places = list[tuple[str | None, str | None]]
#: A row below this share of the difference or the largest row, and all after so many, go to the other places.
_SMALL, _MOST = 0.01, 12
_WORK = "the minimum time of work that one run does more of, at the mean rate of both"
#: A heading of the table of terms, two lines of it, the kinds of terms in that column, and what these are. Each kind is
#: in one column.
COLUMNS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("compute\nwork", ("floor.compute.work",), _WORK),
    ("memory\nwork", ("floor.memory.work",), _WORK),
    ("launch\nwork", ("floor.launch.work",), _WORK),
    (
        "ceil-\nings",
        ("floor.compute.ceiling", "floor.memory.ceiling", "floor.launch.ceiling"),
        "the same work at another peak rate (hardware, precision, access pattern)",
    ),
    ("other\nroof", ("floor.rebinding",), "what changes where another ceiling limits an op"),
    ("above\nmin.", ("loss",), "own time − minimum time"),
    (
        "un-\ncosted",
        ("uncosted", "floor.unknown"),
        "time of ops of unknown work, and the minimum time of the other run's ops in their place",
    ),
    ("over-\nlap", ("overlap",), "time that ops share, subtracted"),
)
_PHASES = {"forward": "fwd", "backward": "bwd", "optimizer": "opt"}


def _legend() -> str:
    """Say what the columns are; the three of work in one sentence."""
    heads = {about: heading.replace("-\n", "").replace("\n", " ") for heading, _, about in COLUMNS}
    names = heads | {_WORK: "work"}
    columns = (f"{name[0].upper()}{name[1:]}: {about}." for about, name in names.items())
    return " ".join(["All numbers are A − B.", *columns])


#: Short names of rows.
PHASES = "fwd, bwd, opt: forward, backward, optimizer."
LEGEND = _legend()
#: What is added of runs whose floors are ranges.
LOWER_ENDS = (
    " Minimum times are ranges; here their lower ends stand, as if all that fits a cache came from it (--by class "
    "shows the ranges)."
)


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table of terms [s]. terms: sums by column, None where neither run has such a term.

    seconds is 0 where both runs spend the same, whatever rounding makes of it.
    """

    label: str
    terms: tuple[float | None, ...]
    seconds: float
    ci95: Interval | None


@dataclass(frozen=True, slots=True)
class Table:
    """Places by size, then the gap by cause. Rows add up to the difference."""

    places: tuple[Row, ...]
    gap: tuple[Row, ...]
    total: Row

    @property
    def rows(self) -> tuple[Row, ...]:
        """Return all lines but the total."""
        return (*self.places, *self.gap)

    @property
    def scale(self) -> Scale:
        """Choose one unit for all numbers, so that rows and columns can be added; columns may cancel in the sums."""
        rows = (*self.rows, self.total)
        return scale([value for row in rows for value in (row.seconds, *row.terms, *(row.ci95 or ())) if value])

    def columns(self, written: Scale) -> tuple[int, ...]:
        """Return the columns in which anything is not written as 0."""
        rows = (*self.places, self.total)
        return tuple(
            number
            for number in range(len(COLUMNS))
            if any(row.terms[number] is not None and float(written.write(row.terms[number])) for row in rows)
        )


def table(comparison: Comparison, limit: int = _MOST) -> Table:
    """Sum up the terms of the work view by phase and block, with what is small in one row, and the gap.

    limit: rows of places. The gap is told by cause where the causes of both runs are known: a cause of one alone would
    stand beside what may be the same in the other.
    """
    view = comparison.work
    by_place: dict[tuple[str | None, str | None], list[Term]] = {}
    for term in view.terms:
        if not term.kind.startswith("gap."):
            by_place.setdefault((term.phase, term.block), []).append(term)
    longer = _longer(comparison)
    sums = {place: snapped(sum(term.seconds for term in terms), longer) for place, terms in by_place.items()}
    large, small = _parted(sums, limit, _SMALL * abs(snapped(comparison.difference, longer)))
    one_phase = len({phase for phase, _ in by_place}) == 1
    rows = [
        _row(plain(block or "") if one_phase else _place(phase, block), comparison, by_place, [(phase, block)])
        for phase, block in large
    ]
    if small:
        rows.append(_row(f"other places ({len(small)})", comparison, by_place, small))
    columns = [_sum(row.terms[number] for row in rows) for number in range(len(COLUMNS))]
    total = Row("total", tuple(columns), comparison.difference, comparison.ci95)
    return Table(tuple(rows), gap_rows(comparison), total)


def gap_rows(comparison: Comparison) -> tuple[Row, ...]:
    """Return the gap, by cause where the causes of both runs are known."""
    causes = [term for term in comparison.work.terms if term.kind.startswith("gap.")]
    name = gap_name(comparison)
    # One run's cause would stand next to what may be the same in the other.
    if len(causes) < 2 or NOT_RESOLVED in comparison.gap:
        return (_row(name, comparison, {}, [], causes),)
    return tuple(
        _row(f"{name}: {plain(term.kind.removeprefix('gap.'))}", comparison, {}, [], [term]) for term in causes
    )


def gap_name(comparison: Comparison) -> str:
    """Return what the gap is called: host time where both runs are on a CPU."""
    return "host time" if comparison.a.device.kind == comparison.b.device.kind == "cpu" else "gap"


def _place(phase: str | None, block: str | None) -> str:
    short = _PHASES.get(phase or "", plain(phase or ""))
    return plain(block or "") if phase == block else f"{short} {plain(block or '')}"


def _parted(sums: Mapping[tuple[str | None, str | None], float], limit: int, least: float) -> tuple[Places, Places]:
    """Return the places that get a row of their own, the largest first, and those that share one."""
    ordered = sorted(sums, key=lambda place: -abs(sums[place]))
    least = max([least, *(_SMALL * abs(seconds) for seconds in sums.values())])
    large = [place for place in ordered[:limit] if abs(sums[place]) >= least]
    small = ordered[len(large) :]
    return (ordered, []) if len(small) == 1 else (large, small)


def _row(
    label: str,
    comparison: Comparison,
    by_place: Mapping[tuple[str | None, str | None], list[Term]],
    places: Places,
    causes: Sequence[Term] = (),
) -> Row:
    """Sum up places and causes of the gap in one row."""
    terms = [term for place in places for term in by_place[place]]
    columns = [_sum(term.seconds for term in terms if term.kind in kinds) for _, kinds, _ in COLUMNS]
    view, wanted = comparison.work, set(places)
    drawn = _drawn(view.a, wanted) - _drawn(view.b, wanted) if places else np.zeros(1)
    drawn = sum((comparison.gap[term.kind.removeprefix("gap.")][1:] for term in causes), drawn)
    return Row(
        label,
        tuple(columns),
        snapped(sum(term.seconds for term in (*terms, *causes)), _longer(comparison)),
        interval(drawn, view.a.resamples, view.b.resamples, kind="gap" if causes else "ops"),
    )


def _longer(comparison: Comparison) -> float:
    """Return the longer of both steps [s]."""
    return max(comparison.a.wall, comparison.b.wall)


def _drawn(side: Side, places: set[tuple[str | None, str | None]]) -> np.ndarray:
    rows = [n for place, many in side.rows.items() if (place.phase, place.block) in places for n in many]
    return side.drawn(np.asarray(rows, np.int64))


def _sum(values: Iterable[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) if numbers else None


def grid(comparison: Comparison) -> Grid:
    """Write the table; columns that hold nothing that would be written are left out."""
    terms = table(comparison)
    in_unit, rows = terms.scale, (*terms.rows, terms.total)
    numbers = terms.columns(in_unit)
    return Grid(
        "where",
        in_unit.unit,
        [*(COLUMNS[number][0] for number in numbers), "total", "95 % interval"],
        [_cells(row, numbers, in_unit) for row in rows],
        ranks=_ranks(terms, numbers),
        about=[*(COLUMNS[number][2] for number in numbers), "", ""],
        labels=[row.label for row in rows],
        names=lambda room, sanitize: [*_labels(terms, room, sanitize), terms.total.label],
        rules=(len(terms.places), len(rows) - 1),
    )


def _ranks(table: Table, numbers: Sequence[int]) -> list[int]:
    """Rank the columns, the highest of which goes first for want of room: the smallest terms, last the interval."""
    sizes = [sum(abs(row.terms[number] or 0.0) for row in table.places) for number in numbers]
    order = sorted(range(len(sizes)), key=lambda place: -sizes[place])
    return [*(2 + order.index(place) for place in range(len(sizes))), 0, 1]


def _labels(table: Table, room: int | None, sanitize: Callable[[str], str]) -> list[str]:
    """Write the label of each row but the total in `room` letters; no two names are alike. sanitize: as in `distinct`.

    Where names are too long, causes of the gap go without its name: a rule stands before them.
    """
    names = [row.label for row in table.rows]
    if room is not None and max(map(len, names), default=0) > room:
        causes = (row.label.partition(": ")[2] or row.label for row in table.gap)
        names = [*(row.label for row in table.places), *causes]
    return distinct(names, room, sanitize=sanitize)


def _cells(row: Row, numbers: Sequence[int], written: Scale) -> list[str]:
    """Write a row in those columns."""
    terms = ["" if row.terms[number] is None else written.write(row.terms[number]) for number in numbers]
    return [*terms, written.write(row.seconds), written.between(row.ci95)]
