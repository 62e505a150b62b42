"""Several runs in rows: each with its factor to the fastest, and every two of them as a speedup with its parity."""

from __future__ import annotations

from collections.abc import Callable

from roofline import units
from roofline.comparison.headline import factor_text, times_as_long
from roofline.comparison.ranking import Ranking
from roofline.content import wording
from roofline.content.comparison import comparing
from roofline.content.facts import energy
from roofline.content.grid import Grid
from roofline.content.names.distinct import distinct

#: Columns: heads, what goes first for want of room, the highest, and what a caption says of them.
_HEADS = ("step", "factor", "busy", "gap", "of roof", "parity with the fastest")
_RANKS = (0, 1, 4, 5, 3, 2)
_BASIS = "by the turns that both took, else by all their processes"
_ABOUT = (
    *("median", f"times as long as the fastest run takes, {_BASIS}", "share of the step in which any op runs"),
    *("the rest of it", "minimum / own time of the ops", "whether the work is that of the fastest run"),
)
_ENERGY = "energy"
_MATRIX = f"Factors: time of the row / time of the column, {_BASIS}; steps are medians as recorded."


def grid(ranking: Ranking, *, numbered: bool = True) -> Grid:
    """Write a line per run, the fastest first, all steps in one unit. numbered: its place stands before its name."""
    runs, best = [ranking.runs[number] for number in ranking.order], ranking.runs[ranking.fastest]
    names = [ranking.names[number] for number in ranking.order]
    write = units.seconds_unit(max(run.wall for run in runs))
    places = [f"{place}  " * numbered for place in range(1, len(runs) + 1)]

    def named(room: int | None, sanitize: Callable[[str], str]) -> list[str]:
        left = None if room is None else room - len(places[0])
        return [f"{place}{name}" for place, name in zip(places, distinct(names, left, sanitize=sanitize), strict=True)]

    with_energy = any(run.profile.energy is not None for run in runs)
    return Grid(
        "run",
        "",
        (*_HEADS, *([_ENERGY] if with_energy else [])),
        [
            (
                write(run.wall),
                factor_text(times_as_long(run, best)) if run is not best else "1",
                units.percent(run.busy / run.wall, 0),
                units.percent(None if run.gap_told is None else run.gap_told / run.wall, 0),
                wording.attained(run.total),
                "" if run is best else ranking.verdicts[number][ranking.fastest],
                *([energy.per_step(run.profile)] if with_energy else []),
            )
            for number, run in zip(ranking.order, runs, strict=True)
        ],
        ranks=(*_RANKS, *([6] if with_energy else [])),
        about=(*_ABOUT, *(["of the device, per step, by its counter"] if with_energy else [])),
        labels=[f"{place}{wording.plain(name, 200)}" for place, name in zip(places, names, strict=True)],
        names=named,
        words=(len(_HEADS) - 1,),
    )


def matrix(ranking: Ranking, limit: int) -> list[tuple[str, ...]]:
    """Return the head and a line per run: how many times as long it took as the column's; `limit` columns."""
    order = ranking.order
    shown = order[:limit]
    lines: list[tuple[str, ...]] = [("", "row / column", *(str(place) for place in range(1, len(shown) + 1)))]
    for place, row in enumerate(order, 1):
        cells = ["1" if row == column else _factor(ranking, row, column) for column in shown]
        lines.append((str(place), ranking.names[row], *cells))
    return lines


def _factor(ranking: Ranking, row: int, column: int) -> str:
    """Write how many times as long a run took as another one, marked by their parity."""
    factor = times_as_long(ranking.runs[row], ranking.runs[column])
    return f"{factor_text(factor).removesuffix('x')}{comparing.mark(ranking.verdicts[row][column])}"


def origins(ranking: Ranking) -> str:
    """Say of each run on what it ran and how it was timed."""
    return " ".join(
        f"{wording.plain(ranking.names[number], 60)}: {wording.provenance(ranking.runs[number])}"
        for number in ranking.order
    )


def legend(ranking: Ranking) -> tuple[str, ...]:
    """Say what the numbers of the matrix are, and what the marks of parity mean, where there are any."""
    is_marked = any(comparing.mark(verdict) for line in ranking.verdicts for verdict in line)
    return (_MATRIX, f"{comparing.MARKS}.") if is_marked else (_MATRIX,)
