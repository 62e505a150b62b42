"""Find the idle times of the device, and their causes.

Each is cut where its host could do no more: when the call that launched the device event which ends it had returned,
and the launch had reached the device, for which the trace's own launches on an idle device take the median. Before the
cut the host was late, after it the device waits.

- The host's part: up to the call, its cause is the activity of the host, any that fills at least half of that time
  among compiling, loading data, and waiting for a collective; else a blocking call that lasted at least half as long as
  the part, since without it the host would have been ahead by that much, unless the host paused after it for far longer
  than it takes from launch to launch; else data input, if a copy of a batch to the device ends it; else dispatch. Of
  this the call itself may be most.
- The device's part: up to KERNEL_LATENCY it is the device's own latency between kernels. Next to a collective the
  device waited for that. Else it waited for what the trace says (`device_waits`), or the cause is not recorded.
- Nothing follows in the window: the host was late as well, up to the window's end.

The host is every thread that launches device work, for a backward pass is launched by another thread than the
forward pass it follows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from roofline.core.copies import crossing
from roofline.core.schema import Waits
from roofline.core.vocabulary import DEVICE_WAITS, NOT_RECORDED
from roofline.timing import device_waits, host_functions
from roofline.timing import host as host_time
from roofline.traces import intervals
from roofline.traces.kineto import python_calls
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
    *DEVICE_WAITS,
)
DISPATCH, SYNC, INPUT, COMPILE, COMM, OTHER, *_ON_DEVICE = range(len(CAUSES))

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
    "launch not in the trace": _ON_DEVICE[-1],  # nothing says who was late
    **dict(zip(DEVICE_WAITS, _ON_DEVICE, strict=True)),
}
LABELS = tuple(DETAILS)
_CAUSE = np.array(list(DETAILS.values()), np.int8)

KERNEL_LATENCY = 4_000  # [ns] longest gap that two queued kernels leave between them
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
    """Hold idle times, sorted by start. `start`, `end`: int64[n] [ns]. `window`: int64, the step they lie in.

    Of a time that the host begins and the device ends, both parts are there. `cause`: int8, index into CAUSES.
    `detail`: int8, index into LABELS. `ended_by`: int64, the device event that ends it, the same one for both parts; -1
    where its window ends first. `of`: int64, index into `names`, what was waited for; -1 where nothing says so.
    """

    start: np.ndarray
    end: np.ndarray
    window: np.ndarray
    cause: np.ndarray
    detail: np.ndarray
    ended_by: np.ndarray
    of: np.ndarray
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.start)

    def seconds(self) -> dict[str, float]:
        """Sum idle time by cause [s], 0 where there is none."""
        return _sums(CAUSES, self.cause, self.end - self.start)

    def before_kernels(self, owner: np.ndarray, owners: int, steps: int) -> np.ndarray:
        """Sum idle time before each op [s per step], with the host in the framework and in Python; shape (owners, 2).

        owner: of each device event. The device's own latency, and waits for a collective, are no time of its host.
        """
        ended = (self.ended_by >= 0) & ~np.isin(self.cause, (OTHER, COMM, *_ON_DEVICE))
        time = (self.end - self.start)[ended] * 1e-9 / max(1, steps)
        python = self.detail[ended] == LABELS.index("Python between ops")
        return host_time.by_op(
            owner[self.ended_by[ended]], np.where(python, 0, time), np.where(python, time, 0), owners
        )

    def by_op(self, owner: np.ndarray, steps: int) -> Waits:
        """Sum idle time before each op whose cause is named or is the device's, as the profile keeps it.

        owner: of each device event.
        """
        rows = np.flatnonzero((self.ended_by >= 0) & ((self.of >= 0) | np.isin(self.cause, _ON_DEVICE)))
        keys = np.stack([owner[self.ended_by[rows]], self.cause[rows], self.of[rows]])
        keys, place = np.unique(keys, axis=1, return_inverse=True)
        time = np.bincount(place.ravel(), weights=(self.end - self.start)[rows], minlength=keys.shape[1])
        lasting = np.rint(time / max(1, steps)).astype(np.int64)
        kept = np.flatnonzero((lasting > 0) & (keys[0] >= 0))
        op, cause, of = (column[kept].tolist() for column in keys)
        return Waits(CAUSES, self.names, tuple(op), tuple(cause), tuple(of), tuple(lasting[kept].tolist()))


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
    called, returned = (np.append(times, 0)[launch] for times in (trace.launches.start, trace.launches.end))
    after_call, latency = _launch_latency(trace, links)
    # A copy out of the device is enqueued when its call begins, which may return when the copy has ended.
    blocks = _are_copies(trace, "out")[ended_by] & (returned > closes)
    reaches = np.where(blocks, called + after_call, returned + latency)
    cut = np.where(ended_by < 0, closes, np.where(launch < 0, opens, np.clip(reaches, opens, closes)))
    hosts, devices = np.flatnonzero(cut > opens), np.flatnonzero(cut < closes)

    late = _classify_late(trace, links, opens[hosts], cut[hosts], called[hosts], returned[hosts], ended_by[hosts])
    thread = np.append(trace.launches.thread, -1)[launch[hosts]]
    functions = host_functions.most_of(trace, thread, opens[hosts], cut[hosts])
    waiting = _classify_queued(trace, opens[devices], cut[devices], closes[devices], ended_by[devices], launch[devices])
    unexplained = np.flatnonzero(waiting == _label(NOT_RECORDED))
    rows = devices[unexplained]
    waits = device_waits.waited_for(trace, links, opens[rows], ended_by[rows], latency)
    waiting[unexplained] = [_label(wait.cause) for wait in waits]

    texts = [_function(trace, name) for name in functions.tolist()] + [""] * len(devices)
    for place, wait in zip(unexplained.tolist(), waits, strict=True):
        texts[len(hosts) + place] = wait.of
    number = {text: index for index, text in enumerate(dict.fromkeys(filter(None, texts)))}
    part = np.concatenate([hosts, devices])
    begins, ends = np.concatenate([opens[hosts], cut[devices]]), np.concatenate([cut[hosts], closes[devices]])
    detail = np.concatenate([late, waiting])
    of = np.asarray([number.get(text, -1) for text in texts], np.int64)
    order = np.argsort(begins, kind="stable")
    part, detail = part[order], detail[order]
    return Idle(
        begins[order], ends[order], window[part], _CAUSE[detail], detail, ended_by[part], of[order], tuple(number)
    )


def _function(trace: KinetoTrace, name: int) -> str:
    """Write the name of a function of Python as "model.py:88 forward"; "" for none, -1."""
    return "" if name < 0 else str(python_calls.parsed(trace.names[name]))


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


def _launch_latency(trace: KinetoTrace, links: Links) -> tuple[int, int]:
    """Compute the median times from the begin and from the end of a launch call to the start on an idle device [ns].

    At least 0: a call may return after its kernel began. Of a graph the first kernel counts. 0 where fewer than two
    launches of the trace found an idle device: one may be the wait that is looked for. Of the first event nobody knows
    what ran before the trace, and a call that blocks returns after its copy.
    """
    device, launches = trace.device, trace.launches
    launch, first = np.unique(links.launch, return_index=True)
    launch, first = launch[launch >= 0], first[launch >= 0]
    ended = np.append(np.iinfo(np.int64).min, np.maximum.accumulate(device.end))[first]
    blocks = _are_copies(trace, "out")[first] & (launches.end[launch] > device.start[first])
    idle = (first > 0) & (ended <= launches.end[launch]) & ~blocks
    if idle.sum() < 2:
        return 0, 0
    launch, start = launch[idle], device.start[first[idle]]
    # The middle one is a time that there is: of two, one may be the wait that is looked for.
    from_begin, from_end = (
        max(0, int(np.quantile(start - call, 0.5, method="lower")))
        for call in (launches.start[launch], launches.end[launch])
    )
    return from_begin, from_end


def _are_copies(trace: KinetoTrace, crosses: str) -> np.ndarray:
    """Mark the copies between host and device that go "in" or "out": bool[device + 1], the last one for no event."""
    crossing_so = np.array([crossing(name) == crosses for name in trace.names], bool)[trace.device.name]
    return np.append((trace.device.kind == MEMCPY) & crossing_so, False)


def _label(name: str) -> int:
    return LABELS.index(name)


def _classify_queued(
    trace: KinetoTrace,
    opens: np.ndarray,
    cut: np.ndarray,
    closes: np.ndarray,
    ended_by: np.ndarray,
    launch: np.ndarray,
) -> np.ndarray:
    """Classify the device's parts of gaps, from `cut` to `closes`: int8, index into LABELS."""
    device = trace.device
    collective = trace.matches(_COLLECTIVE, device.name)
    last_ends = np.sort(np.where(collective, device.end, -1))
    at = np.searchsorted(last_ends, opens)
    after_collective = np.append(last_ends, -2)[at] == opens
    near_collective = after_collective | np.append(collective, False)[ended_by]
    detail = np.select(
        [launch < 0, closes - cut <= KERNEL_LATENCY, near_collective],
        [_label("launch not in the trace"), _label("kernel-to-kernel latency"), _label("after a collective")],
        _label(NOT_RECORDED),
    )
    return detail.astype(np.int8)


def _classify_late(
    trace: KinetoTrace,
    links: Links,
    opens: np.ndarray,
    closes: np.ndarray,
    called: np.ndarray,
    returned: np.ndarray,
    ended_by: np.ndarray,
) -> np.ndarray:
    """Classify the host's parts of gaps, from `opens` to `closes`: int8, index into LABELS.

    called, returned: of the launch that ended it; what the host did before is its activity up to the call.
    """
    ops, launches, annotations = trace.ops, trace.launches, trace.annotations
    hosts = np.unique(launches.thread[links.launch[links.launch >= 0]])
    ranges = (ops, annotations)
    on_host = [np.isin(table.thread, hosts) for table in ranges]
    until = np.where(ended_by < 0, closes, np.clip(called, opens, closes))
    time = np.maximum(until - opens, 1)
    launching = (ended_by >= 0) & (2 * (closes - until) > closes - opens)

    def fills(pattern: re.Pattern[str]) -> np.ndarray:
        """Mark gaps where ranges with such a name cover at least half of the time."""
        rows = [trace.matches(pattern, table.name) & host for table, host in zip(ranges, on_host, strict=True)]
        start = np.concatenate([table.start[row] for table, row in zip(ranges, rows, strict=True)])
        end = np.concatenate([table.end[row] for table, row in zip(ranges, rows, strict=True)])
        filled: np.ndarray = 2 * intervals.covered(start, end, opens, until) >= time
        return filled

    working = 2 * intervals.covered(ops.start[on_host[0]], ops.end[on_host[0]], opens, until) >= time
    calling = np.isin(launches.thread, hosts)
    in_driver = 2 * intervals.covered(launches.start[calling], launches.end[calling], opens, until) >= time

    blocking = calling & trace.matches(_BLOCKS, launches.name) & (launches.duration > BLOCKING)
    waited, back = _longest_ending_within(launches.start[blocking], launches.end[blocking], opens, until)
    held = (2 * waited >= closes - opens) & (until - back <= PAUSE * _launch_interval(launches, links))

    to_device = _are_copies(trace, "in")[ended_by]
    to_device[to_device] = [_copied_bytes(trace, row) >= INPUT_COPY for row in ended_by[to_device].tolist()]

    detail = np.select(
        [
            launching & ~to_device & (returned > opens),
            launching & ~to_device,
            fills(_COMPILES),
            fills(_LOADS),
            fills(_COLLECTIVE) & (fills(_WAITS) | (2 * waited >= time)),
            held,
            to_device,
            in_driver,
            working,
        ],
        [
            _label("launch call in progress"),
            _label("launch latency"),
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
