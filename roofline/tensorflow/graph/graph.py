"""TensorFlow's graph mode as values: tensors, nodes and graphs, as a child process with TensorFlow wrote them down.

A step in graph mode runs one or more functions. Of each there are two graphs: the one the program asked for, before
TensorFlow's graph optimizer (grappler) saw it, and the one the executor ran.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from types import MappingProxyType
from typing import Any

from roofline.core.vocabulary import FLOATING

#: TensorFlow's names of element types: (our name, bytes). Types without a size (string, variant) have none here.
DTYPES: dict[str, tuple[str, int]] = {
    "float32": ("fp32", 4),
    "float64": ("fp64", 8),
    "float16": ("fp16", 2),
    "bfloat16": ("bf16", 2),
    **dict.fromkeys("float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e4m3b11fnuz float8_e5m2fnuz".split(), ("fp8", 1)),
    "float4_e2m1fn": ("fp4", 1),  # TensorFlow keeps these narrow types in a byte each
    **{f"{sign}int{bits}": (f"{sign}int{bits}", 1) for sign in ("", "u") for bits in (2, 4)},
    "complex64": ("complex64", 8),
    "complex128": ("complex128", 16),
    **{f"{sign}int{8 * size}": (f"{sign}int{8 * size}", size) for sign in ("", "u") for size in (1, 2, 4, 8)},
    "bool": ("bool", 1),
    "qint8": ("int8", 1),
    "quint8": ("uint8", 1),
    "qint16": ("int16", 2),
    "quint16": ("uint16", 2),
    "qint32": ("int32", 4),
}
BYTES: dict[str, int] = dict(DTYPES.values())

#: Of a tensor that a node was seen to get; None where it was not told, and for a dimension that differs.
Shape = tuple[int | None, ...] | None
#: By the name of an event or a node how often it ran with inputs of which shapes: several functions may have the name.
Seen = Mapping[str, Mapping[tuple[Shape, ...], int]]

#: Where a data input comes from: (name of the node, number of its output).
Source = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor as far as it was known before the run.

    dtype: in our words, None for what has no elements of a size (strings, variants). shape: None where even the rank
    is not known, and None for a dimension that is not. handle: the edge carries a variable of this type and shape.
    """

    dtype: str | None
    shape: tuple[int | None, ...] | None
    handle: bool = False

    @property
    def elements(self) -> int | None:
        """Number of elements; None where it is not known."""
        if self.shape is None or None in self.shape:
            return None
        return prod(size for size in self.shape if size is not None)

    @property
    def bytes(self) -> float | None:
        """Size [byte]; None where it is not known."""
        elements = self.elements
        size = BYTES.get(self.dtype or "")
        return None if elements is None or size is None else float(elements * size)

    @property
    def floating(self) -> bool:
        """Tell whether arithmetic on it is floating."""
        return self.dtype in FLOATING


@dataclass(frozen=True, slots=True)
class Node:
    """Hold a node of a graph.

    op: its type ("MatMul"). inputs: of data, without control inputs; in_types: the tensors on these edges.
    attrs: as plain values (numbers, texts, tuples of these). device: where it was placed, "" where it was not.
    """

    name: str
    op: str
    inputs: tuple[Source, ...] = ()
    in_types: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    device: str = ""


@dataclass(frozen=True)
class Graph:
    """The nodes of one function, called functions included."""

    nodes: tuple[Node, ...]

    @cached_property
    def by_name(self) -> Mapping[str, Node]:
        """Every node by its name; names are unique in a graph."""
        return {node.name: node for node in self.nodes}

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)


@dataclass(frozen=True, slots=True)
class Function:
    """Hold a function of a step: `before`, what the program asked for, and `after`, what the executor runs."""

    before: Graph
    after: Graph


@dataclass(frozen=True, slots=True)
class Graphs:
    """All functions of a step, in the order they were made. warnings: what could not be read, one sentence each.

    seen: of a step whose nodes told what they got, by events.
    """

    functions: tuple[Function, ...]
    warnings: tuple[str, ...] = ()
    seen: Seen = field(default_factory=lambda: MappingProxyType({}))

    @property
    def shapes_known(self) -> bool:
        """Tell whether the shapes of all that the functions compute with were known before the run."""
        nodes = (node for function in self.functions for node in function.after)
        tensors = (tensor for node in nodes for tensor in (*node.in_types, *node.outputs))
        return all(tensor.elements is not None for tensor in tensors if tensor.dtype is not None and not tensor.handle)
