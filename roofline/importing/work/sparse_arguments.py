"""Sparse tensors among the arguments of a Chrome trace, in which they have sizes and no strides, like dense ones whose
strides nobody recorded.

Whatever computes with a sparse tensor asks it for its numbers or their indices, in calls of their own. A compressed one
(CSR, CSC, BSR, BSC) hands its numbers on by an alias, whose size is recorded; one with coordinates (COO) does not, and
how many it holds is unknown.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from roofline.costs.calls import UNKNOWN, Call, Tensor
from roofline.importing.work.arguments import KinetoNodes

_NUMBERS = "aten::values"
#: What only a sparse tensor is asked for.
_ASKED = frozenset(
    f"aten::{name}" for name in "_nnz values _values _indices crow_indices col_indices ccol_indices row_indices".split()
)

#: How many numbers, and how many of them (or blocks of them) have an index.
_Holds = tuple[int, int]


def completed(nodes: KinetoNodes) -> dict[int, Call]:
    """The ops that are given sparse tensors, with what these hold, by node."""
    asking = [node for node, name in enumerate(nodes.names) if name in _ASKED]
    if not asking:
        return {}
    numbers = _numbers(nodes)
    within: dict[int, dict[tuple[int, ...], set[_Holds]]] = {}
    for node in asking:
        tensor = next((value for value in nodes.call(node).inputs if _may_be_sparse(value)), None)
        if tensor is None:
            continue
        around = int(nodes.parent[node])
        while around >= 0:
            known = within.setdefault(around, {}).setdefault(_sizes(tensor), set())
            if node in numbers:
                shape = numbers[node]
                known.add((prod(shape), prod(shape[: len(tensor.shape) - 1])))
            around = int(nodes.parent[around])
    return {node: _with_numbers(nodes.call(node), holds) for node, holds in within.items() if nodes.is_op[node]}


def _numbers(nodes: KinetoNodes) -> dict[int, tuple[int, ...]]:
    """Shapes of the numbers that compressed tensors were asked for, by the call that asked: [places, *block]."""
    shapes: dict[int, tuple[int, ...]] = {}
    for node, name in enumerate(nodes.names):
        around = int(nodes.parent[node])
        if name == "aten::alias" and around >= 0 and nodes.names[around] == _NUMBERS:
            shapes.update((around, value.shape) for value in nodes.call(node).inputs if isinstance(value, Tensor))
    return shapes


def _with_numbers(call: Call, holds: dict[tuple[int, ...], set[_Holds]]) -> Call:
    """Say of the sparse arguments of a call what they hold, where all of their sizes hold the same."""

    def said(value: Any) -> Any:
        if not _may_be_sparse(value) or _sizes(value) not in holds:
            return value
        alike = holds[_sizes(value)]
        stored, places = next(iter(alike)) if len(alike) == 1 else (UNKNOWN, UNKNOWN)
        return replace(value, stored=stored, places=places)

    return replace(call, inputs=tuple(said(value) for value in call.inputs))


def _may_be_sparse(value: Any) -> bool:
    return isinstance(value, Tensor) and bool(value.shape) and value.stride is None


def _sizes(tensor: Tensor) -> tuple[int, ...]:
    """Sizes in any order: a transposed one holds as much."""
    return tuple(sorted(tensor.shape))
