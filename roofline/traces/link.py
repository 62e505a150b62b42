"""Which op launched which device event.

Device event -> launch by correlation -> innermost op by containment on the launching thread. This holds for
every generation of traces; the `External id` of a device event, an op's id since 2024 and a copy of the
correlation before, only checks the result and stands in where it fails.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec
import numpy as np

from roofline.traces import nesting
from roofline.traces.kineto import Events, KinetoTrace

_LAUNCH = re.compile(r"Launch|Memcpy|Memset", re.IGNORECASE)
_GRAPH = re.compile(r"GraphLaunch", re.IGNORECASE)
_SHARED = 2  # device events behind one launch, more than that and the correlation ids are damaged


class _Geometry(msgspec.Struct, gc=False):
    """What tells the launches of one kernel apart."""

    grid: msgspec.Raw = msgspec.Raw(b"")
    block: msgspec.Raw = msgspec.Raw(b"")
    bytes: msgspec.Raw = msgspec.Raw(b"")


class _Inputs(msgspec.Struct, gc=False):
    """What tells the calls of one op apart."""

    dims: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Input Dims")
    types: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Input type")
    strides: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Input Strides")
    values: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Concrete Inputs")


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """The links of a trace; rows are those of `trace.device`, indices -1 where there is none.

    `launch`: int64, row in `trace.launches`. `op`: int64, row in `trace.ops`, the innermost one. `by_id`: bool,
    the op was found through External id alone. `graph`: bool, launched by replaying a graph. `twin`: int64, for
    an event without an op, a row of `trace.ops` that launches this very kernel elsewhere in the trace, where all
    such ops have the same inputs. `parent`: int64 per op, its parent. `launch_op`: int64 per launch, the
    innermost op around it.

    The figures: `linked`, `launched`, `twinned`: shares of the summed time of device events [0, 1], None without
    device time. `agreement`: share of the events found both ways whose External id names the same op, None where
    it names no ops; `compared`: their number. `orphans`: events whose launch is not in the trace. `outside`:
    events launched outside any op. `damaged`: events whose correlation cannot be right and was not used.
    """

    launch: np.ndarray
    op: np.ndarray
    by_id: np.ndarray
    graph: np.ndarray
    twin: np.ndarray
    parent: np.ndarray
    launch_op: np.ndarray
    linked: float | None
    launched: float | None
    twinned: float | None
    agreement: float | None
    compared: int
    orphans: int
    outside: int
    damaged: int


def link(trace: KinetoTrace) -> Links:
    """Links every device event to its launch and its op, as far as the trace tells."""
    ops, launches, device = trace.ops, trace.launches, trace.device
    is_graph = _matching(trace.names, _GRAPH)[launches.name]
    launch = _launches(device, launches, _matching(trace.names, _LAUNCH)[launches.name])
    graph = _at(launch, is_graph, False)
    damaged = ~graph & (launch >= 0) & (np.bincount(launch + 1, minlength=1)[launch + 1] > _SHARED)
    launch = np.where(damaged, -1, launch)

    intervals = (ops.thread, ops.start, ops.end, ops.order)
    launch_op = nesting.innermost(*intervals, launches.thread, launches.start, launches.end)
    op = _at(launch, launch_op, -1)

    named = _named(device, ops)
    both = (named >= 0) & (op >= 0)
    by_id = (named >= 0) & (op < 0)
    op = np.where(by_id, named, op)
    twin = _twins(trace, op)
    time = device.duration
    return Links(
        launch=launch,
        op=op,
        by_id=by_id,
        graph=graph,
        twin=twin,
        parent=nesting.parents(*intervals),
        launch_op=launch_op,
        linked=_share(time, op >= 0),
        launched=_share(time, launch >= 0),
        twinned=_share(time, twin >= 0),
        agreement=float((named == op)[both].mean()) if both.any() else None,
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


def _launches(device: Events, launches: Events, launching: np.ndarray) -> np.ndarray:
    """int64[device]: the launch of the same correlation, -1 for none.

    Of several, as in windows merged into one file, the last that begins before the device event. A call that
    launches goes before one that does not (a synchronisation may carry the id of what it waits for).
    """
    found = np.full(len(device), -1, np.int64)
    for calls in (np.flatnonzero(launching), np.flatnonzero(~launching)):
        calls = calls[launches.correlation[calls] >= 0]
        if not len(calls):
            continue
        calls = calls[np.lexsort((launches.start[calls], launches.correlation[calls]))]
        # (correlation, start) as one number that sorts like the pair.
        ids, times = np.unique(launches.correlation[calls]), np.unique(launches.start[calls])
        stride = len(times) + 1
        code = np.searchsorted(ids, launches.correlation[calls])
        key = code * stride + np.searchsorted(times, launches.start[calls])
        wanted = np.minimum(np.searchsorted(ids, device.correlation), len(ids) - 1)
        before = np.searchsorted(key, wanted * stride + np.searchsorted(times, device.start, "right")) - 1
        first = np.searchsorted(code, wanted)  # clocks may disagree: the first one, if all begin later
        known = (ids[wanted] == device.correlation) & (found < 0)
        found = np.where(known, calls[np.maximum(before, first)], found)
    return found


def _named(device: Events, ops: Events) -> np.ndarray:
    """int64[device]: the op whose id the device event carries, -1 for none."""
    has_id = device.external >= 0
    copies = (device.external == device.correlation) & has_id
    if not len(ops) or 2 * copies.sum() > has_id.sum():  # before 2024 the id repeats the correlation
        return np.full(len(device), -1, np.int64)
    sequence = np.argsort(ops.external, kind="stable")
    ids = ops.external[sequence]
    at = np.minimum(np.searchsorted(ids, device.external), len(ids) - 1)
    return np.where(has_id & (ids[at] == device.external), sequence[at], -1)


# Twins


def _twins(trace: KinetoTrace, op: np.ndarray) -> np.ndarray:
    """int64[device]: for an event without op, the op of its twins, if they all have one signature."""
    device = trace.device
    twin = np.full(len(device), -1, np.int64)
    lost = np.flatnonzero(op < 0)
    alike = np.flatnonzero((op >= 0) & np.isin(device.name, device.name[lost]))
    if not len(alike):
        return twin
    kernels = _codes([(device.name[row], *_fields(_Geometry, device.args[row])) for row in [*lost, *alike]])
    of_lost, of_alike = kernels[: len(lost)], kernels[len(lost) :]
    owners, owner = np.unique(op[alike], return_inverse=True)
    signatures = _codes([(trace.ops.name[row], *_fields(_Inputs, trace.ops.args[row])) for row in owners])[owner]
    least = np.full(kernels.max() + 1, len(owners))
    most = np.full(kernels.max() + 1, -1)
    np.minimum.at(least, of_alike, signatures)
    np.maximum.at(most, of_alike, signatures)
    example = np.full(kernels.max() + 1, -1)
    example[of_alike] = op[alike]
    twin[lost] = np.where(least == most, example, -1)[of_lost]
    return twin


def _fields(kind: type[msgspec.Struct], text: bytes) -> tuple[bytes, ...]:
    try:
        value = msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return ()
    return tuple(bytes(getattr(value, name)) for name in kind.__struct_fields__)


def _codes(values: list[tuple]) -> np.ndarray:
    code = {value: index for index, value in enumerate(dict.fromkeys(values))}
    return np.array([code[value] for value in values], np.int64)
