"""Several runs in rows: each with its factor to the fastest, and every two of them as a speedup with its parity."""

from __future__ import annotations

from roofline import units
from roofline.comparison.ranking import Ranking
from roofline.content import wording
from roofline.content.comparison import comparing

HEADS = ("", "run", "step", "factor", "busy", "gap", "of roof", "parity with the fastest")
#: What goes first of them for want of room, the highest, and what a caption says of them.
RANKS = (0, 0, 0, 1, 4, 5, 3, 2)
ABOUT = (
    *("", "", "median", "step over that of the fastest run", "share of the step in which any op runs"),
    *("the rest of it", "minimum / own time of the ops", "whether the work is that of the fastest run"),
)
MATRIX = "Time of the row / time of the column: how many times longer the run of the row took."


def rows(ranking: Ranking, width: int) -> list[tuple[str, ...]]:
    """Return a line per run in the columns of HEADS, the fastest first; names are cut to `width`."""
    best = ranking.runs[ranking.fastest]
    lines: list[tuple[str, ...]] = []
    for place, number in enumerate(ranking.order, 1):
        run = ranking.runs[number]
        lines.append(
            (
                str(place),
                wording.plain(ranking.names[number], width),
                units.seconds(run.wall),
                f"{run.wall / best.wall:.2f}x" if number != ranking.fastest else "1",
                units.percent(run.busy / run.wall, 0),
                units.percent(None if run.gap_told is None else run.gap_told / run.wall, 0),
                wording.attained(run.total),
                "" if number == ranking.fastest else ranking.verdicts[number][ranking.fastest],
            )
        )
    return lines


def matrix(ranking: Ranking, limit: int) -> list[tuple[str, ...]]:
    """Return the head and a line per run: how many times faster the column's run is; `limit` columns."""
    order = ranking.order
    shown = order[:limit]
    lines: list[tuple[str, ...]] = [("", "row / column", *(str(place) for place in range(1, len(shown) + 1)))]
    for place, row in enumerate(order, 1):
        cells = [
            "1"
            if row == column
            else f"{ranking.speedups[row][column]:.2f}{comparing.mark(ranking.verdicts[row][column])}"
            for column in shown
        ]
        lines.append((str(place), ranking.names[row], *cells))
    return lines


def origins(ranking: Ranking) -> str:
    """Say of each run on what it ran and how it was timed."""
    return " ".join(
        f"{wording.plain(ranking.names[number], 60)}: {wording.provenance(ranking.runs[number])}"
        for number in ranking.order
    )


def marked(ranking: Ranking) -> bool:
    """Return whether any speedup carries a mark of its parity."""
    return any(comparing.mark(verdict) for line in ranking.verdicts for verdict in line)
