"""The steps of a trace: windows of host time, the device events launched in them, and their time on the device."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from roofline.errors import InputError
from roofline.traces.kineto import KinetoTrace
from roofline.traces.link import Links

LIVE = "roofline:step#"
PROFILER = "ProfilerStep#"


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Disjoint windows, sorted. `start`, `end`: int64[n] [ns]; `number`: int64[n], as annotated.

    `source`: the prefix of the annotations, or "" where the whole trace is one step.
    """

    start: np.ndarray
    end: np.ndarray
    number: np.ndarray
    source: str

    def __len__(self) -> int:
        return len(self.start)


def find(trace: KinetoTrace, prefix: str | None = None) -> Steps:
    """The steps that annotations `prefix` + number mark on the host.

    Without a prefix: our own marks, else ProfilerStep#N, else the whole trace from its first to its last op,
    launch or device event. Marks that overlap, as in the traces of several processes merged, are no steps.
    Raises InputError if a prefix is given and marks none.
    """
    for candidate in (LIVE, PROFILER) if prefix is None else (prefix,):
        steps = _annotated(trace, candidate)
        if steps is not None:
            return steps
    if prefix is not None:
        raise InputError(f"no annotations of the trace named {prefix}N mark steps; name others, or none.")
    tables = [table for table in (trace.ops, trace.launches, trace.device) if len(table)]
    if not tables:
        raise InputError("the trace holds no op, launch or kernel; record it with torch.profiler again.")
    start, end = min(table.start.min() for table in tables), max(table.end.max() for table in tables)
    return Steps(np.array([start]), np.array([end]), np.zeros(1, np.int64), "")


def _annotated(trace: KinetoTrace, prefix: str) -> Steps | None:
    pattern = re.compile(re.escape(prefix) + r"(\d{1,18})")
    matches = [pattern.fullmatch(name) for name in trace.names]
    number = np.array([int(match[1]) if match else -1 for match in matches], np.int64)[trace.annotations.name]
    rows = np.flatnonzero(number >= 0)
    marks = trace.annotations.select(rows)
    if not len(marks) or (marks.start[1:] < marks.end[:-1]).any():
        return None
    return Steps(marks.start, marks.end, number[rows], prefix)


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
    known = step >= 0
    np.maximum.at(last, step[known], trace.device.end[known])
    end = np.maximum.accumulate(np.where(last > np.iinfo(np.int64).min, last, steps.end))
    return np.append(steps.start[:1], end[:-1]), end
