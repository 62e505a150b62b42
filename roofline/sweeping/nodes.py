"""Measure the points of a sweep on several nodes at once, as many on each as it has devices. Ray is one such cluster.

All backends of a cell are measured on one node, one after the other, as long as it is there. A point whose process or
node is lost is measured again, a limited number of times, and each attempt is recorded. The results lie with the
process that runs this: nodes need no common disk.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Protocol

from roofline import units
from roofline.core.schema import Profile
from roofline.errors import MeasurementError
from roofline.sweeping import folder as results
from roofline.sweeping.folder import Attempt, Kind
from roofline.sweeping.plan import Point
from roofline.sweeping.run import has_result, time_left

#: How often a point is begun whose process or node is lost. By choice: what fails for the point's own reasons ends in
#: the first, since the process that is lost only waits for the one that measures.
ATTEMPTS = 3


class Node(NamedTuple):
    """A machine that measures. slots: points at once. versions: of roofline, Python and the frameworks."""

    id: str
    name: str
    slots: int
    device: str
    versions: Mapping[str, str]


class Answer(NamedTuple):
    """What came of a point that was begun: a profile, or a kind of failure and why.

    kind None without a profile: the process or its node was lost; has_begun: whether it may have measured before.
    """

    point: Point
    profile: Profile | None = None
    kind: Kind | None = None
    text: str = ""
    has_begun: bool = True


class Cluster(Protocol):
    """Begins points on nodes, and tells what comes of them."""

    @property
    def nodes(self) -> Sequence[Node]:
        """List the nodes that may measure."""

    def begin(self, point: Point, node: Node) -> None:
        """Begin a point on a node."""

    def wait(self) -> Answer:
        """Wait until a point ends."""

    def is_alive(self, node: Node) -> bool:
        """Return whether a node is still there."""


@dataclass(slots=True, eq=False)
class _Slot:
    """A place for one measurement on a node: what it measures, and the points of the same cell that follow."""

    node: Node
    point: Point | None = None
    following: deque[Point] = field(default_factory=deque)


def run(
    folder: Path,
    points: Sequence[Point],
    cluster: Cluster,
    say: Callable[[str], None],
    *,
    retry: bool = False,
) -> Counter[str]:
    """Measure points that are not done; return how many ended how: "measured", or a kind of failure.

    Raises MeasurementError where no node is left; the next call goes on. retry: measure those again that failed.
    """
    sweep = _Sweep(folder, cluster, say, retry, [point for point in points if not has_result(folder, point, retry)])
    while True:
        sweep.begin()
        if not sweep.running:
            break
        sweep.end(cluster.wait())
    if sweep.waiting:
        number = sum(map(len, sweep.waiting))
        raise MeasurementError(f"No node is left, and {number} points have no result: run the command again.")
    return sweep.ended


class _Sweep:
    """Give cells to nodes, and save what comes of their points."""

    def __init__(
        self, folder: Path, cluster: Cluster, say: Callable[[str], None], retry: bool, missing: Sequence[Point]
    ) -> None:
        self._folder, self._cluster, self._say, self._retry = folder, cluster, say, retry
        cells: dict[Point, deque[Point]] = {}
        for point in missing:
            cells.setdefault(point.without("backend"), deque()).append(point)
        #: The points of cells that no node has begun.
        self.waiting = deque(cells.values())
        self.ended: Counter[str] = Counter()
        self._number, self._since = len(missing), time.monotonic()
        self._slots = [_Slot(node) for node in cluster.nodes for _ in range(node.slots)]
        self._tried = Counter(attempt.point for attempt in results.attempts(folder))
        self._lost: Counter[Point] = Counter()

    @property
    def running(self) -> dict[Point, _Slot]:
        """Return the points that are being measured."""
        return {slot.point: slot for slot in self._slots if slot.point is not None}

    def begin(self) -> None:
        """Begin a point in each free slot: the next one of its cell, or of a cell that nobody has begun."""
        for slot in self._slots:
            while slot.point is None and (slot.following or self.waiting):
                if not slot.following:
                    slot.following = self.waiting.popleft()
                point = slot.following.popleft()
                if has_result(self._folder, point, self._retry):  # by another run of this sweep
                    continue
                slot.point = point
                ended = self.ended.total()
                line = f"{ended + len(self.running)}/{self._number} {slot.node.name}: {point.backend}: {point.place()}"
                seconds = time.monotonic() - self._since
                self._say(line + time_left(self.ended["measured"], self._number - ended, seconds))
                self._cluster.begin(point, slot.node)

    def end(self, answer: Answer) -> None:
        """Save what came of a point, or begin it again where its process or node was lost."""
        slot = self.running[answer.point]
        slot.point = None
        end = self._save(answer, slot.node)
        if end is not None:
            self.ended[end] += 1
        else:
            slot.following.appendleft(answer.point)
        if end is None and not (answer.has_begun and self._cluster.is_alive(slot.node)):
            self._slots.remove(slot)
            if slot.following:
                self.waiting.appendleft(slot.following)

    def _save(self, answer: Answer, node: Node) -> str | None:
        """Save a profile or a failure, and return how the point ended; None: it is to be begun again."""
        point, kind, text, attempts = answer.point, answer.kind, answer.text, self._lost[answer.point] + 1
        if answer.has_begun:
            self._tried[point.key] += 1
            self._record(answer, node)
        if answer.profile is not None:
            results.keep(self._folder, point, answer.profile)
            return "measured"
        if kind is None:
            if answer.has_begun:
                self._lost[point] = attempts
                self._say(f"  {node.name}: {point.backend}: {point.place()}: lost: {units.cut(text, 200)}")
            if self._lost[point] < ATTEMPTS:
                return None
            kind, text = "failed", f"Its process or node was lost {ATTEMPTS} times: {text}"
        results.fail(self._folder, point, kind, text, attempts)
        self._say(f"  {point.backend}: {point.place()}: {kind}: {units.cut(text, 200)}")
        return kind

    def _record(self, answer: Answer, node: Node) -> None:
        attempt = Attempt(
            point=answer.point.key,
            number=self._tried[answer.point.key],
            end="measured" if answer.profile is not None else answer.kind or "lost",
            node=node.name,
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            device=node.device,
            versions=node.versions,
            text=answer.text,
        )
        results.add_attempt(self._folder, attempt)
