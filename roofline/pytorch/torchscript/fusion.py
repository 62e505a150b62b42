"""The kernels of NNC, TorchScript's fuser: what the profiler names only, read from the graphs that TorchScript runs.

NNC makes pointwise kernels (and, on request, reductions) on GPUs by default, and on CPUs where torch was built with
LLVM and told to. The graphs that run are behind a private interface; where it is gone, or a shape is not fixed, the
kernel is an op of unknown work with its reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import torch

from roofline.core.cost import Cost, unknown
from roofline.costs.calls import Call, Tensor, tensors
from roofline.costs.counted import Access, Costed
from roofline.costs.dtypes import DTYPES, of_most
from roofline.costs.weight import weight
from roofline.pytorch.aten.engine import Engine
from roofline.pytorch.count import Generated
from roofline.pytorch.nodes import Nodes

#: "fused_sigmoid_mul_add" does these three ops in this order; a long name ends in a number in place of the last ones.
_FUSED = re.compile(r"fused_(\w+)")
_SHORTENED = re.compile(r"(.*)_\d+")
#: torch's names of types in a graph, as the profilers write them.
_TYPES = {
    torch.float32: "float",
    torch.float64: "double",
    torch.float16: "c10::Half",
    torch.bfloat16: "c10::BFloat16",
    torch.int64: "long",
    torch.int32: "int",
    torch.int16: "short",
    torch.int8: "signed char",
    torch.uint8: "unsigned char",
    torch.bool: "bool",
}
_WHY = "TorchScript's fuser does not tell what this kernel works on"


@dataclass(frozen=True, slots=True)
class Group:
    """A fused kernel of a graph. scopes: of each part, the module as the graph names it ("" where it does not)."""

    name: str
    costed: Costed
    scopes: tuple[str, ...]


def kernels(nodes: Nodes, groups: Sequence[Group], paths: Mapping[str, str]) -> dict[int, Generated]:
    """The fused kernels among the recorded calls. paths: from a module as graphs name it to its scope.

    Kernels of one name are told apart by order; where there are more or fewer of them than groups, only if the groups
    are alike.
    """
    rows: dict[str, list[int]] = {}
    for index, name in enumerate(nodes.names):
        if _FUSED.fullmatch(name) and not nodes.is_op[index]:
            rows.setdefault(name, []).append(index)
    generated = {}
    for name, rows_of_name in rows.items():
        mine = [group for group in groups if _named(group.name, name)]
        alike = bool(mine) and all(group.costed == mine[0].costed for group in mine)
        for number, row in enumerate(rows_of_name):
            if len(mine) == len(rows_of_name) or alike:
                generated[row] = _generated(name, mine[number % len(mine)], paths)
            else:
                costed = Costed(unknown(_WHY), "fused", "pointwise", "", None, None)
                generated[row] = Generated(name, costed, (), (), None, ())
    return generated


def _named(group: str, event: str) -> bool:
    short = _SHORTENED.fullmatch(event)
    return group == event or (short is not None and group.startswith(short[1]))


def _generated(name: str, group: Group, paths: Mapping[str, str]) -> Generated:
    scopes = [paths.get(scope) for scope in group.scopes]
    main = max(range(len(scopes)), key=lambda part: weight(group.costed.parts[part].cost), default=None)
    main_scope = None if main is None else scopes[main]
    # Places are given for all parts or for none: where a graph names no module it is the op's own scope.
    places = tuple(scope or main_scope or "" for scope in scopes) if main_scope is not None else ()
    reads, writes = (
        (-1,) * len(accesses) for accesses in (group.costed.reads, group.costed.writes)
    )  # buffers are not recorded
    return Generated(name, group.costed, reads, writes, main_scope, places)


def groups(module: Any, engine: Engine) -> list[Group]:
    """The fused kernels of the graphs that a ScriptModule has run, forward ones first."""
    try:
        return [_group(node, engine) for graph in _graphs(module.get_debug_state()) for node in _fused(graph)]
    except (AttributeError, RuntimeError):
        return []


def _graphs(state: Any) -> Iterator[Any]:
    """The optimised graphs of a module: its own, those of its differentiable parts, and of their backward passes."""
    plans = list(state.execution_plans.values())
    for plan in plans:
        yield plan.graph
    for plan in plans:
        for inner in (*plan.code.differentiable_op_executor_states(), *plan.code.grad_executor_states()):
            yield from _graphs(inner)


def _fused(graph: Any) -> Iterator[Any]:
    for node in graph.nodes():
        if node.kind() == "prim::TensorExprGroup":
            yield node
        for block in node.blocks():
            yield from _fused(block)


def _group(node: Any, engine: Engine) -> Group:
    graph = node.g("Subgraph")
    inside = [inner for inner in graph.nodes() if inner.kind() != "prim::Constant"]
    name = "_".join(("fused", *(inner.kind().partition("::")[2] for inner in inside)))
    scopes = tuple(inner.scopeName().rpartition("/")[2] for inner in inside)
    try:
        ins, outs = [_value(inner) for inner in graph.inputs()], [_value(inner) for inner in graph.outputs()]
        parts = tuple(engine.cost(_call(inner)) for inner in inside)
    except (RuntimeError, TypeError, ValueError):
        return Group(name, Costed(unknown(_WHY), "fused", "pointwise", "", None, None), scopes)
    reads, writes = _accesses(ins, True), _accesses(outs, False)
    cost = msgspec.structs.replace(
        sum((part.cost for part in parts), Cost()),
        bytes_read=sum(size for *_, size in reads),
        bytes_written=sum(size for *_, size in writes),
    )
    main = max(parts, key=lambda part: weight(part.cost))
    shapes = " x ".join("[" + ",".join(map(str, tensor.shape)) + "]" for tensor in tensors(tuple(ins)))
    output = of_most(
        (DTYPES[tensor.dtype][0], size) for tensor, (*_, size) in zip(tensors(tuple(outs)), writes, strict=True)
    )
    costed = Costed(cost, "fused", main.op_class, shapes, main.dtype, output, reads, writes, parts=parts)
    return Group(name, costed, scopes)


def _accesses(values: Sequence[Any], is_input: bool) -> tuple[Access, ...]:
    every = enumerate(tensors(tuple(values)))
    return tuple((is_input, number, float(tensor.distinct * DTYPES[tensor.dtype][1])) for number, tensor in every)


def _call(node: Any) -> Call:
    name, _, overload = node.schema().partition("(")[0].partition(".")
    return Call(name, overload, tuple(map(_value, node.inputs())), tuple(map(_value, node.outputs())))


def _value(value: Any) -> Any:
    """A value of a graph as a recorded one. Raises ValueError for a tensor whose shape is not fixed."""
    if value.node().kind() == "prim::Constant":
        constant = value.toIValue()
        return tuple(constant) if isinstance(constant, list) else constant
    kind = value.type()
    if kind.kind() != "TensorType":
        raise ValueError(f"a {kind} that only a run knows")
    sizes, strides, dtype = kind.sizes(), kind.strides(), kind.dtype()
    if sizes is None or strides is None or dtype not in _TYPES:
        raise ValueError("a tensor whose shape only a run knows")
    # A value of a graph is a buffer of its own.
    return Tensor(tuple(sizes), tuple(strides), _TYPES[dtype], value.unique(), device=str(kind.device() or "cpu"))
