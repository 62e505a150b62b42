"""The work of `flex_attention` in a compiled graph: its kernel goes through the blocks that the block mask leaves.

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
    """(query, key) pairs of one head, over all that the block mask tells apart: (batches, heads) of them.

    run: of the blocks that are gone through; partly: of those among them in which the mask is computed; kept: of those
    that it leaves.
    """

    told_apart: int
    run: float
    partly: float
    kept: float


def called(node: Any) -> Any:
    """Return the call of flex attention that a node picks a result of; the node itself if it picks none of such."""
    call = node
    while call.target is operator.getitem and isinstance(call.args[0], torch.fx.Node):
        call = call.args[0]
    return call if is_flex(call) else node


def is_flex(node: Any) -> bool:
    """Whether a node is a call of flex attention, or of its gradient."""
    return _name(node) in _ARGUMENTS


def _name(node: Any) -> str:
    return str(getattr(node.target, "__name__", "")) if isinstance(node.target, torch._ops.HigherOrderOperator) else ""


def inputs(node: Any) -> tuple[str, ...]:
    """The graph's inputs that its block mask and its mask are made of."""
    found: dict[Any, None] = {}
    waiting = list(_given(node))
    while waiting:
        one = waiting.pop()
        if one not in found:
            found[one] = None
            waiting += one.all_input_nodes
    return tuple(str(one.target) for one in found if one.op == "placeholder")


def _given(node: Any) -> Iterator[Any]:
    _, mask, others = _ARGUMENTS[_name(node)]
    for value in (*node.args[mask], *node.args[others]):
        if isinstance(value, torch.fx.Node) and value.op != "get_attr":
            yield value


def pairs(node: Any, values: Mapping[str, torch.Tensor], queries: int, keys: int) -> Pairs | None:
    """Count the pairs that a call goes through. values: of the graph's inputs (`inputs`); None where they do not do."""
    try:
        with torch.no_grad():
            return _pairs(node, values, queries, keys)
    except Exception:  # a graph holds anything, some of which runs in a compiled kernel only
        return None


def _pairs(node: Any, values: Mapping[str, torch.Tensor], queries: int, keys: int) -> Pairs:
    _, position, others = _ARGUMENTS[_name(node)]
    mask = node.args[position]
    known: dict[Any, Any] = {}
    sizes = [int(size) for size in mask[_SIZES]]
    told_apart, run, partly, kept = 1, 0.0, 0.0, 0.0
    for which in (_PARTLY, _WHOLE):
        if any(one is None for one in mask[which]):
            continue
        number, indices = (_computed(one, known, values) for one in mask[which])
        told_apart = number.shape[0] * number.shape[1]
        rows = torch.arange(number.shape[2]) * sizes[0]
        height = (queries - rows).clamp(0, sizes[0])
        taken = torch.arange(indices.shape[3]) < number.cpu()[..., None]
        width = (keys - indices.cpu().long() * sizes[1]).clamp(0, sizes[1])
        size = float((height * (taken * width).sum(-1)).sum())
        run += size
        if which is _WHOLE:
            kept += size
            continue
        partly = size
        graph = getattr(node.graph.owning_module, mask[_MASK].target)
        tensors = [_computed(one, known, values) for one in node.args[others]]
        kept += _left(graph, tensors, taken, indices, height, sizes, keys)
    return Pairs(told_apart, run, partly, kept)


def _left(graph: Any, tensors: Any, taken: Any, indices: Any, height: Any, sizes: list[int], keys: int) -> float:
    """Pairs that the mask leaves in the blocks that are partly masked."""
    device, kept = indices.device, 0.0
    for batch, head, row in taken.any(-1).nonzero().tolist():
        blocks = indices[batch, head, row][taken[batch, head, row].to(device)].long()
        columns = (blocks[:, None] * sizes[1] + torch.arange(min(sizes[1], keys), device=device)).flatten()
        columns = columns[columns < keys]
        lines = torch.arange(int(height[row]), device=device) + row * sizes[0]
        place = torch.tensor(batch, device=device), torch.tensor(head, device=device)
        for some in lines.split(max(1, _AT_ONCE // max(1, len(columns)))):
            left = graph(*place, some[:, None], columns[None], *tensors)
            left = left[0] if isinstance(left, (list, tuple)) else left
            kept += float(left.sum()) * (len(some) * len(columns) / left.numel())
    return kept


def _computed(node: Any, known: dict[Any, Any], values: Mapping[str, torch.Tensor]) -> Any:
    """The value of a node, by running what makes it."""
    if not isinstance(node, torch.fx.Node):
        return node
    if node not in known:
        if node.op == "placeholder":
            known[node] = values[str(node.target)]
        elif node.op == "get_attr":
            known[node] = getattr(node.graph.owning_module, str(node.target))
        else:
            target: Any = node.target
            args: Any = torch.fx.node.map_arg(node.args, lambda one: _computed(one, known, values))
            kwargs: Any = torch.fx.node.map_arg(dict(node.kwargs), lambda one: _computed(one, known, values))
            known[node] = target(*args, **kwargs)
    return known[node]


def cost(node: Any, found: Pairs | None, query: Any, key: Any, value: Any) -> Cost:
    """The work of a call. query, key, value: tensors of their sizes; found: None where the pairs are not known."""
    batch, heads, queries, width = query.shape
    square = float(batch * heads * queries * key.shape[-2])
    backward = _name(node).endswith("backward")
    rows = batch * heads * queries
    formula = partial(attention_pairs.in_blocks_backward, rows=rows) if backward else attention_pairs.in_blocks
    if found is None:
        asked = formula(square, square, square, width, value.shape[-1])
        why = "which blocks its mask leaves is known to the kernel alone"
        return msgspec.structs.replace(unknown(why), model_flops=asked.model_flops)
    times = batch * heads / found.told_apart
    work = formula(square, times * found.run, times * found.kept, width, value.shape[-1])
    score, mask, *_ = _ARGUMENTS[_name(node)]
    passes, asked_flops = 2 if backward else 1, work.model_flops
    for graph, number in ((node.args[score], found.run), (node.args[mask][_MASK], found.partly)):
        work = work + passes * times * number * _of_a_pair(graph)
    return work if work.quality != "unknown" else msgspec.structs.replace(work, model_flops=asked_flops)


def _of_a_pair(graph: Any) -> Cost:
    """What a function of the program's does for one pair: with its score, or to say whether it is masked."""
    module = getattr(graph.graph.owning_module, str(graph.target))
    given = [one.meta["val"] for one in module.graph.nodes if one.op == "placeholder"]
    tensors = [torch.empty(tuple(one.shape), dtype=one.dtype, device="meta") for one in given]
    counter = flops.Counter()
    with torch.no_grad(), counter:
        module(*tensors)
    return flops.without_rule(counter.unknown) if counter.unknown else counter.cost
