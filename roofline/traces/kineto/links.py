"""Link each device event to the op that launched it.

Device event -> launch by correlation -> innermost op by containment on the launching thread. This holds for
every generation of traces; where there is no correlation, `External id`s and flows name the launch
(`uncorrelated`). The `External id` of a device event, an op's id since 2024 and a copy of the
correlation before, only checks the result and stands in where it fails.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from roofline.traces import nesting
from roofline.traces.kineto import launches as calls
from roofline.traces.kineto import uncorrelated
from roofline.traces.kineto.events import Events
from roofline.traces.kineto.reader import KinetoTrace

_TRUSTED = 0.5  # External ids that agree with containment less often are no ids of these ops


class _Geometry(msgspec.Struct, gc=False):
    """Hold the arguments that tell the launches of one kernel apart."""

    grid: msgspec.Raw = msgspec.Raw(b"")
    block: msgspec.Raw = msgspec.Raw(b"")
    bytes: msgspec.Raw = msgspec.Raw(b"")


_NOTHING = _Geometry()  # of arguments that are no object


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """The links of a trace; rows are those of `trace.device`, indices -1 where there is none.

    `launch`: int64, row in `trace.launches`. `op`: int64, row in `trace.ops`, the innermost one. `by_id`: bool,
    the op was found through External id alone. `graph`: bool, launched by replaying a graph. `parent`: int64 per op,
    its parent. `launch_op`: int64 per launch, the innermost op around it. `unsure`: bool, the ids are repeated or
    contradict each other, and the launch that they name was not used.

    The figures: `linked`, `launched`: shares of the summed time of device events [0, 1], None without device time.
    `agreement`: share of the events found both ways whose External id names the same op, None where it names no ops;
    `compared`: their number. `damaged`: number of `unsure` events; `clashing`: of them those whose ids calls of several
    processes have.
    """

    launch: np.ndarray
    op: np.ndarray
    by_id: np.ndarray
    graph: np.ndarray
    parent: np.ndarray
    launch_op: np.ndarray
    unsure: np.ndarray
    linked: float | None
    launched: float | None
    agreement: float | None
    compared: int
    damaged: int
    clashing: int


def link(trace: KinetoTrace) -> Links:
    """Links every device event to its launch and its op, as far as the trace tells."""
    trace = _correlated(trace)
    ops, launches, device = trace.ops, trace.launches, trace.device
    made_by = calls.Calls(trace)
    launch, clash = calls.latest(device, launches, made_by, _processes(trace)[launches.thread])
    intervals = (ops.thread, ops.start, ops.end, ops.order)
    launch_op = nesting.innermost(*intervals, launches.thread, launches.start, launches.end)
    copies = _repeat_correlations(device)
    if not copies:
        launch = uncorrelated.by_external_id(trace, made_by, launch_op, launch, clash)
    launch = uncorrelated.by_flow(trace, made_by, launch, clash)
    damaged = clash | calls.impossible(trace, made_by, launch)
    launch = np.where(damaged, -1, launch)
    graph = _at(launch, made_by.graph, False)

    op = _at(launch, launch_op, -1)

    named, repeated = _named(device, ops, copies)
    comparable = (named >= 0) & (op >= 0)
    agreement = float((named == op)[comparable].mean()) if comparable.any() else None
    if agreement is not None and agreement < _TRUSTED:  # the ids are none of these ops
        named = np.full(len(device), -1, np.int64)
        conflict = np.zeros(len(device), bool)
    else:
        # One of the two ids is damaged, and nothing tells which: no join is better than a wrong one.
        conflict = comparable & (named != op)
    if copies:
        conflict = (launch >= 0) & (device.external >= 0) & (device.external != device.correlation)
    launch, op = np.where(conflict, -1, launch), np.where(conflict, -1, op)
    damaged |= conflict
    damaged |= repeated & (launch < 0) & (op < 0)
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
        unsure=damaged,
        linked=_share(time, op >= 0),
        launched=_share(time, launch >= 0),
        agreement=agreement,
        compared=int(comparable.sum()),
        damaged=int(damaged.sum()),
        clashing=int(clash.sum()),
    )


def _correlated(trace: KinetoTrace) -> KinetoTrace:
    """Return the trace with correlations: where no event has one, device events and launches share an External id.

    Kineto wrote that for ROCm's roctracer. Where several launches have one id, it is that of the op around them.
    """
    device, launches = trace.device, trace.launches
    ids = launches.external[launches.external >= 0]
    if (device.correlation >= 0).any() or (launches.correlation >= 0).any() or len(np.unique(ids)) < len(ids):
        return trace
    return replace(
        trace,
        device=replace(device, correlation=device.external),
        launches=replace(launches, correlation=launches.external),
    )


def without_kernel(trace: KinetoTrace, links: Links) -> np.ndarray:
    """bool[launch]: it launched a kernel that is not in the trace.

    None of a trace in which a graph may be captured: what is launched then is recorded and does not run. None either
    where as many kernels are joined to no launch: they may be those.
    """
    names = np.asarray(["LaunchKernel" in name for name in trace.names], bool)
    captures = np.asarray(["StreamBeginCapture" in name for name in trace.names], bool)
    lacking: np.ndarray = names[trace.launches.name]
    if captures[trace.launches.name].any() or not len(trace.device):
        return np.zeros(len(lacking), bool)
    lacking[links.launch[links.launch >= 0]] = False
    joined_to_none = int((links.launch < 0).sum())
    return lacking if joined_to_none < lacking.sum() else np.zeros(len(lacking), bool)


def _share(time: np.ndarray, rows: np.ndarray) -> float | None:
    total = time.sum()
    return float(time[rows].sum() / total) if total else None


def _processes(trace: KinetoTrace) -> np.ndarray:
    """int64 per thread: the number of its process."""
    pids = {pid: number for number, pid in enumerate(dict.fromkeys(pid for pid, _ in trace.threads))}
    return np.array([pids[pid] for pid, _ in trace.threads], np.int64)


def _at(index: np.ndarray, values: np.ndarray, absent: int | bool) -> np.ndarray:
    """values[index], and `absent` where the index is -1."""
    picked: np.ndarray = np.append(values, np.array(absent, values.dtype))[index]
    return picked


def _repeat_correlations(device: Events) -> bool:
    """Tell whether the ids of device events repeat the correlation. They did before 2024, and then name no op."""
    has_id = device.external >= 0
    return bool(2 * ((device.external == device.correlation) & has_id).sum() > has_id.sum())


def _named(device: Events, ops: Events, copies: bool) -> tuple[np.ndarray, np.ndarray]:
    """Find the op that the id of a device event names: int64[device], -1: none; bool[device], several ops have the id.

    copies: whether the ids repeat the correlation.
    """
    has_id = device.external >= 0
    if not len(ops) or copies:
        return np.full(len(device), -1, np.int64), np.zeros(len(device), bool)
    sequence = np.argsort(ops.external, kind="stable")
    ids = ops.external[sequence]
    at = np.minimum(np.searchsorted(ids, device.external), len(ids) - 1)
    matches = has_id & (ids[at] == device.external)
    repeated = matches & (np.append(ids, -1)[at + 1] == device.external)
    return np.where(matches & ~repeated, sequence[at], -1), repeated


# Twins


def alike_kernels(device: Events, rows: np.ndarray) -> np.ndarray:
    """int64[rows]: the same number for device events of one name whose grid, block and size have the same text."""
    values = [_NOTHING if value is None else value for value in device.decoded(rows, _Geometry)]
    texts = [map(bytes, map(operator.attrgetter(name), values)) for name in _Geometry.__struct_fields__]
    keys = list(zip(device.name[rows].tolist(), *texts, strict=True))
    code = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return np.fromiter(map(code.__getitem__, keys), np.int64, len(keys))
