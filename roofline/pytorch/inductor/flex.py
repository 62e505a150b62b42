"""Counts the work of compiled `flex_attention`: its kernel goes through the blocks that the block mask leaves.

Which blocks these are is data: graph inputs as a rule, sometimes made in the graph from such. The tensors are kept in
the counting run. After it the part of the graph that makes the block mask is computed once more, and the mask itself
inside the blocks that are only partly masked.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import torch

from roofline.core.cost import Cost, unknown
from roofline.costs import attention_pairs
from roofline.pytorch.aten import flops

#: Where the arguments stand: (what is done to a score, block mask, tensors that the mask function takes).
_ARGUMENTS = {"flex_attention": (3, 4, 8), "flex_attention_backward": (8, 9, 13)}
#: And where in the block mask, from the front and from the back.
_PARTLY, _WHOLE, _SIZES, _MASK = slice(2, 4), slice(4, 6), slice(-3, -1), -1
#: So many pairs of a mask are computed at a time. By choice: it bounds memory alone.
_AT_ONCE = 1 << 24


@dataclass(frozen=True, slots=True)
class Pairs:
    """Holds numbers of (query, key) pairs of a head, summed over the batches and heads with a block mask each.

    told_apart: how many these are. run: pairs of the blocks that are gone through; partly: of those among them in which
    the mask is computed; unmasked: pairs that the mask leaves.
    """

    told_apart: int
    run: float
    partly: float
    unmasked: float


def called(node: Any) -> Any:
    """Return the call of flex attention that a node picks a result of; the node itself if it picks none of such."""
    call = node
    while call.target is operator.getitem and isinstance(call.args[0], torch.fx.Node):
        call = call.args[0]
    return call if is_flex(call) else node


def is_flex(node: Any) -> bool:
    """Tell whether a node is a call of flex attention, or of its gradient."""
    return _name(node) in _ARGUMENTS


def _name(node: Any) -> str:
    return str(getattr(node.target, "__name__", "")) if isinstance(node.target, torch._ops.HigherOrderOperator) else ""


def inputs(node: Any) -> tuple[str, ...]:
    """List the graph's inputs that its block mask and its mask are made of."""
    nodes_met: dict[Any, None] = {}
    waiting = list(_captured_nodes(node))
    while waiting:
        input_node = waiting.pop()
        if input_node not in nodes_met:
            nodes_met[input_node] = None
            waiting += input_node.all_input_nodes
    return tuple(str(input_node.target) for input_node in nodes_met if input_node.op == "placeholder")


def _captured_nodes(node: Any) -> Iterator[Any]:
    _, mask, captured = _ARGUMENTS[_name(node)]
    for value in (*node.args[mask], *node.args[captured]):
        if isinstance(value, torch.fx.Node) and value.op != "get_attr":
            yield value


def pairs(node: Any, values: Mapping[str, torch.Tensor], queries: int, keys: int) -> Pairs | None:
    """Count the pairs that a call goes through; None if `values`, of the graph's inputs (`inputs`), do not tell."""
    try:
        with torch.no_grad():
            return _pairs(node, values, queries, keys)
    except Exception:  # a graph holds anything, some of which runs in a compiled kernel only
        return None


def _pairs(node: Any, values: Mapping[str, torch.Tensor], queries: int, keys: int) -> Pairs:
    _, position, captured = _ARGUMENTS[_name(node)]
    mask = node.args[position]
    computed: dict[Any, Any] = {}
    sizes = [int(size) for size in mask[_SIZES]]
    told_apart, run, partly, unmasked = 1, 0.0, 0.0, 0.0
    for part in (_PARTLY, _WHOLE):
        if any(argument is None for argument in mask[part]):
            continue
        number, indices = (_computed(argument, computed, values) for argument in mask[part])
        told_apart = number.shape[0] * number.shape[1]
        rows = torch.arange(number.shape[2]) * sizes[0]
        height = (queries - rows).clamp(0, sizes[0])
        in_use = torch.arange(indices.shape[3]) < number.cpu()[..., None]
        width = (keys - indices.cpu().long() * sizes[1]).clamp(0, sizes[1])
        size = float((height * (in_use * width).sum(-1)).sum())
        run += size
        if part is _WHOLE:
            unmasked += size
            continue
        partly = size
        graph = getattr(node.graph.owning_module, mask[_MASK].target)
        tensors = [_computed(argument, computed, values) for argument in node.args[captured]]
        unmasked += _unmasked_pairs(graph, tensors, in_use, indices, height, sizes, keys)
    return Pairs(told_apart, run, partly, unmasked)


def _unmasked_pairs(
    graph: Any, tensors: Any, in_use: Any, indices: Any, height: Any, sizes: list[int], keys: int
) -> float:
    """Count the pairs that the mask leaves in the blocks that are partly masked."""
    device, unmasked = indices.device, 0.0
    for batch, head, row in in_use.any(-1).nonzero().tolist():
        blocks = indices[batch, head, row][in_use[batch, head, row].to(device)].long()
        columns = (blocks[:, None] * sizes[1] + torch.arange(min(sizes[1], keys), device=device)).flatten()
        columns = columns[columns < keys]
        lines = torch.arange(int(height[row]), device=device) + row * sizes[0]
        place = torch.tensor(batch, device=device), torch.tensor(head, device=device)
        for query_rows in lines.split(max(1, _AT_ONCE // max(1, len(columns)))):
            mask_values = graph(*place, query_rows[:, None], columns[None], *tensors)
            mask_values = mask_values[0] if isinstance(mask_values, (list, tuple)) else mask_values
            unmasked += float(mask_values.sum()) * (len(query_rows) * len(columns) / mask_values.numel())
    return unmasked


def _computed(node: Any, computed: dict[Any, Any], values: Mapping[str, torch.Tensor]) -> Any:
    """Compute the value of a node by running the calls that make it."""
    if not isinstance(node, torch.fx.Node):
        return node
    if node not in computed:
        if node.op == "placeholder":
            computed[node] = values[str(node.target)]
        elif node.op == "get_attr":
            computed[node] = getattr(node.graph.owning_module, str(node.target))
        else:
            target: Any = node.target
            args: Any = torch.fx.node.map_arg(node.args, lambda inner: _computed(inner, computed, values))
            kwargs: Any = torch.fx.node.map_arg(dict(node.kwargs), lambda inner: _computed(inner, computed, values))
            computed[node] = target(*args, **kwargs)
    return computed[node]


def cost(node: Any, pairs: Pairs | None, query: Any, key: Any, value: Any) -> Cost:
    """Count the work of a call. query, key, value: tensors of their sizes; pairs: None where they are not known."""
    batch, heads, queries, width = query.shape
    square = float(batch * heads * queries * key.shape[-2])
    backward = _name(node).endswith("backward")
    rows = batch * heads * queries
    formula = partial(attention_pairs.in_blocks_backward, rows=rows) if backward else attention_pairs.in_blocks
    if pairs is None:
        asked = formula(square, square, square, width, value.shape[-1])
        why = "which blocks its mask leaves is known to the kernel alone"
        return msgspec.structs.replace(unknown(why), model_flops=asked.model_flops)
    times = batch * heads / pairs.told_apart
    work = formula(square, times * pairs.run, times * pairs.unmasked, width, value.shape[-1])
    score, mask, *_ = _ARGUMENTS[_name(node)]
    passes, asked_flops = 2 if backward else 1, work.model_flops
    for graph, number in ((node.args[score], pairs.run), (node.args[mask][_MASK], pairs.partly)):
        work = work + passes * times * number * _pair_work(graph)
    return work if work.quality != "unknown" else msgspec.structs.replace(work, model_flops=asked_flops)


def _pair_work(graph: Any) -> Cost:
    """Count the work of a function of the program for one pair: on its score, or to say whether it is masked."""
    module = getattr(graph.graph.owning_module, str(graph.target))
    examples = [node.meta["val"] for node in module.graph.nodes if node.op == "placeholder"]
    tensors = [torch.empty(tuple(node.shape), dtype=node.dtype, device="meta") for node in examples]
    counter = flops.Counter()
    with torch.no_grad(), counter:
        module(*tensors)
    return flops.without_rule(counter.unknown) if counter.unknown else counter.cost
