"""Communication in a trace: which device events it is, its payload, and how much of it nothing else hides.

Collectives move their payload over a network, not main memory: `bytes_read` is what a rank sends, `bytes_written` what
it receives, and the class `communication` keeps them off the roof of main memory (without a ceiling of the network they
are uncosted). The time of a collective's kernel includes waiting for slower ranks; one rank's trace cannot tell.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from roofline.core.cost import Cost, unknown
from roofline.core.vocabulary import Quality
from roofline.costs.calls import Call, describe, tensors
from roofline.costs.counted import Access, Costed
from roofline.costs.dtypes import COLLECTIVE, DTYPES
from roofline.traces import intervals
from roofline.traces.kineto.links import Links
from roofline.traces.kineto.reader import KERNEL, KinetoTrace

#: Types as c10 spells them in a collective's own arguments; bytes.
_SIZES = {
    **{"Byte": 1, "Char": 1, "Bool": 1, "Short": 2, "Half": 2, "BFloat16": 2, "Int": 4, "Float": 4},
    **{"Long": 8, "Double": 8, "ComplexFloat": 8, "ComplexDouble": 16},
}
#: What the profiler records around every collective of torch.distributed, without tensors in 2022.
PARAMETERS = "record_param_comms"
#: What torch's NCCL backend marks with the tensor that it hands over, where that is as large as what comes back.
_SUMMED = "nccl:all_reduce"
MARKS = (_SUMMED, "nccl:all_to_all")
_PREFIX = ("c10d::", "_c10d_functional::")


def is_communication(name: str) -> bool:
    """Tell whether an op or a kernel exchanges data between devices, by its name."""
    return name.startswith(_PREFIX) or name == PARAMETERS or COLLECTIVE.search(name) is not None


def is_collective(name: str) -> bool:
    """Tell whether an op is torch.distributed's own: nothing but communication lies in it."""
    return name.startswith(_PREFIX) or name == PARAMETERS


@dataclass(frozen=True, slots=True)
class Exposure:
    """Communication in a stretch of time [s]: all of it, and what ran while nothing else did."""

    total: float
    exposed: float

    @property
    def hidden(self) -> float:
        """Return the time of communication during computation [s]."""
        return self.total - self.exposed


def device_rows(trace: KinetoTrace, links: Links) -> np.ndarray:
    """bool[device]: events that communicate, by the name of the kernel or of the op that launched it.

    An op's name counts for kernels only, as copies beside a collective are copies, and only where none that it launched
    has such a name itself: the others prepare what is sent.
    """
    by_name = np.asarray([is_communication(name) for name in trace.names], bool)
    device = trace.device
    kernel = by_name[device.name] & (device.kind == KERNEL)
    named = np.append(by_name[trace.ops.name], False)
    named[links.op[kernel & (links.op >= 0)]] = False
    communicates: np.ndarray = kernel | ((device.kind == KERNEL) & named[links.op])
    return communicates


def exposed(trace: KinetoTrace, links: Links, low: np.ndarray, high: np.ndarray) -> list[Exposure]:
    """Measure how long a device communicated in each window, and how long it did nothing else there.

    low, high: begins and ends of the windows [ns]. Computation hides it: kernels, no copies or fills.
    """
    device, is_comm = trace.device, device_rows(trace, links)
    computing = (device.kind == KERNEL) & ~is_comm

    total, either, computed = (
        intervals.covered(device.start[rows], device.end[rows], low, high) * 1e-9
        for rows in (is_comm, is_comm | computing, computing)
    )
    return [Exposure(*pair) for pair in zip(total.tolist(), (either - computed).tolist(), strict=True)]


# Payloads


def arguments(text: bytes) -> dict[str, Any]:
    """`args` of an event; empty where they are damaged."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def costed(
    call: Call,
    ops: list[dict[str, Any]],
    kernel: dict[str, Any],
    mark: Call | None = None,
    around: Call | None = None,
    exchanged: float | None = None,
) -> Costed:
    """A collective by what it said of its message: itself or calls in it (`ops`), or its kernel.

    Else by its own tensors, those that torch's `mark` inside it names, or those of `around`, the nearest enclosing call
    that is a collective by its name: they are taken for the payload, out and in, as all-to-all and all-reduce have it.
    exchanged: bytes of the gradients that it is taken to hold.
    """
    for args in (*ops, kernel):
        message = _message(args)
        if message is not None:
            sent, received, name, note = message
            return _costed(call, Cost(bytes_read=sent, bytes_written=received, note=note), name)
    for collective in (call, mark, around):
        size = None if collective is None else _size(collective)
        if collective is not None and size:
            note = f"payload from the tensors of {collective.name[:80]}"
            # Of others than a sum what is received may differ.
            quality: Quality = "exact" if collective.name == _SUMMED else "assumed"
            return _costed(call, Cost(bytes_read=size, bytes_written=size, quality=quality, note=note), call.name)
    if exchanged:
        note = "payload: the gradients accumulated since the exchange before"
        cost = Cost(bytes_read=exchanged, bytes_written=exchanged, quality="assumed", note=note)
        return _costed(call, cost, call.name)
    return _costed(call, unknown("communication: no size of a message was recorded"), call.name)


def _message(args: dict[str, Any]) -> tuple[float, float, str, str] | None:
    """(sent, received [byte], name, note) from `In msg nelems`, `Out msg nelems`, `dtype`, `Group size`."""
    sent, received = sizes(args)
    if sent is None or received is None:
        return None
    name, group = args.get("Collective name"), args.get("Group size")
    note = f"payload of {name}" if isinstance(name, str) else "payload"
    note = f"{note[:80]}, {group} ranks" if is_count(group) else note[:80]
    return sent, received, name if isinstance(name, str) else "", note


def sizes(args: dict[str, Any]) -> tuple[float, float] | tuple[None, None]:
    """Return what a rank sends and receives [byte], by `In msg nelems`, `Out msg nelems` and `dtype`."""
    sent, received, kind = args.get("In msg nelems"), args.get("Out msg nelems"), args.get("dtype")
    size = _SIZES.get(kind) if isinstance(kind, str) else None
    if size is None or not is_count(sent) or not is_count(received):
        return None, None
    return float(sent * size), float(received * size)


def is_count(value: Any) -> TypeGuard[int]:
    """Return whether a value is a number of things that a message may have."""
    return type(value) is int and 0 <= value < 1 << 50


def _size(call: Call) -> float | None:
    """Bytes of the first tensor, or list of tensors, of a call."""
    for value in call.inputs:
        many = list(tensors(value))
        if many:
            sizes = [tensor.distinct * DTYPES[tensor.dtype][1] for tensor in many if tensor.dtype in DTYPES]
            return float(sum(sizes)) if len(sizes) == len(many) else None
        if value is None:
            return None  # a list whose sizes were not recorded: what follows is not the message
    return None


def _costed(call: Call, cost: Cost, name: str) -> Costed:
    many = list(tensors(call.inputs))
    types = [DTYPES[tensor.dtype][0] for tensor in many if tensor.dtype in DTYPES]
    reads: tuple[Access, ...] = ((True, 0, cost.bytes_read),) if many and cost.bytes_read else ()
    writes: tuple[Access, ...] = ((True, 0, cost.bytes_written),) if many and cost.bytes_written else ()
    return Costed(
        cost=cost,
        kind=(name.partition("::")[2] or name or "collective").strip("_")[:80],
        op_class="communication",
        shapes=describe(call),
        dtype=next(iter(types), None),
        output=next(iter(types), None),
        reads=reads,
        writes=writes,
    )
