"""The calls of a Chrome trace recorded with shapes, for the cost engine: what an execution trace gives, less storages.

This is how a trace recorded elsewhere is costed, and by the same engine as a live step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roofline.traces import aten_schema, nesting
from roofline.traces.aten_kinds import DTYPES
from roofline.traces.calls import Call, Tensor
from roofline.traces.kineto import Events, KinetoTrace

_LISTS = ("TensorList", "GenericList")


@dataclass(frozen=True, slots=True)
class KinetoNodes:
    """See `counting.Nodes`; `events` are the ops and annotations of one step, in order of start."""

    names: tuple[str, ...]
    is_op: NDArray[np.bool_]
    parent: NDArray[np.int64]
    sequence: NDArray[np.int64]
    thread: NDArray[np.int64]
    events: Events

    def __len__(self) -> int:
        return len(self.names)

    def call(self, index: int) -> Call:
        """The recorded arguments of one event; without shapes there are none, and the cost is unknown."""
        return call(self.names[index], self.events.arguments(index))


def nodes(trace: KinetoTrace, events: Events) -> KinetoNodes:
    """The calls among `events` (rows of the trace's ops and annotations, in order of start)."""
    names = tuple(trace.names[code] for code in events.name.tolist())
    known = {name: "::" in name and aten_schema.packet(name) is not None for name in set(names)}
    counted = {name: aten_schema.computes(name, None, known[name]) for name in known}
    sequence = [events.arguments(row).get("Sequence number", -1) for row in range(len(events))]
    return KinetoNodes(
        names=names,
        is_op=np.asarray([_computes(name, counted[name], events, row) for row, name in enumerate(names)], bool),
        parent=nesting.parents(events.thread, events.start, events.end, events.order),
        sequence=np.asarray([n if isinstance(n, int) and 0 <= n < 1 << 62 else -1 for n in sequence], np.int64),
        thread=events.thread.astype(np.int64),
        events=events,
    )


def _computes(name: str, otherwise: bool, events: Events, row: int) -> bool:
    """Whether the overload that was called computes, where an op has wrappers among its overloads."""
    if not aten_schema.is_mixed(name):
        return otherwise
    try:
        overload = aten_schema.overloads(call(name, events.arguments(row)))[0]
    except aten_schema.Unresolved:
        return otherwise
    return aten_schema.computes(name, overload._overloadname, known=True)


def call(name: str, args: dict[str, Any]) -> Call:
    """A call from the `args` of a cpu_op: `Input Dims`, `Input type`, `Input Strides`, `Concrete Inputs`."""
    dims, types = args.get("Input Dims"), args.get("Input type")
    if not isinstance(dims, list) or not isinstance(types, list) or len(types) != len(dims):
        return Call(name, None, ())
    strides, values = args.get("Input Strides"), args.get("Concrete Inputs")
    inputs = []
    for position, (shape, kind) in enumerate(zip(dims, types, strict=True)):
        stride = strides[position] if isinstance(strides, list) and position < len(strides) else None
        value = values[position] if isinstance(values, list) and position < len(values) else None
        inputs.append(_argument(shape, kind, stride, value))
    return Call(name, None, tuple(inputs))


def _argument(shape: Any, kind: Any, stride: Any, value: Any) -> Any:
    if not isinstance(kind, str):
        return None  # a damaged trace
    if kind in DTYPES and _whole(shape):
        fits = _whole(stride) and len(stride) == len(shape)
        return Tensor(tuple(shape), tuple(stride) if fits else None, kind, device="")
    if kind in _LISTS and isinstance(shape, list):
        # The element type of a list is not recorded in a Chrome trace: the op stays unknown rather than guessed. The
        # sizes of a long one are not either: it seems to be empty.
        return tuple(Tensor(tuple(one), None, "", device="") for one in shape if _whole(one)) or None
    if _whole(shape) and shape:
        return Tensor(tuple(shape), None, kind, device="")  # of a type unknown here, and unknown it stays
    return _concrete(value)


def _whole(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, int) and 0 <= item < 1 << 40 for item in value)


def _concrete(text: Any) -> Any:
    """A recorded scalar or list: "True", "0.1", "[1, 2]"; "" is not recorded or None."""
    if not isinstance(text, str) or text == "" or len(text) > 10_000:
        return None
    if text in ("True", "False"):
        return text == "True"
    if text.startswith("[") and text.endswith("]"):
        inner = text[1:-1].strip()
        return tuple(_concrete(part.strip()) for part in inner.split(",")) if inner else ()
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text
