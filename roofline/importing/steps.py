"""The steps of an imported trace: which are complete, which one is counted, and which of the others do the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.errors import MeasurementError
from roofline.importing.calls import StepCalls
from roofline.timing.timed import LEAST, OUTLIER
from roofline.traces import alignment
from roofline.traces.kineto import period, steps
from roofline.traces.kineto.links import Links, without_kernel
from roofline.traces.kineto.reader import KinetoTrace
from roofline.traces.kineto.steps import Steps
from roofline.traces.rows import Rows

#: Calls of a thread that differ between two steps beyond which what lies between their equal ends is not compared.
MAX_UNEQUAL = 1500


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """The steps of a trace that a profile can be made of.

    step: int64[device], the step of each device event, -1 for none. low, high: each step's window on the device [ns].
    host: each step's window on the host [ns]. selected: numbers of steps that are complete and no outliers. counted:
    the one whose ops are counted, of those that run the kernels that most steps run, the one nearest their median.
    incomplete, dropped: how many steps were left out for launches or kernels that are not in the trace, and as
    outliers. before: device events of the step before a lone one, which were still queued when the trace began.
    """

    step: Rows
    low: Rows
    high: Rows
    host: tuple[tuple[int, int], ...]
    selected: tuple[int, ...]
    counted: int
    incomplete: int
    dropped: int
    before: int = 0


def choose(trace: KinetoTrace, links: Links, marks: Steps, asked: NDArray[np.bool_], by_number: bool) -> Chosen:
    """The windows of the steps, and those to keep. MeasurementError where none took time on the device.

    A lone step is the whole trace, from its first device event to its last: before the first one the trace does not
    show what the device did. If it is marked, what was launched before the trace began and had ended when its first
    kernel ran is of the step before. Of several the first is left out, whose window holds the ramp-up of the queue.
    asked: bool[steps], those to choose from. by_number: whether they were named one by one, so that the first stays,
    and those that last far longer or shorter, too. Of fewer than LEAST steps none is an outlier.
    """
    device = trace.device
    if len(marks) == 1:
        before = _queued_before(trace, links) if marks.source else np.zeros(len(device), bool)
        begin = device.end[before].max() if before.any() else device.start.min()
        low, high = np.asarray([begin]), np.asarray([device.end.max()])
        if high[0] <= low[0]:
            raise MeasurementError("No device event of the trace lasted any time; record the trace again.")
        window = period.bounds(trace)
        return Chosen(-before.astype(np.int64), low, high, (window,), (0,), 0, 0, 0, int(before.sum()))
    step = steps.assign(marks, trace, links)
    low, high = steps.device_windows(marks, trace, step)
    walls = (high - low).astype(np.float64)
    used = np.bincount(step[step >= 0], minlength=len(marks)) > 0
    usable = np.flatnonzero((walls > 0) & used & asked)
    if not by_number and (usable > 0).any():
        usable = usable[usable > 0]
    if not len(usable):
        raise MeasurementError("No step of the trace took any time on the device; record the trace again.")
    unlaunched = np.bincount(step[(step >= 0) & (links.launch < 0)], minlength=len(marks))
    lost = (unlaunched + _lacking(trace, links, marks))[usable]
    complete = usable[lost == 0] if (lost == 0).any() else usable
    alike = _most_alike(trace, step, complete)
    selected = complete
    if not by_number and len(complete) >= LEAST:
        # A step that ends late takes the time of the next one, whose window is what is left. The middle is a wall that
        # there is: one between two far from each other would leave no step near it.
        relative = walls[complete] / np.quantile(walls[alike], 0.5, method="lower")
        selected = complete[(relative <= OUTLIER) & (relative >= 1 / OUTLIER)]
    alike = np.intersect1d(alike, selected)
    nearest = np.abs(walls[alike] - np.median(walls[alike]))
    counted = int(alike[len(alike) - 1 - int(nearest[::-1].argmin())])  # of equally near ones the last: the warmest
    host = tuple(zip(marks.start.tolist(), marks.end.tolist(), strict=True))
    return Chosen(
        step,
        low,
        high,
        host,
        tuple(selected.tolist()),
        counted,
        len(usable) - len(complete),
        len(complete) - len(selected),
    )


def _lacking(trace: KinetoTrace, links: Links, marks: Steps) -> Rows:
    """Count the kernels that each step launched and the trace lacks: int64[steps]."""
    begin = trace.launches.start[without_kernel(trace, links)]
    mark = np.searchsorted(marks.start, begin, side="right") - 1
    inside = (mark >= 0) & (begin < marks.end[mark])
    return np.bincount(mark[inside], minlength=len(marks))


def _queued_before(trace: KinetoTrace, links: Links) -> NDArray[np.bool_]:
    """bool[device]: it ended before the first one whose launch is in the trace, and its own launch is not."""
    device, launched = trace.device, links.launch >= 0
    first = device.start[launched].min(initial=np.iinfo(np.int64).max)
    queued: NDArray[np.bool_] = ~launched & (device.end <= first) & launched.any()
    return queued


def _most_alike(trace: KinetoTrace, step: Rows, among: Rows) -> Rows:
    """The steps of the largest group that runs the same kernels, each as often; of equally large groups the last."""
    groups: dict[bytes, list[int]] = {}
    for number in among.tolist():
        names, times = np.unique(trace.device.name[step == number], return_counts=True)
        groups.setdefault(names.tobytes() + times.tobytes(), []).append(number)
    return np.asarray(max(reversed(groups.values()), key=len), np.int64)


def aligned(step: StepCalls, counted: StepCalls) -> Rows:
    """int64[step]: for each call the one of the counted step that it repeats, -1 where none is certain.

    Calls are compared by name, thread by thread; both steps are of one trace, so that a thread is the same in both.
    """
    twin = np.full(len(step), -1, np.int64)
    mine, theirs = np.flatnonzero(step.is_call), np.flatnonzero(counted.is_call)
    names, counted_names = step.events.name.astype(np.int64), counted.events.name.astype(np.int64)
    for thread in np.unique(step.events.thread[mine]).tolist():
        step_rows = mine[step.events.thread[mine] == thread]
        counted_rows = theirs[counted.events.thread[theirs] == thread]
        place = _align(names[step_rows], counted_names[counted_rows])
        twin[step_rows] = np.where(place >= 0, np.append(counted_rows, -1)[place], -1)
    return twin


def _align(names: Rows, counted_names: Rows) -> Rows:
    """`alignment.align` for sequences that differ little; of others only the equal head and tail."""
    shorter = min(len(names), len(counted_names))
    if not shorter or np.array_equal(names, counted_names):
        return alignment.align(names, counted_names)
    equal = names[:shorter] == counted_names[:shorter]
    head = shorter if equal.all() else int(equal.argmin())
    unaligned = shorter - head
    equal = names[len(names) - unaligned :][::-1] == counted_names[len(counted_names) - unaligned :][::-1]
    tail = unaligned if equal.all() else int(equal.argmin())
    if max(len(names), len(counted_names)) - head - tail <= MAX_UNEQUAL:
        return alignment.align(names, counted_names)
    place = np.full(len(names), -1, np.int64)
    place[:head] = np.arange(head)
    place[len(names) - tail :] = np.arange(len(counted_names) - tail, len(counted_names))
    return place
