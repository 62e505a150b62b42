"""Tensors in the calls of a Chrome trace whose type or size is not recorded: those of lists, and all those of 2021.

The element type of a list is never recorded, its sizes are not always; traces of 2021 have sizes and no types.

The type follows from the template of the kernel that the call launched. The size of what is concatenated follows from
the other end of autograd's link: a forward `cat` and its `CatBackward0` have one sequence number, and the gradient that
the latter got has the shape of the former's result. Lists of an optimizer follow from the gradients that were
accumulated. Whatever was not recorded with the call itself is said, as an assumption.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from roofline.costs import kernel_names
from roofline.costs.calls import Call, Tensor
from roofline.importing.work.arguments import KinetoNodes, Recorded, decoded, recorded
from roofline.pytorch.aten.tables import base
from roofline.traces.kineto.events import Events
from roofline.traces.kineto.reader import KinetoTrace

_ACCUMULATE = "torch::autograd::AccumulateGrad"
#: Nodes of the backward pass that concatenate gradients, and those whose forward op concatenated.
_SPLIT = re.compile(r"^(Split|UnsafeSplit|Unbind|Chunk)\w*Backward\d*$")
_SPLITTING = re.compile(r"^aten::(unsafe_)?(split|split_with_sizes|unbind|chunk)$")
_JOINED = re.compile(r"^(Cat|Stack)Backward\d*$")


@dataclass(frozen=True, slots=True)
class Completed:
    """A call with what was found out. assumed: in words, "" where nothing was."""

    call: Call
    assumed: str = ""


def completed(
    trace: KinetoTrace, nodes: KinetoNodes, launched: Mapping[int, Iterable[str]], optimizer: NDArray[np.bool_]
) -> dict[int, Completed]:
    """The ops among `nodes` that take lists, with the types and sizes of these as far as the trace tells.

    launched: names of the kernels that each node launched, itself or by calls inside it. optimizer: bool per node, in
    a step of an optimizer.
    """
    ops = nodes.is_op.nonzero()[0].tolist()
    rows = [row for row in ops if b"List" in bytes(nodes.arguments[row].types)]
    short = _short(nodes)
    untyped = [row for row in ops if _is_untyped(nodes.arguments[row])]
    if untyped:
        return _with_types(nodes, untyped, launched, short)
    if not rows:
        return {}
    sizes = _Sizes(trace, nodes)
    lists = {}
    for row in rows:  # the calls with lists of one step
        call, assumed = nodes.call(row), ""
        types = bytes(nodes.arguments[row].types)
        if _unsized(call, types):
            filled = sizes.joined(row, call) or (sizes.parameters(call, types) if optimizer[row] else None)
            if filled is None:
                continue
            call, assumed = filled.call, filled.assumed
        if any(tensor.dtype == "" for tensor in _listed(call)):
            kinds = [kernel_names.element(name, short) for name in launched.get(row, ())]
            element = next((kind for kind in kinds if kind is not None), None)
            if element is None:
                continue
            call = _typed(call, element)
        lists[row] = Completed(call, assumed)
    return lists


def _is_untyped(record: Recorded) -> bool:
    return bool(record.dims_2021) and bytes(record.types) == b"[]"


def _with_types(
    nodes: KinetoNodes, rows: list[int], launched: Mapping[int, Iterable[str]], short: str
) -> dict[int, Completed]:
    """The calls of 2021 with the type that their kernels name, else with that which most kernels do.

    All tensors of a call are taken to be of one type.
    """
    elements = {
        row: next((kind for name in launched.get(row, ()) if (kind := kernel_names.element(name, short))), None)
        for row in rows
    }
    known = [element for element in elements.values() if element is not None]
    if not known:
        return {}
    usual = max(sorted(set(known)), key=known.count)
    typed: dict[tuple[int, str | None], Completed] = {}  # equal calls stay one object
    for row in rows:
        call, element = nodes.call(row), elements[row]
        if (id(call), element) not in typed:
            kind = element or usual
            inputs = [replace(v, dtype=kind) if isinstance(v, Tensor) and v.dtype == "" else v for v in call.inputs]
            why = "types from its kernel's name" if element else "types from the names of most kernels"
            typed[id(call), element] = Completed(replace(call, inputs=tuple(inputs)), why)
    return {row: typed[id(nodes.call(row)), elements[row]] for row in rows}


def _short(nodes: KinetoNodes) -> str:
    """The 16-bit type of this step, where a kernel tells two bytes only."""
    half = sum(b"half" in bytes(recorded_call.types).lower() for recorded_call in nodes.arguments)
    brain = sum(b"bfloat16" in bytes(recorded_call.types).lower() for recorded_call in nodes.arguments)
    return "c10::Half" if half > brain else "c10::BFloat16"


def _unsized(call: Call, types: bytes) -> bool:
    """Tell whether the first list of a call seems to be empty: a long one is recorded so."""
    return b"TensorList" in types and not any(isinstance(value, tuple) and value for value in call.inputs[:1])


def _listed(call: Call) -> Iterable[Tensor]:
    return (item for value in call.inputs if isinstance(value, tuple) for item in value if isinstance(item, Tensor))


def _typed(call: Call, element: str) -> Call:
    def typed(value: Any) -> Any:
        if not isinstance(value, tuple):
            return value
        return tuple(replace(v, dtype=element) if isinstance(v, Tensor) and v.dtype == "" else v for v in value)

    return replace(call, inputs=tuple(map(typed, call.inputs)))


class _Sizes:
    """Finds the sizes of lists that were not recorded; links are looked up in the whole trace, when first needed."""

    def __init__(self, trace: KinetoTrace, nodes: KinetoNodes) -> None:
        self._trace, self._nodes = trace, nodes
        self._results: dict[int, Tensor] | None = None
        self._split: dict[int, Tensor] | None = None
        self._gradients: Gradients | None = None

    def joined(self, row: int, call: Call) -> Completed | None:
        """A concatenation, as one of a single tensor as large as its result."""
        if base(call.name) not in ("cat", "stack"):
            return None
        if self._results is None:
            self._results = _by_sequence(self._trace, _JOINED)
        tensor = self._results.get(int(self._nodes.sequence[row]))
        why = "the gradient of its result"
        if tensor is None:
            node = _above(self._nodes, row, _SPLIT)
            if node < 0:
                return None
            if self._split is None:
                self._split = _by_sequence(self._trace, _SPLITTING)
            tensor, why = self._split.get(int(self._nodes.sequence[node])), "the tensor that was split"
        if tensor is None:
            return None
        joined = Tensor(tensor.shape, None, tensor.dtype, device="")
        axis = call.inputs[1] if len(call.inputs) > 1 and type(call.inputs[1]) is int else 0
        return Completed(
            replace(call, inputs=((joined,), axis, *call.inputs[2:])), f"sizes of a list from {why} (sequence number)"
        )

    def parameters(self, call: Call, types: bytes) -> Completed | None:
        """A list form within an optimizer's step, over all parameters that got a gradient in these calls."""
        plain = base(call.name)
        if not plain.startswith(("_foreach_", "_fused_")):
            return None
        if self._gradients is None:
            self._gradients = gradients(self._trace, self._nodes.events)
        accumulated = self._gradients
        if not len(accumulated.numel):
            return None
        joined = (Tensor((int(accumulated.numel.sum()),), (1,), accumulated.dtype, device=""),)
        steps = (Tensor((len(accumulated.numel),), (1,), "float", device=""),)
        lists = [position for position, kind in enumerate(_kinds(types)) if kind in ("TensorList", "GenericList")]
        inputs = list(call.inputs)
        for position in lists:
            if position < len(inputs) and not inputs[position]:
                # A fused Adam has a list of maxima, empty unless AMSGrad, and of steps, one number per tensor.
                adam = plain.startswith("_fused_adam")
                inputs[position] = () if adam and position == 4 else steps if adam and position == 5 else joined
        return Completed(
            replace(call, inputs=tuple(inputs)), "sizes of a list from the gradients accumulated in this step"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Gradients:
    """The gradients that reached parameters, in order. start: [ns]; numel: elements; dtype: of most of them."""

    start: NDArray[np.int64]
    numel: NDArray[np.int64]
    dtype: str


def gradients(trace: KinetoTrace, events: Events) -> Gradients:
    """The gradients accumulated while `events` lasted."""
    codes = [code for code, name in enumerate(trace.names) if name == _ACCUMULATE]
    low, high = (int(events.start.min()), int(events.end.max())) if len(events) else (0, -1)
    ops = trace.ops
    rows = np.flatnonzero(np.isin(ops.name, codes) & (ops.start >= low) & (ops.start <= high))
    tensors = [(row, tensor) for row, tensor in zip(rows.tolist(), _firsts(trace, rows), strict=True) if tensor]
    kinds = [tensor.dtype for _, tensor in tensors]
    return Gradients(
        ops.start[np.asarray([row for row, _ in tensors], np.int64)],
        np.asarray([tensor.numel for _, tensor in tensors], np.int64),
        max(sorted(set(kinds)), key=kinds.count, default="float"),
    )


def _by_sequence(trace: KinetoTrace, pattern: re.Pattern[str]) -> dict[int, Tensor]:
    """The first argument of each op of these names, by its sequence number; of several the last."""
    codes = [code for code, name in enumerate(trace.names) if pattern.match(name)]
    rows = np.flatnonzero(np.isin(trace.ops.name, codes))
    numbers = [record.sequence for record in recorded(trace.ops.select(rows))]
    return {
        number: tensor
        for number, tensor in zip(numbers, _firsts(trace, rows), strict=True)
        if tensor is not None and type(number) is int and number >= 0
    }


def _firsts(trace: KinetoTrace, rows: NDArray[np.int64]) -> list[Tensor | None]:
    """The first argument of some ops of the trace, where it is a tensor."""
    return [_first(decoded("", record.text)) for record in recorded(trace.ops.select(rows))]


def _kinds(types: bytes) -> list[Any]:
    try:
        kinds = msgspec.json.decode(types)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return []
    return kinds if isinstance(kinds, list) else []


def _above(nodes: KinetoNodes, row: int, pattern: re.Pattern[str]) -> int:
    row = int(nodes.parent[row])
    while row >= 0 and not pattern.match(nodes.names[row]):
        row = int(nodes.parent[row])
    return row


def _first(call: Call) -> Tensor | None:
    value = call.inputs[0] if call.inputs else None
    return value if isinstance(value, Tensor) and value.dtype else None
