"""Slow one rank of recorded traces down, and let the others wait for it, as if it had been so when they were recorded.

A collective ends on all ranks once the last of them has begun it, and lasts from then on as long as on the rank where
it was shortest. What a rank does after it moves with its end. Times are in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Event = dict[str, Any]
Trace = dict[str, Any]
#: From when on a rank is how much later.
Delay = tuple[float, float]

#: Between the two ends of a jump.
_INSTANT = 1e-3


@dataclass(frozen=True, slots=True)
class Slowed:
    """How a rank is slowed.

    start: it begins everything `time` later. work: before each collective that its host does not begin while another
    one runs, it runs copies of its longest kernel for `time`. idle: before each collective its device runs nothing for
    `time`. clock: its kernels take `pace` times as long.
    """

    rank: int
    by: Literal["start", "work", "idle", "clock"]
    time: float = 0.0
    pace: float = 1.0


def slow(traces: list[Trace], slowed: Slowed) -> list[Trace]:
    """Return the traces of all ranks, by number, of which one is slowed."""
    runs = [[event for event in _kernels(trace) if _is_collective(event)] for trace in traces]
    own = _own_delays(traces[slowed.rank], runs[slowed.rank], slowed)
    first = min(event["ts"] for trace in traces for event in trace["traceEvents"] if "ts" in event)
    knots: list[list[tuple[float, float]]] = [[(first - 1, first - 1)] for _ in traces]  # a time, and what it becomes
    after, ends = 0.0, [first - 1.0] * len(traces)
    for collective in zip(*runs, strict=True):
        begins = []
        for rank, event in enumerate(collective):
            delay = after
            for at, more in own if rank == slowed.rank else []:
                if ends[rank] <= at <= event["ts"]:
                    knots[rank] += [(at - _INSTANT, at - _INSTANT + delay), (at, at + delay + more)]
                    delay += more
            knots[rank].append((event["ts"], event["ts"] + delay))
            begins.append(event["ts"] + delay)
        shortest, last = min(event["dur"] for event in collective), max(map(_end, collective))
        after = max(after, max(begins) + shortest - last)
        for rank, event in enumerate(collective):
            ends[rank] = _end(event)
            knots[rank].append((ends[rank], ends[rank] + after))
    moved = [_moved(trace, knots[rank], 1.0) for rank, trace in enumerate(traces)]
    if slowed.by == "clock":
        moved[slowed.rank] = _moved(traces[slowed.rank], knots[slowed.rank], slowed.pace)
    if slowed.by == "work":
        begins_of_work = [float(np.interp(at - _INSTANT, *np.transpose(knots[slowed.rank]))) for at, _ in own]
        moved[slowed.rank]["traceEvents"] += list(_added(traces[slowed.rank], slowed.time, begins_of_work))
    return moved


def _own_delays(trace: Trace, collectives: list[Event], slowed: Slowed) -> list[Delay]:
    """Return what makes a rank later than it was, in the order of time."""
    if slowed.by == "start":
        return [(min(event["ts"] for event in trace["traceEvents"] if "ts" in event), slowed.time)]
    if slowed.by == "clock":
        others = (event for event in _kernels(trace) if not _is_collective(event))
        return [(_end(event), event["dur"] * (slowed.pace - 1)) for event in others]
    if slowed.by == "work":
        return [(at, slowed.time) for at in _begins_of_hosts(trace, collectives)]
    return [(event["ts"], slowed.time) for event in collectives]


def _begins_of_hosts(trace: Trace, collectives: list[Event]) -> Iterator[float]:
    """Yield when the host begins an op that launches a collective, where no other one runs then."""
    launches = _launches(trace)
    for event in collectives:
        launch = launches[event["args"]["correlation"]]
        begin = min(op["ts"] for op in trace["traceEvents"] if op.get("cat") == "cpu_op" and _holds(op, launch))
        if not any(other["ts"] <= begin <= _end(other) for other in collectives):
            yield begin


def _holds(op: Event, launch: Event) -> bool:
    """Return whether a launch is inside of an op."""
    return bool(op["tid"] == launch["tid"] and op["ts"] <= launch["ts"] and _end(launch) <= _end(op))


def _moved(trace: Trace, knots: list[tuple[float, float]], pace: float) -> Trace:
    """Return a trace whose times have become others; kernels last as long as they did, times the pace."""
    times, become = np.asarray(knots).T
    last = become[-1] - times[-1]
    events = []
    for event in trace["traceEvents"]:
        if "ts" not in event:
            events.append(event)
            continue
        ends = [event["ts"], event["ts"] + event.get("dur", 0.0)]
        begin, end = (float(np.interp(at, times, become, right=at + last)) for at in ends)
        changed = {"ts": begin}
        if "dur" in event:
            is_own = event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") and not _is_collective(event)
            changed["dur"] = event["dur"] * (pace if event["cat"] == "kernel" else 1.0) if is_own else end - begin
        events.append({**event, **changed})
    return {**trace, "traceEvents": events}


def _added(trace: Trace, time: float, begins: list[float]) -> Iterator[Event]:
    """Yield copies of the longest kernel, with its op and its launch, that take `time` together from each begin on."""
    kernel = max((event for event in _kernels(trace) if not _is_collective(event)), key=lambda event: event["dur"])
    launch = _launches(trace)[kernel["args"]["correlation"]]
    op = max((op for op in trace["traceEvents"] if op.get("cat") == "cpu_op" and _holds(op, launch)), key=_begin)
    copies = max(1, int(time // kernel["dur"]))
    number = max(event["args"].get("correlation", 0) for event in trace["traceEvents"] if event.get("args"))
    for begin in begins:
        for at in range(copies):
            number, start, lasts = number + 1, begin + at * time / copies, time / copies
            yield {**op, "ts": start, "dur": lasts * 0.5, "args": {**op["args"], "External id": number}}
            for event, dur in ((launch, lasts * 0.25), (kernel, lasts * 0.9)):
                ids = {"External id": number, "correlation": number}
                yield {**event, "ts": start + lasts * 0.1, "dur": dur, "args": {**event["args"], **ids}}


def _launches(trace: Trace) -> dict[int, Event]:
    """Return the calls that launch, by their correlation."""
    return {event["args"]["correlation"]: event for event in trace["traceEvents"] if event.get("cat") == "cuda_runtime"}


def _kernels(trace: Trace) -> list[Event]:
    """Return the kernels of a trace in the order of time."""
    return sorted((event for event in trace["traceEvents"] if event.get("cat") == "kernel"), key=lambda one: one["ts"])


def _is_collective(event: Event) -> bool:
    """Return whether a kernel is one of NCCL's."""
    return event.get("cat") == "kernel" and event["name"].startswith("nccl")


def _begin(event: Event) -> float:
    """Return when an event begins."""
    return float(event["ts"])


def _end(event: Event) -> float:
    """Return when an event ends."""
    return float(event["ts"] + event["dur"])
