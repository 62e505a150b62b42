"""The calls of a Chrome trace recorded with shapes, for the cost engine: what an execution trace gives, less storages.

This is how a trace recorded elsewhere is costed, and by the same engine as a live step.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from roofline.costs.calls import Call, Tensor
from roofline.costs.dtypes import DTYPES, Unsaid, profiler_name
from roofline.traces import nesting
from roofline.traces.kineto.events import Events
from roofline.traces.kineto.reader import KinetoTrace

_LISTS = ("TensorList", "GenericList")
_NOTHING = msgspec.Raw(b"")


class Recorded(msgspec.Struct, gc=False):
    """Hold the `args` of a cpu_op. dims, types, strides, values: undecoded, of one length."""

    sequence: Any = msgspec.field(default=-1, name="Sequence number")
    dims: msgspec.Raw = msgspec.field(default=_NOTHING, name="Input Dims")
    dims_2021: msgspec.Raw = msgspec.field(default=_NOTHING, name="Input dims")
    types: msgspec.Raw = msgspec.field(default=_NOTHING, name="Input type")
    strides: msgspec.Raw = msgspec.field(default=_NOTHING, name="Input Strides")
    values: msgspec.Raw = msgspec.field(default=_NOTHING, name="Concrete Inputs")

    @property
    def text(self) -> tuple[bytes, ...]:
        """The recorded arguments as text: equal texts are equal calls."""
        return bytes(self.dims) or bytes(self.dims_2021), bytes(self.types), bytes(self.strides), bytes(self.values)


def recorded(events: Events) -> list[Recorded]:
    """Return the record of each event's call, an empty one where its `args` are damaged."""
    return [record or Recorded() for record in events.decoded(np.arange(len(events)), Recorded)]


@dataclass(frozen=True, slots=True, eq=False)
class KinetoNodes:
    """See `roofline.pytorch.nodes.Nodes`; `events` are the ops and annotations of one step, in order of start.

    arguments: of each event, undecoded. completed: calls whose recorded arguments were completed from elsewhere in the
    trace. rows: int64, the row of each event in the trace's ops, -1 for an annotation; None where it was not asked.
    """

    names: tuple[str, ...]
    is_op: NDArray[np.bool_]
    parent: NDArray[np.int64]
    sequence: NDArray[np.int64]
    thread: NDArray[np.int64]
    events: Events
    arguments: list[Recorded]
    completed: Mapping[int, Call] = field(default_factory=dict)
    rows: NDArray[np.int64] | None = None
    decoded_calls: dict[tuple[str, tuple[bytes, ...]], Call] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.names)

    def call(self, index: int) -> Call:
        """The recorded arguments of one event; without shapes there are none, and the cost is unknown.

        Equal calls are one object, so that whoever costs them can tell by identity.
        """
        if index in self.completed:
            return self.completed[index]
        key = (self.names[index], self.arguments[index].text)
        decoded_call = self.decoded_calls.get(key)
        if decoded_call is None:
            decoded_call = self.decoded_calls[key] = decoded(*key)
        return decoded_call


def columns(trace: KinetoTrace, events: Events) -> KinetoNodes:
    """The events as nodes of which none is an op yet."""
    arguments = recorded(events)
    sequence = [record.sequence for record in arguments]
    return KinetoNodes(
        names=tuple(trace.names[code] for code in events.name.tolist()),
        is_op=np.zeros(len(events), bool),
        parent=nesting.parents(events.thread, events.start, events.end, events.order),
        sequence=np.asarray([n if type(n) is int and 0 <= n < 1 << 62 else -1 for n in sequence], np.int64),
        thread=events.thread.astype(np.int64),
        events=events,
        arguments=arguments,
    )


def decoded(name: str, text: tuple[bytes, ...]) -> Call:
    """The call of an op from its recorded arguments as text."""
    values = [_json(part) for part in text]
    return call(name, dict(zip(("Input Dims", "Input type", "Input Strides", "Concrete Inputs"), values, strict=True)))


def _json(text: bytes) -> Any:
    if not text:
        return None
    try:
        return json.loads(text)  # not msgspec: numbers beyond 64 bits stay whole
    except (ValueError, RecursionError):
        return None


def call(name: str, args: dict[str, Any]) -> Call:
    """A call from the `args` of a cpu_op: `Input Dims`, `Input type`, `Input Strides`, `Concrete Inputs`."""
    dims, types = args.get("Input Dims"), args.get("Input type")
    if isinstance(dims, list) and dims and types == []:  # of 2021: sizes without types and values
        return Call(name, None, tuple(map(_sized, dims)))
    if not isinstance(dims, list) or not isinstance(types, list) or len(types) != len(dims):
        return Call(name, None, ())
    strides, values = args.get("Input Strides"), args.get("Concrete Inputs")
    inputs = []
    for position, (shape, kind) in enumerate(zip(dims, types, strict=True)):
        stride = strides[position] if isinstance(strides, list) and position < len(strides) else None
        value = values[position] if isinstance(values, list) and position < len(values) else None
        argument = _argument(shape, kind, stride, value)
        inputs.append(_unsaid(kind, isinstance(values, list)) if argument is None else argument)
    return Call(name, None, _with_empty_lists(tuple(inputs), types))


def _sized(shape: Any) -> Tensor | Unsaid:
    """A tensor whose type was not recorded, nor whether what has no sizes is one of no dimensions, or none."""
    return Tensor(tuple(shape), None, "", device="") if _whole(shape) and shape else Unsaid.ANY


def _unsaid(kind: Any, valued: bool) -> Unsaid | None:
    """Return the kind of an argument without a value, as far as known. valued: the call's values were recorded."""
    if kind == "ScalarList":  # of one that is too long there is no value
        return Unsaid.LIST
    if valued:
        return None
    # Before there was "ScalarList" these are "" too, as is whatever is no tensor and no number.
    return Unsaid.SCALAR if kind == "Scalar" else Unsaid.ANY if kind == "" else None


def _with_empty_lists(inputs: tuple[Any, ...], kinds: list[Any]) -> tuple[Any, ...]:
    """Lists of tensors that are empty beside others of one length, as a fused Adam's maxima without AMSGrad.

    The sizes of a list that is too long are not recorded either; where all others have one length, and theirs were,
    that is not why.
    """
    lists = [row for row, kind in enumerate(kinds) if kind in _LISTS]
    lengths = {len(inputs[row]) for row in lists if inputs[row] is not None}
    if len(lists) < 3 or len(lengths) != 1 or sum(inputs[row] is None for row in lists) != 1:
        return inputs
    return tuple(() if row in lists and value is None else value for row, value in enumerate(inputs))


def _argument(shape: Any, kind: Any, stride: Any, value: Any) -> Any:
    if not isinstance(kind, str):
        return None  # a damaged trace
    kind = profiler_name(kind)
    if kind in DTYPES and _whole(shape):
        return Tensor(tuple(shape), _stride(shape, stride), kind, device="")
    if kind in _LISTS and isinstance(shape, list):
        # The element type of a list is not recorded in a Chrome trace: whoever knows it from elsewhere sets it, else
        # the op stays unknown rather than guessed. The sizes of a long list are not either: it seems to be empty.
        strides = stride if isinstance(stride, list) and len(stride) == len(shape) else [None] * len(shape)
        return (
            tuple(
                Tensor(tuple(dims), _stride(dims, dims_stride), "", device="")
                for dims, dims_stride in zip(shape, strides, strict=True)
                if _whole(dims)
            )
            or None
        )
    if _whole(shape) and shape:
        return Tensor(tuple(shape), None, kind, device="")  # of a type unknown here, and unknown it stays
    return _concrete(value)


def _stride(shape: list[int], stride: Any) -> tuple[int, ...] | None:
    return tuple(stride) if _whole(stride) and len(stride) == len(shape) else None


def _whole(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, int) and 0 <= item < 1 << 40 for item in value)


def _concrete(text: Any) -> Any:
    """A recorded scalar or list of scalars: "True", "0.1", "[1, 2]"; "" is not recorded or None."""
    if not isinstance(text, str) or text == "" or len(text) > 10_000:
        return None
    if text in ("True", "False"):
        return text == "True"
    if text.startswith("[") and text.endswith("]"):
        inner = text[1:-1].strip()
        if "[" in inner:
            return None  # no argument of an op is a list of lists
        return tuple(_concrete(part.strip()) for part in inner.split(",")) if inner else ()
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text
