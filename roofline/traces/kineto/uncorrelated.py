"""Find the launches of device events whose correlation names none: by `External id`, and by flow.

ROCm writes traces in which a launch and what it launched share an `External id` and nothing has a correlation. A flow
(`ac2g`) goes from the begin of the launch to the begin of the device event, whatever ids either has.
"""

from __future__ import annotations

import numpy as np

from roofline.traces import nesting
from roofline.traces.kineto.events import Events
from roofline.traces.kineto.launches import Calls
from roofline.traces.kineto.reader import KinetoTrace


def by_external_id(
    trace: KinetoTrace, calls: Calls, launch_op: np.ndarray, launch: np.ndarray, clash: np.ndarray
) -> np.ndarray:
    """int64[device]: `launch`, and for events without one the launch with the same `External id`, -1 for none.

    An id may be that of the op around several launches: then those that have no device event yet and the events without
    a launch are matched in order, where there are as many of each, all of one op. launch_op: the op around each launch,
    -1 for none. clash: bool[device], events to leave as they are.
    """
    device, launches = trace.device, trace.launches
    free = calls.launching & (launches.external >= 0)
    free[launch[launch >= 0]] = False
    rows, events = np.flatnonzero(free), np.flatnonzero((launch < 0) & ~clash & (device.external >= 0))
    if not len(rows) or not len(events):
        return launch
    found = launch.copy()
    rows = rows[np.lexsort((launches.start[rows], launches.external[rows]))]
    events = events[np.lexsort((device.start[events], device.external[events]))]
    ids, first, number = np.unique(launches.external[rows], return_index=True, return_counts=True)
    least, most = (extreme.reduceat(launch_op[rows], first) for extreme in (np.minimum, np.maximum))
    of_event, begin, events_of = np.unique(device.external[events], return_index=True, return_counts=True)
    at = np.minimum(np.searchsorted(ids, of_event), len(ids) - 1)
    in_one_op = (least[at] == most[at]) & (least[at] >= 0)
    same = (ids[at] == of_event) & (number[at] == events_of) & (in_one_op | (number[at] == 1))
    turn = np.arange(len(events)) - np.repeat(begin, events_of)
    matched = np.repeat(same, events_of)
    place = np.repeat(first[at], events_of) + turn
    found[events[matched]] = rows[place[matched]]
    return found


def by_flow(trace: KinetoTrace, calls: Calls, launch: np.ndarray, clash: np.ndarray) -> np.ndarray:
    """int64[device]: `launch`, and for events without one that from which a flow goes to it, -1 where several do.

    clash: bool[device], events to leave as they are.
    """
    device, launches, flows = trace.device, trace.launches, trace.flows
    events, rows = np.flatnonzero((launch < 0) & ~clash), np.flatnonzero(calls.launching)
    if not len(flows) or not len(events) or not len(rows):
        return launch
    found = launch.copy()
    flow_of_event = _at_begin(trace, device, events)
    flow_of_launch = _at_begin(trace, launches, rows)
    rows, ids = rows[flow_of_launch >= 0], flows.id[flow_of_launch[flow_of_launch >= 0]]
    order = np.argsort(ids, kind="stable")
    rows, ids = rows[order], ids[order]
    wanted_id = np.where(flow_of_event >= 0, flows.id[flow_of_event], -1)
    first, last = np.searchsorted(ids, wanted_id), np.searchsorted(ids, wanted_id, "right")
    lone = (wanted_id >= 0) & (last - first == 1)
    found[events[lone]] = rows[first[lone]]
    return found


def _at_begin(trace: KinetoTrace, table: Events, rows: np.ndarray) -> np.ndarray:
    """Find the end of a flow that lies where each event begins: int64[rows] into `trace.flows`, -1 for none."""
    flows = trace.flows
    times = nesting.distinct(flows.start)
    stride = len(times) + 1

    def key(thread: np.ndarray, start: np.ndarray) -> np.ndarray:
        return thread.astype(np.int64) * stride + np.searchsorted(times, start)

    keys = key(flows.thread, flows.start)
    order = np.argsort(keys, kind="stable")
    sought = key(table.thread[rows], table.start[rows])
    at = order[np.minimum(np.searchsorted(keys[order], sought), len(order) - 1)]
    there = (flows.thread[at] == table.thread[rows]) & (flows.start[at] == table.start[rows])
    return np.where(there, at, -1)
