"""Hold the report that comes next where steps repeat, by which a hook may know it without making it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

#: (rank of the boundary, source, label, detail), see `Watcher.ended`.
Report = tuple[int, Hashable, str, Hashable]


@dataclass(slots=True)
class Awaited:
    """Hold a report that a step repeats.

    place: in the step. following: the next one; None: this one ends the step. sign: by which the hook that makes the
    report knows it again without making it; None as long as it has given none.
    """

    report: Report
    place: int
    following: Awaited | None
    sign: object = None


@dataclass(slots=True)
class Expected:
    """Hold the report that comes next where steps repeat; None: each report is to be made, and is looked at in full.

    A hook of the program's own thread that knows the sign of this report goes on to the following one by itself. Each
    function more that is called there costs the program microseconds, as it is in no cache.
    """

    awaited: Awaited | None = None

    def went_on_from(self, awaited: Awaited) -> bool:
        """Tell whether a report that was just made is the one that was awaited, and did not end the step."""
        return awaited.following is not None and self.awaited is awaited.following
