"""Reads the JSON of `torch.profiler.ExecutionTraceObserver`: every op of one step with its arguments and results.

It does not change the op stream (a dispatch mode does), and it names storages, which a Chrome trace does not. Format:
https://github.com/mlcommons/chakra, schema 1.1.1-chakra.0.0.4, as written by torch 2.11 to 2.13.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from roofline.core.decoding import UndecodableError, from_json
from roofline.costs.calls import Call, Tensor
from roofline.errors import MeasurementError
from roofline.pytorch.aten import schema as aten_schema
from roofline.pytorch.aten.tables import DISPATCH_MODE

#: Numbers that a sparse tensor holds, and how many of them, or of blocks of them, have an index.
Stored = tuple[int, int]
#: What a kernel asks a sparse tensor for its numbers by.
_STORED = frozenset(("aten::_values", "aten::values"))
#: What is written for an argument that is an object.
_OBJECT = "<Object>"
#: The type of a tensor that is none, such as a bias that there is not.
_UNDEFINED = "Tensor(nullptr"
#: Ops on tensors of which oneDNN alone knows how they lie in memory.
_ONEDNN = re.compile("onednn|mkldnn")
# torch prints non-finite scalars bare, which is not JSON.
_BARE = re.compile(rb"(?<=[\[,: ])(-?)(nan|inf)(?=[,\] }])")


class _Attribute(msgspec.Struct):
    name: str
    value: Any = None


class _Values(msgspec.Struct):
    values: list[Any] = []
    shapes: list[Any] = []
    types: list[str] = []
    strides: list[Any] = []


class _Node(msgspec.Struct):
    id: int
    name: str
    ctrl_deps: int = 0
    inputs: _Values = msgspec.field(default_factory=_Values)
    outputs: _Values = msgspec.field(default_factory=_Values)
    attrs: list[_Attribute] = []


class _File(msgspec.Struct):
    nodes: list[_Node] = []


@dataclass(frozen=True, slots=True)
class Nodes:
    """The recorded calls in the order they began; columns of equal length n.

    is_op: whether the call computes (and is no wrapper that leaves that to others). parent: index of the enclosing call
    or -1. sequence: autograd sequence number or -1. thread: recorder's number. addresses: storage -> address of its
    first byte [byte], which the trace does not tell: see `recording.addresses`. packed: node -> what an object among
    its arguments holds (`recording.packed`). stored: tensor -> what it holds, of sparse ones. allocations: of memory in
    the step (`recording.allocations`); None: not recorded.
    """

    names: tuple[str, ...]
    is_op: NDArray[np.bool_]
    parent: NDArray[np.int64]
    sequence: NDArray[np.int64]
    thread: NDArray[np.int64]
    _schemas: tuple[str, ...]
    _raw: tuple[_Node, ...]
    addresses: Mapping[int, int] = field(default_factory=dict)
    packed: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)
    stored: Mapping[int, Stored] = field(default_factory=dict)
    allocations: Any = None

    def __len__(self) -> int:
        return len(self.names)

    def call(self, index: int) -> Call:
        """The arguments and results of one node."""
        node = self._raw[index]
        name, _, overload = self._schemas[index].partition("(")[0].partition(".")
        inputs, outputs = (_values(values, self.stored) for values in (node.inputs, node.outputs))
        if index in self.packed:
            inputs = tuple(self.packed[index] if value == _OBJECT else value for value in inputs)
        return Call(name or node.name, overload if name else None, inputs, outputs)

    def recorded(self, index: int) -> tuple[str, list[Any], list[Any]]:
        """The schema of a call, and its arguments and results as they were recorded.

        A tensor is a list that begins with its number and that of its storage; `call` shows what is changed in it.
        """
        node = self._raw[index]
        return self._schemas[index], node.inputs.values, node.outputs.values


def read(path: Path) -> Nodes:
    """The nodes of an execution trace, thread and process roots left out. MeasurementError where it is no trace."""
    data = path.read_bytes()
    try:
        file = from_json(_BARE.sub(_quote, data), _File)
    except UndecodableError as error:
        raise MeasurementError(
            f"torch wrote an execution trace that cannot be read ({error}): see that TMPDIR has room, "
            "and that the step closes no file but its own."
        ) from None
    roots = {node.id for node in file.nodes if node.name.startswith("[pytorch|")}
    nodes = sorted((node for node in file.nodes if node.id not in roots), key=lambda node: node.id)
    place = {node.id: index for index, node in enumerate(nodes)}
    attributes = [{attribute.name: attribute.value for attribute in node.attrs} for node in nodes]
    schemas = tuple(str(attribute.get("op_schema") or "") for attribute in attributes)
    parent = np.asarray([place.get(number, -1) for number in _around(nodes, attributes, roots)], np.int64)
    stored = _sparse(nodes)
    computes = np.asarray([_computes(node.name, schema) for node, schema in zip(nodes, schemas, strict=True)], bool)
    is_op = computes & ~_transformed(nodes, computes, parent, stored)
    return Nodes(
        names=tuple(node.name for node in nodes),
        is_op=is_op | _by_themselves(nodes, schemas, is_op, parent),
        parent=parent,
        sequence=np.asarray([int(attribute.get("seq_id", -1)) for attribute in attributes], np.int64),
        thread=np.asarray([int(attribute.get("tid", 0)) for attribute in attributes], np.int64),
        _schemas=schemas,
        _raw=tuple(nodes),
        stored=stored,
    )


@dataclass(slots=True)
class _Thread:
    """The calls of one thread that are open, by their numbers: as torch believes, and in truth.

    Calls that raise have numbers below 0. raised: their numbers by those that torch gave them, where it names these.
    """

    believed: list[int] = field(default_factory=list)
    open: list[int] = field(default_factory=list)
    raised: dict[int, int] = field(default_factory=dict)

    def begin(self, number: int) -> None:
        self.believed.append(number)
        self.open.append(number)

    def end(self) -> None:
        """End the innermost call that ends by itself; what raises inside it ends with it, unseen by torch."""
        self.believed.pop()
        while self.open and self.open.pop() < 0:
            pass

    def end_down_to(self, around: int, is_root: bool) -> None:
        """End calls until that is the innermost one, as torch believes."""
        unnamed = (number for number in reversed(self.believed) if number < 0 and number not in self.raised.values())
        if not is_root and around not in self.believed:
            around = self.raised.setdefault(around, next(unnamed, around))
        while self.believed and self.believed[-1] != around:
            self.end()


def _around(nodes: Sequence[_Node], attributes: Sequence[Mapping[str, Any]], roots: Collection[int]) -> Iterator[int]:
    """Give the number of the call around each, -1 for none: not always the one that torch names.

    Of a call that raises torch (2.11 to 2.13) writes nothing, and believes ever after that it is open. A checkpoint
    ends so: it raises in the middle of an op when all is there that the backward pass wants. Such a call is missed in
    the count of calls, and how many ended between two that began follows from what torch believes.

    attributes: of each node, by name. roots: the numbers of threads.
    """
    # An op ends by itself, as does a dispatch mode in one, so that nothing inside them raises.
    ends = {
        node.id: bool(attribute.get("op_schema")) or node.name == DISPATCH_MODE
        for node, attribute in zip(nodes, attributes, strict=True)
    }
    calls = np.asarray([int(attribute.get("rf_id", -1)) for attribute in attributes], np.int64)
    order = np.sort(calls)
    missed = dict(zip(order[1:].tolist(), (np.diff(order) - 1).tolist(), strict=True))
    threads: dict[int, _Thread] = {}
    for node, attribute, call in zip(nodes, attributes, calls.tolist(), strict=True):
        thread = threads.setdefault(int(attribute.get("tid", 0)), _Thread())
        for number in range(missed.get(call, 0)):
            while thread.open and ends.get(thread.open[-1]):
                thread.end()
            thread.begin(-2 - call - number)
        thread.end_down_to(node.ctrl_deps, node.ctrl_deps in roots)
        yield next((number for number in reversed(thread.open) if number >= 0), -1)
        thread.begin(node.id)


def _sparse(nodes: Sequence[_Node]) -> Mapping[int, Stored]:
    """Count what each sparse tensor holds, by its number: whoever computes with one asks for its numbers."""
    asked = (node for node in nodes if node.name in _STORED and node.inputs.values and node.outputs.shapes)
    return {
        tensor[0]: (prod(node.outputs.shapes[0]), node.outputs.shapes[0][0])
        for node in asked
        for tensor in tensors_of(node.inputs.values[:1])
        if isinstance(node.outputs.shapes[0], list) and node.outputs.shapes[0]
    }


def tensors_of(values: Sequence[Any]) -> Iterator[list[Any]]:
    """The tensors among recorded values, those in lists as well: [tensor, storage, offset, elements, size, device]."""
    for value in values:
        if isinstance(value, list):
            if len(value) == 6 and isinstance(value[5], str) and all(isinstance(field, int) for field in value[:5]):
                yield value
            else:
                yield from tensors_of(value)


def _transformed(
    nodes: Sequence[_Node], computes: NDArray[np.bool_], parent: NDArray[np.int64], sparse: Collection[int]
) -> NDArray[np.bool_]:
    """Calls inside `torch.func` (vmap, grad, jvp): what one sample asks for, around the call that does it for all.

    Their tensors are wrappers, which have neither storage nor device, as sparse ones and those of oneDNN have; what
    computes inside them has both. A call of two sparse tensors is none: its kernel merges their numbers itself.
    """
    wrapped = np.asarray(
        [
            not _ONEDNN.search(node.name)
            and sum(tensor[0] in sparse for tensor in tensors_of(node.inputs.values)) < 2
            and any(_has_wrapper(values, sparse) for values in (node.inputs, node.outputs))
            for node in nodes
        ],
        bool,
    )
    around = np.zeros(len(nodes), bool)
    inside = parent[computes & ~wrapped] if wrapped.any() else np.zeros(0, np.int64)
    while len(inside := np.unique(inside[inside >= 0])):
        around[inside] = True
        inside = parent[inside]
    return wrapped & around


def _by_themselves(
    nodes: Sequence[_Node], schemas: Sequence[str], is_op: NDArray[np.bool_], parent: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Wrappers that compute what they return and call no op for it, as `max_pool1d` does without gradients.

    What they return lies in a storage that they were not given, and that no op inside of them wrote.
    """
    moves = [not aten_schema.moves_nothing(node.name) for node in nodes]
    works = is_op & np.asarray(moves, bool)
    around = np.zeros(len(nodes), bool)
    inside = parent[works]
    while len(inside := np.unique(inside[inside >= 0])):
        around[inside] = True
        inside = parent[inside]
    computes_itself = np.zeros(len(nodes), bool)
    for index in np.flatnonzero(~is_op & ~around & np.asarray([bool(schema) for schema in schemas], bool)).tolist():
        inputs = {tensor[1] for tensor in tensors_of(nodes[index].inputs.values)}
        outputs = {tensor[1] for tensor in tensors_of(nodes[index].outputs.values) if tensor[3]}
        computes_itself[index] = bool(outputs) and min(outputs) > 0 and inputs.isdisjoint(outputs)
    return computes_itself


def _has_wrapper(values: _Values, sparse: Collection[int]) -> bool:
    return any(
        kind.startswith("Tensor(")
        and not kind.startswith(_UNDEFINED)
        and isinstance(value, list)
        and [*value[1:2], *value[5:]] == [0, ""]
        and value[0] not in sparse
        for value, kind in zip(values.values, values.types, strict=False)
    )


def _computes(name: str, schema: str) -> bool:
    base, _, overload = schema.partition("(")[0].partition(".")
    return aten_schema.computes(base or name, overload if base else None, has_schema=bool(schema))


def _quote(match: re.Match[bytes]) -> bytes:
    return b'"' + match.group(1) + match.group(2) + b'"'


def _values(values: _Values, stored: Mapping[int, Stored]) -> tuple[Any, ...]:
    strides = values.strides or [None] * len(values.values)
    return tuple(
        _value(value, shape, kind, stride, stored)
        for value, shape, kind, stride in zip(values.values, values.shapes, values.types, strides, strict=False)
    )


def _value(value: Any, shape: Any, kind: str, stride: Any, stored: Mapping[int, Stored]) -> Any:
    if kind.startswith("Tensor("):
        dtype = kind[len("Tensor(") : -1]
        if not isinstance(value, list) or len(value) < 6 or kind.startswith(_UNDEFINED):
            return None  # an undefined tensor
        number, storage, offset, device = value[0], value[1], value[2], value[5]
        held = (None, None) if storage else stored.get(number, (None, None))
        if not storage and held == (
            None,
            None,
        ):  # in a library's own layout, as oneDNN's, which has no storage and no strides
            storage, stride = -1, [prod(shape[place + 1 :]) for place in range(len(shape))]
        return Tensor(tuple(shape), None if stride is None else tuple(stride), dtype, storage, offset, device, *held)
    if kind.startswith("GenericList["):
        kinds = _split(kind[len("GenericList[") : -1])
        strides = stride or [None] * len(kinds)
        return tuple(_value(*item, stored) for item in zip(value, shape, kinds, strides, strict=False))
    if kind in ("Double", "Float") and isinstance(value, str):
        return float(value)  # quoted by `read`
    if kind == "ComplexDouble":
        return 1j  # torch writes no more than that it is one, on which the work does not hang
    if kind in ("None", "Generator", "Storage", "Stream"):
        return None
    return value


def _split(kinds: str) -> list[str]:
    """Split a list of types at its outer commas: "Tensor(float),GenericList[Int,Int]" is two."""
    parts, depth, begin = [], 0, 0
    for position, character in enumerate(kinds):
        if character in "[(":
            depth += 1
        elif character in "])":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(kinds[begin:position])
            begin = position + 1
    return [*parts, kinds[begin:]] if kinds else []
