"""Write plain text for a terminal: what was seen, a line per rank, per kind of collectives, and per phase."""

from __future__ import annotations

import math
from collections.abc import Callable

from roofline import units
from roofline.content import terminal, wording
from roofline.content.terminal import SHEET, Page
from roofline.ranks.job import Job, RankTimes
from roofline.renderers.ranks import _sentences

#: Ranks, and kinds of collectives, that are shown in full; of more ranks, those that wait least and most.
_MOST, _ENDS = 16, 6
#: What goes first of a table for want of room: the highest.
_RANK_RANKS = (0, 0, 3, 2, 4, 1, 6, 0, 5)
_COLLECTIVE_RANKS = {
    "collective": 0,
    "group": 9,
    "ranks": 5,
    "sent": 3,
    "seen": 2,
    "shortest": 0,
    "longest": 8,
    "last at": 10,
    "apart": 4,
    "algorithm": 11,
    "bus bandwidth": 1,
    "of link": 6,
    "last to arrive": 7,
}
#: Which of them hold words.
_COLLECTIVE_WORDS = ("collective", "group", "last to arrive")


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
    heads = ["rank", "step", "computing", "idle", "collectives", "exposed", "hidden", "waiting", "arrives last"]
    cells = [heads, *([str(row.number), *_times(row, unit), units.count(row.last)] for row in rows)]
    cells.append(["mean", *_times(job.mean, unit), ""])
    lines = terminal.fitted(cells, (), _RANK_RANKS, page, 1)
    if grouped:
        lines += terminal.wrapped(f"{grouped} more ranks wait neither least nor most: --all shows them.", page)
    return lines


def _times(row: RankTimes, unit: Callable[[float | None], str]) -> list[str]:
    times = (row.wall, row.computing, row.idle, row.communication, row.exposed)
    return [*map(unit, times), units.percent(row.hidden), unit(row.waiting)]


def _collectives(job: Job, page: Page, every: bool) -> list[str]:
    if not job.collectives:
        return []
    rows = job.collectives if every else job.collectives[:_MOST]
    unit = units.seconds_unit(max(row.longest for row in rows))
    cells = [list(_COLLECTIVE_RANKS)]
    for row in rows:
        message, last = row.message, f"rank {row.last}, {units.count(row.times_last)} of {row.runs}"
        cells.append(
            [
                wording.plain(message.name, 40),
                wording.plain(message.group, 24) or units.UNKNOWN,
                units.count(row.ranks),
                units.byte(message.sent),
                units.count(row.runs),
                *(unit(seconds) for seconds in (row.shortest, row.longest, row.arrives, row.apart)),
                *map(units.byte_rate, (row.algorithm_bandwidth, row.bandwidth)),
                units.percent(row.of_link),
                last,
            ]
        )
    # A job of one group without a name, or devices without a ceiling of their link, need no column for it.
    told = [any(cell != units.UNKNOWN for cell in column) for column in zip(*cells[1:], strict=True)]
    cells = [[cell for cell, is_told in zip(row, told, strict=True) if is_told] for row in cells]
    ranks = [_COLLECTIVE_RANKS[head] for head in cells[0]]
    words = {number for number, head in enumerate(cells[0]) if head in _COLLECTIVE_WORDS}
    lines = ["", *terminal.fitted(cells, words, ranks, page, 1)]
    if hidden := len(job.collectives) - len(rows):
        lines += terminal.wrapped(f"{wording.counted(hidden, 'more kind')} that last less: --all shows them.", page)
    return lines


def _phases(job: Job, page: Page) -> list[str]:
    if not job.phases:
        return []
    unit = units.seconds_unit(max(row.longest for row in job.phases))
    cells = [["ops of", "mean", "least", "longest", "on rank", "imbalance"]]
    for row in job.phases:
        times = map(unit, (row.mean, row.least, row.longest))
        cells.append([wording.plain(row.name, 40), *times, str(row.rank_of_longest), units.percent(row.imbalance)])
    return ["", *terminal.fitted(cells, (0,), (0, 0, 0, 0, 0, 0), page, 1)]
