"""Which op launched which device event.

Device event -> launch by correlation -> innermost op by containment on the launching thread. This holds for
every generation of traces; the `External id` of a device event, an op's id since 2024 and a copy of the
correlation before, only checks the result and stands in where it fails.
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass

import msgspec
import numpy as np

from roofline.traces import nesting
from roofline.traces.kineto import Events, KinetoTrace

_LAUNCH = re.compile(r"Launch|Memcpy|Memset", re.IGNORECASE)
_GRAPH = re.compile(r"GraphLaunch", re.IGNORECASE)
# Calls that no kernel and no copy comes from, though they carry a correlation.
_NEVER = re.compile(r"Synchronize|EventRecord|EventQuery|StreamQuery|WaitEvent|Occupancy|Attribute", re.IGNORECASE)
_SHARED = 2  # device events behind one launch, more than that and the correlation ids are damaged
_SKEW = 50_000  # [ns] clocks of host and device differ by less: a kernel that begins earlier is not of that launch
_TRUSTED = 0.5  # External ids that agree with containment less often are no ids of these ops


class _Geometry(msgspec.Struct, gc=False):
    """What tells the launches of one kernel apart."""

    grid: msgspec.Raw = msgspec.Raw(b"")
    block: msgspec.Raw = msgspec.Raw(b"")
    bytes: msgspec.Raw = msgspec.Raw(b"")


_NOTHING = _Geometry()  # of arguments that are no object


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """The links of a trace; rows are those of `trace.device`, indices -1 where there is none.

    `launch`: int64, row in `trace.launches`. `op`: int64, row in `trace.ops`, the innermost one. `by_id`: bool,
    the op was found through External id alone. `graph`: bool, launched by replaying a graph. `parent`: int64 per op,
    its parent. `launch_op`: int64 per launch, the innermost op around it.

    The figures: `linked`, `launched`: shares of the summed time of device events [0, 1], None without device time.
    `agreement`: share of the events found both ways whose External id names the same op, None where it names no ops;
    `compared`: their number. `orphans`: events whose launch is not in the trace. `outside`: events launched outside any
    op. `damaged`: events whose correlation cannot be right and was not used.
    """

    launch: np.ndarray
    op: np.ndarray
    by_id: np.ndarray
    graph: np.ndarray
    parent: np.ndarray
    launch_op: np.ndarray
    linked: float | None
    launched: float | None
    agreement: float | None
    compared: int
    orphans: int
    outside: int
    damaged: int


def link(trace: KinetoTrace) -> Links:
    """Links every device event to its launch and its op, as far as the trace tells."""
    ops, launches, device = trace.ops, trace.launches, trace.device
    is_graph = _matching(trace.names, _GRAPH)[launches.name]
    launch = _launches(device, launches, *(_matching(trace.names, p)[launches.name] for p in (_LAUNCH, _NEVER)))
    graph = _at(launch, is_graph, False)
    damaged = _shared(device, launch, graph) | _early(device, launches, launch)
    launch = np.where(damaged, -1, launch)

    intervals = (ops.thread, ops.start, ops.end, ops.order)
    launch_op = nesting.innermost(*intervals, launches.thread, launches.start, launches.end)
    op = _at(launch, launch_op, -1)

    named, copies = _named(device, ops)
    both = (named >= 0) & (op >= 0)
    agreement = float((named == op)[both].mean()) if both.any() else None
    if agreement is not None and agreement < _TRUSTED:  # the ids are none of these ops
        named = np.full(len(device), -1, np.int64)
        conflict = np.zeros(len(device), bool)
    else:
        # One of the two ids is damaged, and nothing tells which: no join is better than a wrong one.
        conflict = both & (named != op)
    if copies:
        conflict = (launch >= 0) & (device.external >= 0) & (device.external != device.correlation)
    launch, op = np.where(conflict, -1, launch), np.where(conflict, -1, op)
    damaged |= conflict
    by_id = (named >= 0) & (op < 0) & ~conflict
    op = np.where(by_id, named, op)
    time = device.duration
    return Links(
        launch=launch,
        op=op,
        by_id=by_id,
        graph=graph & (launch >= 0),
        parent=nesting.parents(*intervals),
        launch_op=launch_op,
        linked=_share(time, op >= 0),
        launched=_share(time, launch >= 0),
        agreement=agreement,
        compared=int(both.sum()),
        orphans=int(((launch < 0) & ~damaged).sum()),
        outside=int(((launch >= 0) & (op < 0)).sum()),
        damaged=int(damaged.sum()),
    )


def _share(time: np.ndarray, rows: np.ndarray) -> float | None:
    total = time.sum()
    return float(time[rows].sum() / total) if total else None


def _matching(names: tuple[str, ...], pattern: re.Pattern[str]) -> np.ndarray:
    """bool per name."""
    return np.array([bool(pattern.search(name)) for name in names], bool)


def _at(index: np.ndarray, values: np.ndarray, absent: int | bool) -> np.ndarray:
    """values[index], and `absent` where the index is -1."""
    return np.append(values, np.array(absent, values.dtype))[index]


def _shared(device: Events, launch: np.ndarray, graph: np.ndarray) -> np.ndarray:
    """bool[device]: behind a launch that has too many device events to be the launch of all of them.

    A graph launches any number; another call two at most, and those alike (one on each device, parts of a copy).
    """
    known = (launch >= 0) & ~graph
    number = np.where(known, np.bincount(launch + 1, minlength=1)[launch + 1], 0)
    names = device.name.astype(np.int64)
    most = np.full(int(launch.max(initial=-1)) + 1, -1, np.int64)
    least = np.full(len(most), np.iinfo(np.int64).max)
    np.maximum.at(most, launch[known], names[known])
    np.minimum.at(least, launch[known], names[known])
    unlike = _at(np.where(known, launch, -1), most > least, False)
    return known & ((number > _SHARED) | unlike)


def _early(device: Events, launches: Events, launch: np.ndarray) -> np.ndarray:
    """bool[device]: begins before its launch. Where most do, the clocks disagree, and it says nothing."""
    known = launch >= 0
    early = known & (device.start + _SKEW < _at(launch, launches.start, 0))
    return early if 2 * early.sum() < known.sum() else np.zeros(len(device), bool)


def _launches(device: Events, launches: Events, launching: np.ndarray, never: np.ndarray) -> np.ndarray:
    """int64[device]: the launch of the same correlation, -1 for none.

    Of several, as in windows merged into one file, the last that begins before the device event. A call that
    launches goes before one that does not (a synchronisation may carry the id of what it waits for).
    """
    found = np.full(len(device), -1, np.int64)
    for calls in (np.flatnonzero(launching), np.flatnonzero(~launching & ~never)):
        calls = calls[launches.correlation[calls] >= 0]
        if not len(calls):
            continue
        calls = calls[np.lexsort((launches.start[calls], launches.correlation[calls]))]
        # (correlation, start) as one number that sorts like the pair.
        ids, times = nesting.distinct(launches.correlation[calls]), nesting.distinct(launches.start[calls])
        stride = len(times) + 1
        code = np.searchsorted(ids, launches.correlation[calls])
        key = code * stride + np.searchsorted(times, launches.start[calls])
        wanted = np.minimum(np.searchsorted(ids, device.correlation), len(ids) - 1)
        before = np.searchsorted(key, wanted * stride + np.searchsorted(times, device.start, "right")) - 1
        first = np.searchsorted(code, wanted)  # clocks may disagree: the first one, if all begin later
        known = (ids[wanted] == device.correlation) & (found < 0)
        found = np.where(known, calls[np.maximum(before, first)], found)
    return found


def _named(device: Events, ops: Events) -> tuple[np.ndarray, bool]:
    """int64[device]: the op whose id the device event carries, -1 for none; and whether the ids repeat the correlation.

    They did before 2024, and then name no op.
    """
    has_id = device.external >= 0
    copies = bool(2 * ((device.external == device.correlation) & has_id).sum() > has_id.sum())
    if not len(ops) or copies:
        return np.full(len(device), -1, np.int64), copies
    sequence = np.argsort(ops.external, kind="stable")
    ids = ops.external[sequence]
    at = np.minimum(np.searchsorted(ids, device.external), len(ids) - 1)
    return np.where(has_id & (ids[at] == device.external), sequence[at], -1), copies


# Twins


def alike_kernels(device: Events, rows: np.ndarray) -> np.ndarray:
    """int64[rows]: the same number for device events of one name whose grid, block and size have the same text."""
    values = [_NOTHING if value is None else value for value in device.decoded(rows, _Geometry)]
    texts = [map(bytes, map(operator.attrgetter(name), values)) for name in _Geometry.__struct_fields__]
    keys = list(zip(device.name[rows].tolist(), *texts, strict=True))
    code = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return np.fromiter(map(code.__getitem__, keys), np.int64, len(keys))
