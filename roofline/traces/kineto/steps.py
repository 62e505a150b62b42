"""The steps of a trace: windows of host time, the device events launched in them, and their time on the device."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from roofline.errors import InputError
from roofline.traces.annotations import STEP
from roofline.traces.kineto import marks, period
from roofline.traces.kineto.events import Events
from roofline.traces.kineto.links import Links, link
from roofline.traces.kineto.marks import Marked
from roofline.traces.kineto.period import Repeated
from roofline.traces.kineto.reader import KinetoTrace
from roofline.units import cut

LIVE = f"{STEP}#"
PROFILER = "ProfilerStep#"
PERIODIC = "(repetition)"


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Disjoint windows, sorted. `start`, `end`: int64[n] [ns]; `number`: int64[n], as annotated, else from 0.

    `source`: the prefix or the name of the annotations; PERIODIC where kernels or ops repeat; "" where the whole trace
    is one step. `rule`: what was taken as a step, in words. `repeated`: what repeats in the trace, looked for only
    where annotations do not mark several steps.
    """

    start: np.ndarray
    end: np.ndarray
    number: np.ndarray
    source: str
    rule: str
    repeated: Repeated | None = None

    def __len__(self) -> int:
        return len(self.start)

    @property
    def inferred(self) -> bool:
        """Tell whether repetition alone tells the steps."""
        return self.source == PERIODIC

    def select(self, rows: np.ndarray) -> Steps:
        """The given ones, by mask or by indices in order."""
        return replace(self, start=self.start[rows], end=self.end[rows], number=self.number[rows])


def find(trace: KinetoTrace, prefix: str | None = None, links: Links | None = None) -> Steps:
    """The steps that annotations `prefix` + number mark on the host.

    Without a prefix: our own marks; else ProfilerStep#N; else the only family of annotations name#N, of at least two;
    else the steps of a serving engine, by its batches; else torch's own marks of optimizers and loaders; else, unless
    an optimizer stepped once, ranges of one name that hold all work; else, with the same exception, the repetition of
    the kernels, or on a CPU of the ops, where it leaves nothing over; else the whole trace, from its first to its last
    op, launch or device event. A lone ProfilerStep is one step, unless three or more are found within it by the other
    ways. Marks that overlap, as in the traces of several processes merged, are no steps.
    `links`: those of the trace, where they are known. Raises InputError if a prefix is given and marks none.
    """
    if prefix is not None:
        marked = marks.numbered(trace, prefix)
        if marked is None:
            raise InputError(f"the trace has no annotations {prefix}N that mark steps; name others, or none.")
        return _steps(marked)
    marked = marks.numbered(trace, LIVE) or marks.numbered(trace, PROFILER) or marks.family(trace)
    if marked is not None and (len(marked) > 1 or marked.source == LIVE):
        return _steps(marked)
    if not len(trace.ops) + len(trace.launches) + len(trace.device):
        raise InputError("the trace holds no op, launch or kernel; record it with torch.profiler again.")
    least = period.LEAST if marked is not None else 2
    of_engine = marks.of_engine(trace)
    if of_engine is not None and len(of_engine) >= least:
        return _steps(of_engine)
    by_torch = marks.by_torch(trace)
    if by_torch is not None and len(by_torch) >= least:
        return _steps(by_torch)
    if links is None and len(trace.device):
        links = link(trace)
    work = period.work(trace, links)
    # What repeats before an optimizer's only step are the batches whose gradients it sums.
    is_one = marks.stepped_once(trace)
    named = None if is_one else marks.ranges(trace, work)
    if named is not None:
        return _steps(named)
    repeated = period.find(work)
    if repeated is not None and repeated.steps and not is_one:
        start, end = period.windows(trace, work, repeated)
        rule = f"a block of {repeated.kind} that repeats"
        return Steps(start, end, np.arange(len(start)), PERIODIC, rule, repeated)
    if marked is not None:
        return replace(_steps(marked), repeated=repeated)
    low, high = period.bounds(trace)
    return Steps(np.array([low]), np.array([high]), np.zeros(1, np.int64), "", "the whole trace", repeated)


def between(events: Events | None, name: str) -> Steps:
    """The steps from the start of one event to the start of the next. Raises InputError where there are fewer than two.

    name: what they were called by.
    """
    if events is None:
        raise InputError(f"the trace has no two annotations or ops {name[:80]!r}: name others with --between.")
    numbers = np.arange(len(events) - 1)
    return Steps(events.start[:-1], events.start[1:], numbers, name, f"from one {cut(name, 40)} to the next")


def _steps(marked: Marked) -> Steps:
    return Steps(marked.start, marked.end, marked.number, marked.source, marked.rule)


def assign(steps: Steps, trace: KinetoTrace, links: Links) -> np.ndarray:
    """int64[device]: the step in whose window each device event was launched, -1 for none.

    Without its launch the start of its op stands in. What was launched before the trace began counts where it
    ran: it keeps the device busy there.
    """
    time = np.where(links.op >= 0, np.append(trace.ops.start, 0)[links.op], trace.device.start)
    time = np.where(links.launch >= 0, np.append(trace.launches.start, 0)[links.launch], time)
    return within(steps, time)


def within(steps: Steps, time: np.ndarray) -> np.ndarray:
    """int64[m]: the step whose window holds each time [ns], -1 for none."""
    at = np.searchsorted(steps.start, time, "right") - 1
    inside = (at >= 0) & (time <= steps.end[at])
    return np.where(inside, at, -1)


def device_windows(steps: Steps, trace: KinetoTrace, step: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends [ns] of the steps on the device: each ends with its last event, where the next begins.

    `step`: int64[device], from `assign`. The first one begins with its window on the host. Steps enqueued back to
    back overlap on the host but not here, and every idle instant between them belongs to one. A step without
    device events keeps its end on the host, but for what the others cover.
    """
    last = np.full(len(steps), np.iinfo(np.int64).min)
    assigned = step >= 0
    np.maximum.at(last, step[assigned], trace.device.end[assigned])
    end = np.maximum.accumulate(np.where(last > np.iinfo(np.int64).min, last, steps.end))
    return np.append(steps.start[:1], end[:-1]), end
