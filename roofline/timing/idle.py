"""Find the idle times of the device, and their causes.

The cause of a gap is read from the launch of the device event that ends it:

- Launched after the device went idle: the host was late. The cause is its activity between the two: any that fills at
  least half of that time among compiling, loading data, and waiting for a collective; else a blocking call that
  lasted at least half as long as the gap, since without it the host would have been ahead by that much, unless the
  host paused after it for far longer than it takes from launch to launch; else data input, if a copy of a batch to
  the device ends the gap; else dispatch.
- Launched before: the queue was not empty. A launch call still running, or a start within LAUNCH_LATENCY of it,
  is dispatch that came too late to hide its latency. Gaps of up to KERNEL_LATENCY are the device's own latency
  between kernels, unless the launch could not have reached the device before half of the gap was over: the time to
  reach it is the median of the launches that ended a gap that the host was late for. Next to a collective the device
  waited for that. The rest is the device's own, work that the trace does not show.
- Nothing follows in the window: the host was late as well, up to the window's end.

Instants before the launch call and after it have one cause: the call's latency is exposed because it was late.
The host is every thread that launches device work, for a backward pass is launched by another thread than the
forward pass it follows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from roofline.core.copies import crossing
from roofline.timing import host as host_time
from roofline.traces import intervals
from roofline.traces.kineto.events import Events
from roofline.traces.kineto.links import Links
from roofline.traces.kineto.reader import MEMCPY, KinetoTrace

CAUSES = (
    "host dispatch",
    "synchronisation",
    "data input",
    "graph break/compilation",
    "communication wait",
    "other",
)
DISPATCH, SYNC, INPUT, COMPILE, COMM, OTHER = range(len(CAUSES))

# Finer labels, each with its cause.
DETAILS = {
    "Python between ops": DISPATCH,
    "op dispatch": DISPATCH,
    "driver call": DISPATCH,
    "launch call in progress": DISPATCH,
    "launch latency": DISPATCH,
    "after a blocking call": SYNC,
    "data loader": INPUT,
    "before a copy to the device": INPUT,
    "compilation or guards": COMPILE,
    "host waits for a collective": COMM,
    "after a collective": COMM,
    "kernel-to-kernel latency": OTHER,
    "queued, waiting for work not in the trace": OTHER,
    "launch not in the trace": OTHER,
}
LABELS = tuple(DETAILS)
_CAUSE = np.array(list(DETAILS.values()), np.int8)

KERNEL_LATENCY = 4_000  # [ns] longest gap that two queued kernels leave between them
LAUNCH_LATENCY = 10_000  # [ns] from the call of a launch to its start on an idle device
BLOCKING = 5_000  # [ns] a synchronising call that lasts longer has waited
PAUSE = 10  # times the 90 % quantile from launch to launch: by choice, far from Python's time between launches
INPUT_COPY = 1_024  # [byte] a copy to the device that is smaller carries no batch but a scalar

_BLOCKS = re.compile(r"Synchronize|Memcpy(?!.*Peer)")
_LOADS = re.compile(r"DataLoader|dataloader|DataPipe|__next__")
_COMPILES = re.compile(
    r"dynamo|inductor|compile_fx|compile_inner|AOTDispatch|Pregraph bytecode|autotune", re.IGNORECASE
)
_COLLECTIVE = re.compile(
    r"nccl|rccl|gloo|c10d::|all_?reduce|all_?gather|reduce_?scatter|barrier|SendRecv", re.IGNORECASE
)
#: Collectives that a host itself waits in; it only enqueues those of NCCL and RCCL.
_WAITS = re.compile(r"gloo|barrier|(?:^|[:_. ])wait", re.IGNORECASE)


@dataclass(frozen=True, slots=True, eq=False)
class Idle:
    """Hold gaps, sorted by start. `start`, `end`: int64[n] [ns]. `window`: int64, the step they lie in.

    `cause`: int8, index into CAUSES. `detail`: int8, index into LABELS. `ended_by`: int64, the device
    event that ends the gap, -1 where its window ends first.
    """

    start: np.ndarray
    end: np.ndarray
    window: np.ndarray
    cause: np.ndarray
    detail: np.ndarray
    ended_by: np.ndarray

    def __len__(self) -> int:
        return len(self.start)

    def seconds(self) -> dict[str, float]:
        """Sum idle time by cause [s], 0 where there is none."""
        return _sums(CAUSES, self.cause, self.end - self.start)

    def before_kernels(self, owner: np.ndarray, owners: int, steps: int) -> np.ndarray:
        """Sum idle time before each op [s per step], with the host in the framework and in Python; shape (owners, 2).

        owner: of each device event. The device's own latency, and waits for a collective, are no time of its host.
        """
        ended = (self.ended_by >= 0) & ~np.isin(self.cause, (OTHER, COMM))
        time = (self.end - self.start)[ended] * 1e-9 / max(1, steps)
        python = self.detail[ended] == LABELS.index("Python between ops")
        return host_time.by_op(
            owner[self.ended_by[ended]], np.where(python, 0, time), np.where(python, time, 0), owners
        )


def _sums(labels: tuple[str, ...], code: np.ndarray, time: np.ndarray) -> dict[str, float]:
    totals = np.bincount(code, weights=time, minlength=len(labels)) * 1e-9
    return dict(zip(labels, totals.tolist(), strict=True))


def causes(trace: KinetoTrace, links: Links, start: np.ndarray, end: np.ndarray) -> Idle:
    """Find the idle intervals of the device within windows, and the cause of each.

    `start`, `end`: int64[n] [ns], disjoint windows in order of time. All streams count as one device. A trace
    without device events does not show when the device was idle: no gaps.
    """
    device = trace.device
    windows = (start, end) if len(device) else (start[:0], end[:0])
    opens, closes, window = _gaps(device.start, device.end, *windows)
    # The first of the events that start as the gap closes has the launch that mattered; the table is sorted.
    running = np.flatnonzero(device.end > device.start)
    at = np.searchsorted(device.start[running], closes)
    candidate = np.append(running, -1)[at]
    ended_by = np.where(np.append(device.start, -1)[candidate] == closes, candidate, -1)

    launch = np.append(links.launch, -1)[ended_by]
    called = np.append(trace.launches.start, 0)[launch]
    returned = np.append(trace.launches.end, 0)[launch]
    follows = ended_by < 0
    late = follows | ((launch >= 0) & (called > opens))
    until = np.where(follows, closes, np.clip(called, opens, closes))

    reaches = _latency((closes - called)[late & ~follows], (closes - called)[launch >= 0])
    # Without late launches the latency is uncertain: then the trace must also show that the queue was empty.
    begun = np.append(device.start, 0)[np.searchsorted(device.start, opens) - 1]
    exposed = (2 * (called + reaches - opens) >= closes - opens) & (bool((late & ~follows).any()) | (begun <= called))
    detail = _classify_queued(trace, opens, closes, ended_by, launch, called, returned, exposed)
    detail[late] = _classify_late(trace, links, opens[late], closes[late], until[late], ended_by[late])
    return Idle(opens, closes, window, _CAUSE[detail], detail, ended_by)


def _gaps(
    busy_start: np.ndarray, busy_end: np.ndarray, start: np.ndarray, end: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """List starts and ends of the idle times of all windows [ns], and the window of each."""
    if not len(start):
        empty = np.zeros(0, np.int64)
        return empty, empty, empty
    busy_start, busy_end = intervals.union(busy_start, busy_end)
    limit = np.iinfo(np.int64)
    opens, closes = np.append(limit.min, busy_end), np.append(busy_start, limit.max)
    # Both the free times and the windows are sorted and disjoint: each free time meets a range of windows.
    first = np.searchsorted(end, opens, "right")
    count = np.maximum(np.searchsorted(start, closes) - first, 0)
    free = np.repeat(np.arange(len(opens)), count)
    window = first[free] + np.arange(len(free)) - (np.cumsum(count) - count)[free]
    low, high = np.maximum(opens[free], start[window]), np.minimum(closes[free], end[window])
    gap = high > low
    return low[gap], high[gap], window[gap]


def _latency(late: np.ndarray, all_: np.ndarray) -> float:
    """Estimate the time of a launch to reach an idle device [ns], up to LAUNCH_LATENCY.

    late: times from call to start of launches that ended a gap late, whose median is taken; all_: those of all gaps.
    Without late ones it is the shortest of all.
    """
    typical = float(np.median(late)) if len(late) else float(all_.min(initial=LAUNCH_LATENCY))
    return min(max(typical, 0.0), LAUNCH_LATENCY)


def _label(name: str) -> int:
    return LABELS.index(name)


def _classify_queued(
    trace: KinetoTrace,
    opens: np.ndarray,
    closes: np.ndarray,
    ended_by: np.ndarray,
    launch: np.ndarray,
    called: np.ndarray,
    returned: np.ndarray,
    exposed: np.ndarray,
) -> np.ndarray:
    """Classify gaps whose end was launched before they began: int8, index into LABELS.

    exposed: the launch had not reached the device in at least half of the gap.
    """
    device = trace.device
    collective = _match_names(trace, _COLLECTIVE)
    last_ends = np.sort(np.where(collective[device.name], device.end, -1))
    at = np.searchsorted(last_ends, opens)
    after_collective = np.append(last_ends, -2)[at] == opens
    near_collective = after_collective | np.append(collective[device.name], False)[ended_by]
    detail = np.select(
        [
            launch < 0,
            (closes - opens <= KERNEL_LATENCY) & ~exposed,
            returned > opens,
            exposed & (closes - opens <= KERNEL_LATENCY) | (closes - called <= LAUNCH_LATENCY),
            near_collective,
        ],
        [
            _label("launch not in the trace"),
            _label("kernel-to-kernel latency"),
            _label("launch call in progress"),
            _label("launch latency"),
            _label("after a collective"),
        ],
        _label("queued, waiting for work not in the trace"),
    )
    return detail.astype(np.int8)


def _classify_late(
    trace: KinetoTrace,
    links: Links,
    opens: np.ndarray,
    closes: np.ndarray,
    until: np.ndarray,
    ended_by: np.ndarray,
) -> np.ndarray:
    """Classify gaps that the host ended late, busy otherwise from `opens` to `until`: int8, index into LABELS."""
    ops, launches, annotations, device = trace.ops, trace.launches, trace.annotations, trace.device
    hosts = np.unique(launches.thread[links.launch[links.launch >= 0]])
    ranges = (ops, annotations)
    on_host = [np.isin(table.thread, hosts) for table in ranges]
    time = np.maximum(until - opens, 1)

    def fills(pattern: re.Pattern[str]) -> np.ndarray:
        """Mark gaps where ranges with such a name cover at least half of the time."""
        matching = _match_names(trace, pattern)
        rows = [matching[table.name] & host for table, host in zip(ranges, on_host, strict=True)]
        start = np.concatenate([table.start[row] for table, row in zip(ranges, rows, strict=True)])
        end = np.concatenate([table.end[row] for table, row in zip(ranges, rows, strict=True)])
        filled: np.ndarray = 2 * intervals.covered(start, end, opens, until) >= time
        return filled

    working = 2 * intervals.covered(ops.start[on_host[0]], ops.end[on_host[0]], opens, until) >= time
    calling = np.isin(launches.thread, hosts)
    in_driver = 2 * intervals.covered(launches.start[calling], launches.end[calling], opens, until) >= time

    blocking = calling & _match_names(trace, _BLOCKS)[launches.name] & (launches.duration > BLOCKING)
    waited, back = _longest_ending_within(launches.start[blocking], launches.end[blocking], opens, until)
    held = (2 * waited >= closes - opens) & (until - back <= PAUSE * _launch_interval(launches, links))

    into_device = np.array([crossing(name) == "in" for name in trace.names], bool)[device.name]
    to_device = np.append((device.kind == MEMCPY) & into_device, False)[ended_by]
    to_device[to_device] = [_copied_bytes(trace, row) >= INPUT_COPY for row in ended_by[to_device].tolist()]

    detail = np.select(
        [
            fills(_COMPILES),
            fills(_LOADS),
            fills(_COLLECTIVE) & (fills(_WAITS) | (2 * waited >= time)),
            held,
            to_device,
            in_driver,
            working,
        ],
        [
            _label("compilation or guards"),
            _label("data loader"),
            _label("host waits for a collective"),
            _label("after a blocking call"),
            _label("before a copy to the device"),
            _label("driver call"),
            _label("op dispatch"),
        ],
        _label("Python between ops"),
    )
    return detail.astype(np.int8)


def _match_names(trace: KinetoTrace, pattern: re.Pattern[str]) -> np.ndarray:
    """Match the names of a trace; bool per name."""
    return np.array([bool(pattern.search(name)) for name in trace.names], bool)


def _copied_bytes(trace: KinetoTrace, row: int) -> float:
    """Read the bytes of a copy; INPUT_COPY where the trace has none, so that it counts as a batch."""
    size = trace.device.arguments(row).get("bytes", INPUT_COPY)
    return size if isinstance(size, int | float) else 0


def _launch_interval(launches: Events, links: Links) -> float:
    """Compute the 90 % quantile of the time from a launch's end to the next on its thread [ns]; infinite without two.

    Only launches that the device carried out, and no other calls of the driver.
    """
    row = np.unique(links.launch[links.launch >= 0])
    row = row[np.lexsort((launches.start[row], launches.thread[row]))]
    same_thread = launches.thread[row[1:]] == launches.thread[row[:-1]]
    pauses = (launches.start[row[1:]] - launches.end[row[:-1]])[same_thread]
    return max(float(np.quantile(pauses, 0.9)), 0.0) if len(pauses) else float("inf")


def _longest_ending_within(
    start: np.ndarray, end: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Find the duration of the longest interval that ends between low and high, 0 for none; int64[m] [ns].

    Also returns the end of the last of those intervals, `low` for none.
    """
    sequence = np.argsort(end, kind="stable")
    length, end = (end - start)[sequence], end[sequence]
    first, last = np.searchsorted(end, low), np.searchsorted(end, high, "right")
    # reduceat takes the maximum from each even to the next odd index; the sentinel lets them end the array.
    if not len(low):
        return low, low
    bounds = np.stack((first, last), axis=1).ravel()
    longest = np.maximum.reduceat(np.append(length, 0), bounds)[::2]
    nonempty = last > first
    return np.where(nonempty, longest, 0), np.where(nonempty, np.append(end, 0)[last - 1], low)
