"""FLOPs of TensorFlow's other ops: elementwise, reductions, normalisation, softmax, pooling, updates of parameters.

Ops that are no primitive are counted on their definition, as aten's are, so that a softmax costs the same in both.
"""

from __future__ import annotations

from math import prod

from roofline.core.cost import Cost
from roofline.costs import formulas
from roofline.tensorflow.graph import linear_algebra, rare, recurrent
from roofline.tensorflow.graph import tables as kinds
from roofline.tensorflow.graph.contractions import UnknownWork, contraction, sizes
from roofline.tensorflow.graph.graph import Node, Tensor


def work(node: Node) -> Cost:
    """The work of a node, without its traffic. UnknownWork where there is no rule or a shape is missing."""
    op = kinds.base(node.op)
    rule = rare.RULES.get(op) or linear_algebra.RULES.get(op) or recurrent.RULES.get(op)
    if rule is not None:
        return rule(node)
    if op in kinds.CONTRACTIONS:
        return contraction(node)
    if op in kinds.ELEMENTWISE:
        return _elementwise(node, kinds.ELEMENTWISE[op])
    if op == "UnaryOpsComposition":
        return _composition(node)
    if op in ("AddN", "AccumulateNV2"):
        return _numeric(node, (len(node.in_types) - 1) * formulas.elementwise("add", _out(node)))
    if op in ("AssignAddVariableOp", "AssignSubVariableOp"):
        return _numeric(node, formulas.elementwise("add", _in(node, 1)))
    if op in kinds.REDUCTIONS:
        return _numeric(node, formulas.reduction(_in(node), _out(node), mean=kinds.REDUCTIONS[op]))
    if op in kinds.SCANS:
        # Along which axis is the value of another input, so the first element of every sum counts as well.
        return _numeric(node, Cost(vector_flops=float(_in(node)), quality="assumed", note="first elements counted"))
    if op == "L2Loss":
        return Cost(vector_flops=float(_in(node))) + formulas.reduction(_in(node), 1, mean=True)
    if op == "EuclideanNorm":
        return formulas.norm(_in(node), _out(node))
    if op in kinds.RANDOM:
        return formulas.random(_out(node))
    if op in kinds.SEGMENTS:
        # Each element is added to its row.
        mean = float(_out(node)) if op == "SegmentMean" else 0.0
        return _numeric(node, Cost(vector_flops=float(_in(node, 1 if op == "ScatterNd" else 0)) + mean))
    if op in kinds.SPARSE_SEGMENTS | kinds.SPARSE_SEGMENT_GRADS:
        return _sparse_segment(node, op)
    if op in kinds.RESOURCE_SCATTERS or op in kinds.TENSOR_SCATTERS:
        adds = {**kinds.RESOURCE_SCATTERS, **kinds.TENSOR_SCATTERS}[op]
        return _numeric(node, Cost(vector_flops=float(_in(node, 2)))) if adds else Cost()
    if op in kinds.POOLS:
        number, mean = _out(node), kinds.POOLS[op]
        return formulas.reduction(_window(node) * number, number, mean=mean)
    if op in kinds.POOL_GRADS:
        average = op.startswith("Avg")
        gradients = _in(node, 1 if average else 2)
        return Cost(vector_flops=(1.0 + _window(node)) * gradients if average else float(gradients))
    if op in kinds.RESIZE_GRADS:
        return Cost(vector_flops=kinds.RESIZE_GRADS[op] * _in(node))
    if op in _SEMANTIC:
        return _SEMANTIC[op](node)
    if kinds.update_rule(op) is not None:
        return _update(node, op)
    if op == "CollectiveReduceV2" or op == "CollectiveReduce" or op == "NcclAllReduce":
        return Cost(vector_flops=float(_out(node)))
    workless = (kinds.MOVEMENT, kinds.GATHERS, kinds.WORKLESS_REDUCTIONS, kinds.COMPARING, kinds.TRANSFERS)
    if any(op in table for table in (*workless, kinds.COLLECTIVES)):
        return Cost()
    tensors = (tensor for tensor in (*node.in_types, *node.outputs) if tensor.shape is not None and not tensor.handle)
    if any(tensor.dtype is None for tensor in tensors):
        raise UnknownWork(f"no rule for {node.op}, which takes or gives what is no array of numbers")
    raise UnknownWork(f"no rule for {node.op}")


def _count(tensor: Tensor, name: str) -> int:
    return prod(sizes(tensor, name))


def _out(node: Node, place: int = 0) -> int:
    if place >= len(node.outputs):
        raise UnknownWork("it lacks outputs")
    return _count(node.outputs[place], "a result")


def _in(node: Node, place: int = 0) -> int:
    if place >= len(node.in_types):
        raise UnknownWork("it lacks inputs")
    return _count(node.in_types[place], "an input")


def _numeric(node: Node, cost: Cost) -> Cost:
    """Arithmetic on integers is no FLOP: it goes to int_ops."""
    tensors = (*node.outputs, *(t for t in node.in_types if not t.handle or not node.outputs))
    if any(tensor.floating for tensor in tensors):
        return cost
    return Cost(int_ops=cost.vector_flops) if cost.vector_flops else Cost()


def _elementwise(node: Node, primitives: tuple[str, ...]) -> Cost:
    number = _out(node)
    cost = Cost()
    for kind in primitives:
        primitive_cost = formulas.elementwise(kind, number)
        if kind in ("bit", "logical"):
            primitive_cost = Cost(int_ops=float(number))
        cost = cost + primitive_cost
    return cost if cost.int_ops else _numeric(node, cost)


def _composition(node: Node) -> Cost:
    """Grappler's chain of unary ops, by their names."""
    cost = Cost()
    for name in node.attrs.get("op_names") or ("nothing",):
        if name not in kinds.ELEMENTWISE:
            raise UnknownWork(f"no rule for {name}, which is fused into it")
        cost = cost + _elementwise(node, kinds.ELEMENTWISE[name])
    return cost


def _sparse_segment(node: Node, op: str) -> Cost:
    """Rows picked by an index (input 1) are summed, those of a mean or a root mean divided too."""
    if op in kinds.SPARSE_SEGMENT_GRADS:
        rows, width = _in(node, 1), prod(sizes(node.in_types[0], "the gradient")[1:])
        scaled = 0.0 if op.startswith("SparseSegmentSum") else 1.0
        return Cost(vector_flops=(1.0 + scaled) * rows * width)
    width = prod(sizes(node.in_types[0], "the data")[1:])
    divided = 0.0 if op.startswith("SparseSegmentSum") else float(_out(node))
    return Cost(vector_flops=float(_in(node, 1) * width) + divided)


def _window(node: Node) -> int:
    """Elements of a pooling window, taken whole."""
    window = node.attrs.get("ksize")
    if not window:
        raise UnknownWork("its window is the value of another input")
    return prod(window)


def _rows(tensor: Tensor) -> tuple[int, int]:
    """(elements, rows) of what is normalised over its last dimension."""
    shape = sizes(tensor, "an input")
    return prod(shape), prod(shape[:-1])


def _softmax(node: Node) -> Cost:
    """Subtract the maximum, exp, divide by the sum."""
    number, rows = _rows(node.in_types[0])
    return 2 * formulas.reduction(number, rows) + Cost(vector_flops=2.0 * number, functions={"exp": float(number)})


def _log_softmax(node: Node) -> Cost:
    """Subtract the maximum and the logarithm of the sum of exp."""
    number, rows = _rows(node.in_types[0])
    functions = {"exp": float(number), "log": float(rows)}
    return 2 * formulas.reduction(number, rows) + Cost(vector_flops=2.0 * number, functions=functions)


def _sparse_cross_entropy(node: Node) -> Cost:
    """A softmax whose loss picks one class per row (2 FLOP), and whose gradient subtracts 1 at it."""
    _, rows = _rows(node.in_types[0])
    return _softmax(node) + Cost(vector_flops=3.0 * rows, functions={"log": float(rows)})


def _cross_entropy(node: Node) -> Cost:
    """The loss sums labels * (log sum - logits), and the gradient is softmax - labels."""
    number, rows = _rows(node.outputs[1] if len(node.outputs) > 1 else node.in_types[0])
    loss = Cost(vector_flops=2.0 * number) + formulas.reduction(number, rows)
    return _softmax(node) + loss + Cost(vector_flops=float(number), functions={"log": float(rows)})


def _batch_norm(node: Node) -> Cost:
    """Mean and variance when training, then subtract, multiply twice, add: 8 per element, 4 when the mean is given.

    With an average over several steps (exponential_avg_factor below 1) the two running figures take 3 each.
    """
    number = _in(node)
    channels = _in(node, 1)
    cost = Cost(vector_flops=4.0 * number + channels, functions={"rsqrt": float(channels)})
    if node.attrs.get("is_training", True):
        running = 6.0 * channels if node.attrs.get("exponential_avg_factor", 1.0) != 1.0 else 0.0
        cost = cost + formulas.variance(number, channels) + Cost(vector_flops=running)
    if node.attrs.get("activation_mode", "Identity") != "Identity":
        cost = cost + formulas.elementwise("maximum", number)
    if node.attrs.get("num_side_inputs"):
        cost = cost + formulas.elementwise("add", number)
    return cost


def _batch_norm_gradient(node: Node) -> Cost:
    """The sums of dy and of dy * (x - mean) (4), and dx from them (7): 11 per element, as aten's."""
    return Cost(vector_flops=11.0 * _in(node))


def _layer_norm(node: Node) -> Cost:
    """oneDNN's fused layer norm over the last dimension: 8 per element, as aten's."""
    number, rows = _rows(node.in_types[0])
    normed = Cost(vector_flops=4.0 * number + rows, functions={"rsqrt": float(rows)})
    return formulas.variance(number, rows) + normed


def _bilinear(node: Node) -> Cost:
    """Between two pixels a + (b - a) * t, in a row above, one below, and between the two: 9 per element, as aten's.

    t is x * scale, or (x + 1/2) * scale - 1/2, less its floor: once for each row and column of the result.
    """
    _, rows, columns, _ = sizes(node.outputs[0], "a result")
    where = 4.0 if node.attrs.get("half_pixel_centers") else 2.0
    return Cost(vector_flops=9.0 * _out(node) + where * (rows + columns))


_SEMANTIC = {
    "ResizeBilinear": _bilinear,
    "Softmax": _softmax,
    "LogSoftmax": _log_softmax,
    "SparseSoftmaxCrossEntropyWithLogits": _sparse_cross_entropy,
    "SoftmaxCrossEntropyWithLogits": _cross_entropy,
    "LayerNorm": _layer_norm,
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", "FusedBatchNormEx"), _batch_norm),
    **dict.fromkeys(
        ("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3", "FusedBatchNormGradEx"),
        _batch_norm_gradient,
    ),
}


def _update(node: Node, op: str) -> Cost:
    """An optimizer's update, per element of its gradient: a sparse one has those of the rows that it touches."""
    rule, _ = kinds.update_rule(op) or ("", False)
    if rule not in kinds.UPDATES:
        raise UnknownWork(f"no rule for {node.op}")
    number = float(_in(node, kinds.GRADIENT[rule]))
    _, flops, functions = kinds.UPDATES[rule]
    if isinstance(flops, str):
        return formulas.optimizer_update(flops, number)
    return Cost(vector_flops=flops * number, functions={name: count * number for name, count in functions.items()})
