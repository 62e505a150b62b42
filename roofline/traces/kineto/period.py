"""A trace that repeats itself: where no annotation marks its steps, its device events may, or its ops on a CPU.

Kernels launched k times, or a multiple of it, make up nearly all of the device time of a window that holds k steps; but
the layers of one step repeat as well, and cover 74-92 % of it (traces of 2022 to 2026, H100, A100, V100, MI300X). So a
repetition counts as steps only where it leaves nothing over; anything less is reported, and nothing is built on it.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from roofline import units
from roofline.traces import nesting
from roofline.traces.kineto.events import Events
from roofline.traces.kineto.links import Links
from roofline.traces.kineto.reader import KinetoTrace

SHARE, LEAST = 0.95, 3  # a repetition is steps from this share of device time and this number on
_SEGMENT = 10  # device events; a step has more, a layer or the loop of an op may have fewer
_FOREIGN = 0.01  # of a segment's number of events may occur outside the segments alone: more is an embedding or a head
_MOST = 200  # repetitions looked for
_COUNTS, _ANCHORS = 24, 4  # numbers of repetitions tried, and symbols for each
_LOOK, _ALIKE = 0.6, 0.9  # less of the time, or segments less alike, is no repetition at all


class _Grid(msgspec.Struct, gc=False):
    grid: msgspec.Raw = msgspec.Raw(b"")


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """The events that do the work of a trace, in the order in which the host asked for them; columns int64[n].

    The device events, launched at `asked`; of a trace without any the outermost ops of the thread that spends most time
    in them. symbol: the same number for kernels of one name and grid, or ops of one name. begin: the time from which on
    a step that starts with the event may be cut, which is that of the outermost op around its launch. Times in ns.
    on_device: whether they are device events.
    """

    symbol: np.ndarray
    asked: np.ndarray
    begin: np.ndarray
    start: np.ndarray
    duration: np.ndarray
    on_device: bool

    def __len__(self) -> int:
        return len(self.symbol)


@dataclass(frozen=True, slots=True, eq=False)
class Repeated:
    """A sequence of events that occurs `count` times in a row.

    `share`: of the events' time, in the segments and in events whose number is a multiple of `count` [0, 1].
    `similarity`: what the segments have in common of their events [0, 1]. `period`: median time from one to the
    next [ns].
    `steps`: whether they can be taken for steps. `cuts`: int64[count], events at which a segment begins. `kind`: what
    repeats ("kernels", "ops").
    """

    count: int
    share: float
    similarity: float
    period: int
    steps: bool
    cuts: np.ndarray
    kind: str = "kernels"

    def __str__(self) -> str:
        period, share = units.seconds(self.period * 1e-9), units.percent(self.share, 0)
        of = "device time" if self.kind == "kernels" else "the time of all"
        return (
            f"a block of {self.kind} repeats {self.count} times, {period} from one to the next; {self.kind} that run "
            f"{self.count} times, or a multiple of it, take {share} of {of}"
        )


def work(trace: KinetoTrace, links: Links | None) -> Work:
    """The events that do the work of a trace; `links`: those of a trace with device events."""
    if links is None:
        return _on_host(trace.ops)
    device = trace.device
    asked = np.where(links.launch >= 0, np.append(trace.launches.start, 0)[links.launch], device.start)
    order = np.lexsort((device.start, asked))
    op = np.append(links.launch_op, -1)[links.launch[order]]
    root = np.append(nesting.outermost(links.parent, np.ones(len(links.parent), bool)), -1)[op]
    begin = np.where(root >= 0, np.append(trace.ops.start, 0)[root], asked[order])
    return Work(_symbols(device)[order], asked[order], begin, device.start[order], device.duration[order], True)


def _on_host(ops: Events) -> Work:
    """The outermost ops of the thread that spends most time in them."""
    outer = np.flatnonzero(nesting.parents(ops.thread, ops.start, ops.end, ops.order) < 0)
    time = np.bincount(ops.thread[outer], weights=ops.duration[outer])
    rows = outer[ops.thread[outer] == time.argmax()] if len(outer) else outer
    symbol = np.unique(ops.name[rows], return_inverse=True)[1].astype(np.int64)
    return Work(symbol, ops.start[rows], ops.start[rows], ops.start[rows], ops.duration[rows], False)


def find(events: Work) -> Repeated | None:
    """The repetition that explains most of the time of a trace's events; of equal ones the most frequent, else None."""
    total = int(events.duration.sum())
    if not total:
        return None
    symbol, time = events.symbol, events.duration
    number = np.bincount(symbol)
    spent = np.bincount(symbol, weights=time)
    shares = {
        count: float(spent[number % count == 0].sum() / total)
        for count in range(2, min(_MOST, int(number.max())) + 1)
        if (number == count).any()
    }
    best: tuple[float, int, float, float, np.ndarray] | None = None
    for count in sorted(shares, key=lambda count: (-shares[count], count))[:_COUNTS]:
        share = shares[count]
        if share < _LOOK:
            break
        # The symbols that can be a part of the repetition get numbers of their own, the others share one.
        regular = np.cumsum(number % count == 0) * (number % count == 0)
        for anchor in _anchors(symbol, np.flatnonzero(number == count)):
            cuts = _shifted(symbol, anchor)
            inside = slice(int(cuts[0]), _end(symbol, cuts))
            covered = float((time * (regular[symbol] > 0))[inside].sum() / total)
            score, similarity = _regular(regular[symbol], events.start, cuts, int(regular.max()) + 1)
            if covered >= _LOOK and similarity >= _ALIKE and (best is None or (covered * score, count) > best[:2]):
                best = (covered * score, count, covered, similarity, cuts)
    if best is None:
        return None
    _, count, share, similarity, cuts = best
    return Repeated(
        count=count,
        share=share,
        similarity=similarity,
        period=int(np.median(np.diff(events.start[cuts]))),
        steps=count >= LEAST and share >= SHARE and nothing_left(symbol, cuts),
        cuts=cuts,
        kind="kernels" if events.on_device else "ops",
    )


def windows(trace: KinetoTrace, events: Work, repeated: Repeated) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends of the segments on the host [ns], the first and the last reaching to the ends of the trace.

    A segment begins with the outermost op around its first launch, if the segment before has launched all by then.
    """
    low, high = bounds(trace)
    cuts = repeated.cuts[1:]
    before = np.maximum.accumulate(events.asked)[cuts - 1]
    begin = np.where(events.begin[cuts] > before, events.begin[cuts], events.asked[cuts])
    begin = np.maximum.accumulate(np.append(low, begin))
    return begin, np.append(begin[1:], high)


def bounds(trace: KinetoTrace) -> tuple[int, int]:
    """The start of the first op, launch or device event of a trace and the end of the last [ns]."""
    tables = [table for table in (trace.ops, trace.launches, trace.device) if len(table)]
    return min(int(t.start.min()) for t in tables), max(int(t.end.max()) for t in tables)


def nothing_left(symbol: np.ndarray, cuts: np.ndarray, end: int | None = None) -> bool:
    """Tell whether segments are long enough for steps, and what comes before and after occurs in them as well.

    end: the event with which the last segment ends, None where it is not known and may lie before the last cut.
    """
    size = (cuts[-1] - cuts[0]) / (len(cuts) - 1)
    last = int(cuts[-1]) if end is None else end
    outside = np.append(symbol[: cuts[0]], symbol[last:])
    foreign = ~np.isin(outside, symbol[cuts[0] : last])
    return bool(size >= _SEGMENT and foreign.sum() <= _FOREIGN * size)


def _symbols(device: Events) -> np.ndarray:
    """int64[device]: the same number for kernels of one name and grid."""
    values = device.decoded(np.arange(len(device)), _Grid)
    texts = [b"" if value is None else bytes(value.grid) for value in values]
    code = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    grid = np.fromiter(map(code.__getitem__, texts), np.int64, len(texts))
    symbol: np.ndarray = np.unique(device.name.astype(np.int64) * max(1, len(code)) + grid, return_inverse=True)[1]
    return symbol


def _anchors(symbol: np.ndarray, candidates: np.ndarray) -> list[np.ndarray]:
    """Return the places of each symbol, for those that come first."""
    rows = np.flatnonzero(np.isin(symbol, candidates))
    ordered = rows[np.argsort(symbol[rows], kind="stable")]
    occurrences = np.split(ordered, np.flatnonzero(np.diff(symbol[ordered])) + 1) if len(rows) else []
    return sorted(occurrences, key=lambda places: int(places[0]))[:_ANCHORS]


def _shifted(symbol: np.ndarray, anchor: np.ndarray) -> np.ndarray:
    """The anchors moved to where the repetition begins, as far as the same symbols go before each of them."""
    reach = int(min(anchor[0], np.diff(anchor).min() - 1))
    before = symbol[anchor[:, None] - np.arange(1, reach + 1)]
    differs = np.flatnonzero((before != before[0]).any(axis=0))
    return anchor - (int(differs[0]) if len(differs) else reach)


def _end(symbol: np.ndarray, cuts: np.ndarray) -> int:
    """Return the end of the last segment: it is as long as the others, as far as there are events."""
    return min(len(symbol), int(cuts[-1]) + int(np.median(np.diff(cuts))))


def _regular(symbol: np.ndarray, start: np.ndarray, cuts: np.ndarray, symbols: int) -> tuple[float, float]:
    """Rate how even and alike the segments that begin at the cuts are, and how alike alone [0, 1]."""
    place = np.arange(len(symbol))
    segment = np.searchsorted(cuts, place, "right") - 1
    inside = (segment >= 0) & (place < _end(symbol, cuts))
    held = np.bincount(segment[inside] * symbols + symbol[inside], minlength=len(cuts) * symbols)
    held = held.reshape(len(cuts), symbols)
    typical = np.median(held, axis=0)
    similarity = float(np.median(np.minimum(held, typical).sum(1) / np.maximum(np.maximum(held, typical).sum(1), 1)))
    length = np.diff(start[cuts]).astype(float)
    spread = float(length.std() / length.mean()) if length.mean() else 0.0
    covered = float(inside.sum()) / len(symbol)
    return similarity * min(1.0, covered) / (1 + spread), similarity
