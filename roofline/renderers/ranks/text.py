"""Write plain text for a terminal: what was seen, a line per rank, per kind of collectives, and per phase."""

from __future__ import annotations

import math
from collections.abc import Callable

from roofline import units
from roofline.content import terminal, wording
from roofline.content.terminal import SHEET, Page
from roofline.ranks.job import Job, RankRow
from roofline.renderers.ranks import _sentences

#: Ranks, and kinds of collectives, that are shown in full; of more ranks, those that wait least and most.
_MOST, _ENDS = 16, 6
#: What goes first of a table for want of room: the highest.
_RANK_RANKS = (0, 0, 3, 2, 4, 1, 0, 5)
_COLLECTIVE_RANKS = (0, 4, 3, 2, 0, 0, 1, 5)


def render(job: Job, page: Page = SHEET, every: bool = False) -> str:
    """Write the ranks of a job. every: all ranks and kinds of collectives."""
    lines = [*terminal.wrapped(_sentences.headline(job), page, "bold")]
    for _, sentence in _sentences.sentences(job):
        lines += terminal.wrapped(sentence, page)
    lines += ["", *_ranks(job, page, every), *_collectives(job, page, every), *_phases(job, page)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _ranks(job: Job, page: Page, every: bool) -> list[str]:
    rows, grouped = list(job.ranks), 0
    if len(rows) > _MOST and not every:
        rows.sort(key=lambda row: math.inf if row.waiting is None else row.waiting)
        grouped = len(rows) - 2 * _ENDS
        rows = [*rows[:_ENDS], *rows[-_ENDS:]]
    unit = units.seconds_unit(max(row.wall for row in job.ranks))
    heads = ["rank", "step", "computing", "idle", "collectives", "exposed", "waiting", "arrives last"]
    cells = [heads, *(_rank(row, unit) for row in rows)]
    lines = terminal.fitted(cells, (), _RANK_RANKS, page, 1)
    if grouped:
        lines += terminal.wrapped(f"{grouped} more ranks wait neither least nor most: --all shows them.", page)
    return lines


def _rank(row: RankRow, unit: Callable[[float | None], str]) -> list[str]:
    times = (row.wall, row.computing, row.idle, row.communication, row.exposed, row.waiting)
    return [str(row.number), *map(unit, times), units.count(row.last)]


def _collectives(job: Job, page: Page, every: bool) -> list[str]:
    if not job.collectives:
        return []
    rows = job.collectives if every else job.collectives[:_MOST]
    unit = units.seconds_unit(max(row.longest for row in rows))
    cells = [["collective", "ranks", "sent", "seen", "shortest", "longest", "bus bandwidth", "last to arrive"]]
    for row in rows:
        sent, last = units.byte(row.message.sent), f"rank {row.last}, {units.count(row.times_last)} of {row.runs}"
        times = units.count(row.runs), unit(row.shortest), unit(row.longest), units.byte_rate(row.bandwidth)
        cells.append([wording.plain(row.message.name, 40), units.count(row.ranks), sent, *times, last])
    lines = ["", *terminal.fitted(cells, (0, 7), _COLLECTIVE_RANKS, page, 1)]
    if hidden := len(job.collectives) - len(rows):
        lines += terminal.wrapped(f"{wording.counted(hidden, 'more kind')} that last less: --all shows them.", page)
    return lines


def _phases(job: Job, page: Page) -> list[str]:
    if not job.phases:
        return []
    unit = units.seconds_unit(max(row.longest for row in job.phases))
    cells = [["ops of", "mean", "least", "longest", "on rank"]]
    for row in job.phases:
        cells.append(
            [wording.plain(row.name, 40), *map(unit, (row.mean, row.least, row.longest)), str(row.rank_of_longest)]
        )
    return ["", *terminal.fitted(cells, (0,), (0, 0, 0, 0, 0), page, 1)]
