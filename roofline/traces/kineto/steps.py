"""The steps of a trace: windows of host time, the device events launched in them, and their time on the device."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass

import numpy as np

from roofline.errors import InputError
from roofline.traces.annotations import STEP
from roofline.traces.kineto import period
from roofline.traces.kineto.links import Links, link
from roofline.traces.kineto.period import Repeated
from roofline.traces.kineto.reader import KinetoTrace

LIVE = f"{STEP}#"
PROFILER = "ProfilerStep#"
PERIODIC = "(repetition)"
_FAMILY = re.compile(r"(.*#)(\d{1,18})", re.DOTALL)


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Disjoint windows, sorted. `start`, `end`: int64[n] [ns]; `number`: int64[n], as annotated, else from 0.

    `source`: the prefix of the annotations; PERIODIC where the kernels repeat; "" where the whole trace is one step.
    `repeated`: what repeats in the trace, looked for only where annotations do not mark several steps.
    """

    start: np.ndarray
    end: np.ndarray
    number: np.ndarray
    source: str
    repeated: Repeated | None = None

    def __len__(self) -> int:
        return len(self.start)

    def select(self, rows: np.ndarray) -> Steps:
        """The given ones, by mask or by indices in order."""
        return Steps(self.start[rows], self.end[rows], self.number[rows], self.source, self.repeated)


def find(trace: KinetoTrace, prefix: str | None = None, links: Links | None = None) -> Steps:
    """The steps that annotations `prefix` + number mark on the host.

    Without a prefix: our own marks; else ProfilerStep#N; else the only family of annotations name#N, of at least two;
    else the repetition of the kernels, where it leaves nothing over; else the whole trace, from its first to its last
    op, launch or device event. Marks that overlap, as in the traces of several processes merged, are no steps.
    `links`: those of the trace, where they are known. Raises InputError if a prefix is given and marks none.
    """
    if prefix is not None:
        steps = _annotated(trace, prefix)
        if steps is None:
            raise InputError(f"the trace has no annotations {prefix}N that mark steps; name others, or none.")
        return steps
    marked = _annotated(trace, LIVE) or _annotated(trace, PROFILER) or _family(trace)
    if marked is not None and (len(marked) > 1 or marked.source == LIVE):
        return marked
    if links is None and len(trace.device):
        links = link(trace)
    repeated = period.find(trace, links) if links is not None else None
    if marked is not None:
        return dataclasses.replace(marked, repeated=repeated)
    if links is not None and repeated is not None and repeated.steps:
        start, end = period.windows(trace, links, repeated)
        return Steps(start, end, np.arange(len(start)), PERIODIC, repeated)
    tables = [table for table in (trace.ops, trace.launches, trace.device) if len(table)]
    if not tables:
        raise InputError("the trace holds no op, launch or kernel; record it with torch.profiler again.")
    low, high = min(table.start.min() for table in tables), max(table.end.max() for table in tables)
    return Steps(np.array([low]), np.array([high]), np.zeros(1, np.int64), "", repeated)


def _annotated(trace: KinetoTrace, prefix: str) -> Steps | None:
    pattern = re.compile(re.escape(prefix) + r"(\d{1,18})")
    matches = [pattern.fullmatch(name) for name in trace.names]
    number = np.array([int(match[1]) if match else -1 for match in matches], np.int64)[trace.annotations.name]
    rows = np.flatnonzero(number >= 0)
    marks = trace.annotations.select(rows)
    if not len(marks) or (marks.start[1:] < marks.end[:-1]).any():
        return None
    return Steps(marks.start, marks.end, number[rows], prefix)


def _family(trace: KinetoTrace) -> Steps | None:
    """The steps that the only family of numbered annotations marks, if they are counted up."""
    used = {trace.names[code] for code in np.unique(trace.annotations.name).tolist()}
    prefixes = {match[1] for name in used if (match := _FAMILY.fullmatch(name))}
    families = [steps for prefix in sorted(prefixes) if (steps := _annotated(trace, prefix)) is not None]
    families = [steps for steps in families if len(steps) > 1 and (np.diff(steps.number) > 0).all()]
    return families[0] if len(families) == 1 else None


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
