"""Tell what the device waits for where a launch has reached it and nothing runs, as far as a trace says.

Work on a stream starts when the work before it on the stream has ended, and each event is over that the stream was told
to wait for. CUPTI records such a wait with the stream that is waited for (`wait_on_stream`). Without that record a call
of `cudaStreamWaitEvent` right before the launch says that there is one, not for which stream, nor which stream waits.

All work in the trace is over where nothing runs, and with it each event behind it: a wait explains no more than the
latency from there to the start.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

import msgspec
import numpy as np

from roofline.core.vocabulary import FOR_COPY, FOR_EVENT, FOR_STREAM, NOT_RECORDED
from roofline.traces import nesting
from roofline.traces.kineto.events import Events, columns
from roofline.traces.kineto.launches import Calls
from roofline.traces.kineto.links import Links
from roofline.traces.kineto.reader import MEMCPY, KinetoTrace

_WAIT_CALL = re.compile(r"StreamWaitEvent")
_WAIT_RECORD = re.compile(r"Stream ?Wait", re.IGNORECASE)

_Number = Annotated[int, msgspec.Meta(ge=np.iinfo(np.int64).min, le=np.iinfo(np.int64).max)]


class _Record(msgspec.Struct, gc=False):
    """Hold what CUPTI records of a wait: which stream waits, and for what; -1 where it does not say."""

    stream: _Number = -1
    on: _Number = msgspec.field(default=-1, name="wait_on_stream")
    event: _Number = msgspec.field(default=-1, name="wait_on_cuda_event_id")
    recorded_by: _Number = msgspec.field(default=-1, name="wait_on_cuda_event_record_corr_id")


_LONGEST = 200  # characters of a kernel's name
_NOTHING = _Record()
_FIELDS = _Record.__struct_fields__


@dataclass(frozen=True, slots=True)
class Waited:
    """What kept launched work from starting. cause: of `vocabulary.DEVICE_WAITS`; of: in words, "" for not known."""

    cause: str
    of: str = ""


def waited_for(trace: KinetoTrace, links: Links, opens: np.ndarray, event: np.ndarray, latency: float) -> list[Waited]:
    """Tell for each time in which nothing ran what the device event that ended it waited for.

    opens: when nothing ran any more [ns]; event: rows in `trace.device` whose launches are known. latency: how long a
    launch takes to start on an idle device [ns]: what starts that soon waited for what was over then. What starts later
    waited for something else as well, and the wait before it is still named.
    """
    if not len(event):
        return []
    soon = trace.device.start[event] - opens <= latency
    evidence = (
        _recorded_waits(trace, links, event, soon),
        _called_waits(trace, links, event, soon),
        _copies(trace, opens, soon),
    )
    return [next(filter(None, alternatives), Waited(NOT_RECORDED)) for alternatives in zip(*evidence, strict=True)]


def _recorded_waits(trace: KinetoTrace, links: Links, event: np.ndarray, soon: np.ndarray) -> list[Waited | None]:
    """Tell the last wait that is recorded of an event's stream, called after the launch of the work before it there."""
    waits, device = trace.waits, trace.device
    rows = np.flatnonzero(trace.matches(_WAIT_RECORD, waits.name))
    if not len(rows):
        return [None] * len(event)
    records = [record or _NOTHING for record in waits.decoded(rows, _Record)]
    stream, on, number, recorded_by = columns(records, _FIELDS)
    own, of = (_streams(trace, waits.thread[rows], streams) for streams in (stream, on))
    called = _call_times(trace, waits.correlation[rows], waits.start[rows])
    launched = np.append(trace.launches.start, -1)[links.launch]
    wait = _last(own, called, device.thread[event], launched[event])
    wait = np.where((wait >= 0) & (called[wait] > _launched_before(device, launched)[event]), wait, -1)
    by = _call_times(trace, recorded_by[wait], launched[event])
    work = _last(np.where(launched >= 0, device.thread, -3), launched, of[wait], by)
    return [
        None if at < 0 else _in_words(trace, int(on[at]), int(number[at]), int(last), is_soon)
        for at, last, is_soon in zip(wait.tolist(), work.tolist(), soon.tolist(), strict=True)
    ]


def _in_words(trace: KinetoTrace, on: int, number: int, work: int, soon: bool) -> Waited:
    """Name the stream that is waited for, and the last work on it before the event; else the event by its number."""
    if on < 0:
        cause, of = FOR_EVENT, f"event {number}" if number >= 0 else ""
    else:
        cause, of = FOR_STREAM, f"stream {on}" + (f": {_name(trace, work)}" if work >= 0 else "")
    return Waited(cause, of) if soon else Waited(NOT_RECORDED, f"after a wait for {of or 'an event'}")


def _called_waits(trace: KinetoTrace, links: Links, event: np.ndarray, soon: np.ndarray) -> list[Waited | None]:
    """Tell the call that makes a stream wait for an event right before a launch, on its thread.

    Where the recorder names the streams that wait, calls with a record are left to that.
    """
    launches = trace.launches
    calls = np.flatnonzero(
        trace.matches(_WAIT_CALL, launches.name) & ~np.isin(launches.correlation, trace.waits.correlation)
    )
    launching = np.flatnonzero(Calls(trace).launching)
    launch = links.launch[event]
    wait = _last(launches.thread[calls], launches.start[calls], launches.thread[launch], launches.start[launch])
    wait = np.append(calls, -1)[wait]
    before = _last(
        launches.thread[launching], launches.start[launching], launches.thread[launch], launches.start[launch] - 1
    )
    earlier = np.where(before >= 0, launches.start[np.append(launching, -1)[before]], -1)
    found = (wait >= 0) & (launches.start[wait] > earlier)
    return [
        Waited(FOR_EVENT if is_soon else NOT_RECORDED, f"{trace.names[launches.name[row]]} before its launch")
        if there
        else None
        for row, there, is_soon in zip(wait.tolist(), found.tolist(), soon.tolist(), strict=True)
    ]


def _copies(trace: KinetoTrace, opens: np.ndarray, soon: np.ndarray) -> list[Waited | None]:
    """Tell the copy with whose end the time began, where the event started soon after it."""
    device = trace.device
    copies = np.flatnonzero(device.kind == MEMCPY)
    copies = copies[np.argsort(device.end[copies], kind="stable")]
    at = np.append(copies, -1)[np.searchsorted(device.end[copies], opens)]
    found = (at >= 0) & (device.end[at] == opens) & soon
    return [
        Waited(FOR_COPY, _name(trace, row)) if there else None
        for row, there in zip(at.tolist(), found.tolist(), strict=True)
    ]


def _name(trace: KinetoTrace, row: int) -> str:
    """Name a device event with its stream."""
    return f"{trace.names[trace.device.name[row]][:_LONGEST]} on stream {trace.threads[trace.device.thread[row]][1]}"


def _streams(trace: KinetoTrace, thread: np.ndarray, stream: np.ndarray) -> np.ndarray:
    """Find the thread that a stream of the device is in the trace: int64[n], -1 for none."""
    number = {name: code for code, name in enumerate(trace.threads)}
    names = [(trace.threads[at][0], str(name)) for at, name in zip(thread.tolist(), stream.tolist(), strict=True)]
    return np.asarray([number.get(name, -1) for name in names], np.int64)


def _call_times(trace: KinetoTrace, correlation: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Find when the call of a correlation began [ns]; `otherwise` where it is not in the trace."""
    launches = trace.launches
    order = np.argsort(launches.correlation, kind="stable")
    ids = np.append(launches.correlation[order], -1)
    at = np.searchsorted(ids[:-1], correlation)
    known = (ids[at] == correlation) & (correlation >= 0)
    return np.where(known, np.append(launches.start[order], -1)[at], otherwise)


def _launched_before(device: Events, launched: np.ndarray) -> np.ndarray:
    """Find when the event before each one on its stream was launched [ns]; -1 where that is not known."""
    order = np.lexsort((device.start, device.thread))
    before = np.full(len(device), -1)
    same = device.thread[order[1:]] == device.thread[order[:-1]]
    before[order[1:]] = np.where(same, order[:-1], -1)
    launched_before: np.ndarray = np.append(launched, -1)[before]
    return launched_before


def _last(group: np.ndarray, time: np.ndarray, of_group: np.ndarray, until: np.ndarray) -> np.ndarray:
    """Find the last row of a group whose time is not later: int64[queries], -1 for none."""
    order = np.lexsort((time, group))
    times = nesting.distinct(time)
    stride = len(times) + 1
    key = group[order].astype(np.int64) * stride + np.searchsorted(times, time[order], "right")
    wanted = of_group.astype(np.int64) * stride + np.searchsorted(times, until, "right")
    at = np.append(order, -1)[np.searchsorted(key, wanted, "right") - 1]
    same = (at >= 0) & (np.append(group, -2)[at] == of_group)
    return np.where(same, at, -1)
