"""Follow steps that repeat the one before, report by report: what is known of that one holds for them, too."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from roofline.running.choice import Choice

#: (rank of the boundary, source, label, detail), see `Watcher.ended`.
Report = tuple[int, Hashable, str, Hashable]


@dataclass(frozen=True, slots=True)
class Awaited:
    """Hold a report that a step repeats. place: in the step. following: the next one; None: this one ends the step."""

    report: Report
    place: int
    following: Awaited | None


@dataclass(slots=True)
class Repeats:
    """Hold what a step reported that others repeat. Most steps of a program do, and cost it next to nothing so.

    choice: where the steps end. reports: of the step, the last of which ended it. first, awaited: of them, the latter
    the next one. due: number of the step that is to be followed in full, as a measurement begins with its end. number:
    of the step that others repeat.
    """

    choice: Choice
    awaited: Awaited
    first: Awaited
    due: float
    number: int
    reports: tuple[Report, ...]

    @property
    def steps(self) -> int:
        """Number of steps that have repeated it so far."""
        return self.choice.seen - self.number


def follow(choice: Choice, reports: Sequence[Report], due: float) -> Repeats:
    """Begin to follow steps that repeat these reports, of the last step of a choice; see `Repeats`."""
    awaited = None
    for place in reversed(range(len(reports))):
        awaited = Awaited(reports[place], place, awaited)
    assert awaited is not None  # the last report has ended a step
    return Repeats(choice, awaited, awaited, due, choice.seen, tuple(reports))
