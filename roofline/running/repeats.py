"""Follow steps that repeat the one before, report by report: what is known of that one holds for them, too."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

#: (rank of the boundary, source, label, detail), see `Watcher.ended`.
Report = tuple[int, Hashable, str, Hashable]


@dataclass(slots=True)
class Repeats:
    """Hold what a step reported that others repeat. Most steps of a program do, and cost it next to nothing so.

    reports: of the step, the last of which ended it. due: number of the step that is to be followed in full, as a
    measurement begins with its end. steps: that have repeated it so far. place: number of reports of the current step,
    all of which repeat its.
    """

    reports: tuple[Report, ...]
    due: float
    steps: int = 0
    place: int = 0
