"""The work of a TensorFlow node: its type, shapes and attributes in, FLOPs and traffic out.

Equal nodes have the same `Costed` object: the layers of a model share theirs. What has no rule is unknown and named,
and so is what depends on a shape that was not known before the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import msgspec

from roofline.core.cost import Cost, unknown
from roofline.core.vocabulary import FLOATING, LINEAR_ALGEBRA, PRODUCTS, OpClass
from roofline.costs import custom
from roofline.costs.calls import Tensor as Argument
from roofline.costs.counted import Access, Costed
from roofline.costs.dtypes import computed, of_most
from roofline.tensorflow.graph import linear_algebra
from roofline.tensorflow.graph import tables as kinds
from roofline.tensorflow.graph.bytes import accesses, data_inputs, moves_nothing
from roofline.tensorflow.graph.contractions import PADDING, UnknownWork
from roofline.tensorflow.graph.flops import work
from roofline.tensorflow.graph.graph import Node, Tensor
from roofline.tensorflow.graph.neighbours import AXES, STEPS, UNREAD

#: Attributes that the work depends on.
_ATTRIBUTES = (
    "transpose_a transpose_b adj_x adj_y equation strides dilations padding explicit_paddings data_format fused_ops "
    "op_names is_training ksize exponential_avg_factor activation_mode num_side_inputs half_pixel_centers "
    "full_matrices fast kernel_type antialias method depth_radius adjoint_a adjoint_b interpolation "
    "unique overlapping forget_bias cell_clip use_peephole "
    f"{PADDING} {AXES} {STEPS} {UNREAD}"
).split()
#: What ops of these classes do is part of a normalisation or a softmax that the program took apart.
_PARTS: frozenset[OpClass] = frozenset(("pointwise", "reduction"))
_PARTS_BY_OP = frozenset(("Tile", "BroadcastTo"))


def cost(node: Node, semantic: OpClass | None = None) -> Costed:
    """The work and the traffic of one execution of a node. Never raises for data.

    semantic: what the node is a part of, where its scope tells (normalisation, softmax). A user's own op is asked for
    by the name "tf::" and its type (`roofline.formula`).
    """
    numbers: dict[Any, int] = {}
    pattern = tuple(numbers.setdefault(source, len(numbers)) for source in node.inputs)
    attrs = tuple((name, node.attrs[name]) for name in _ATTRIBUTES if node.attrs.get(name) is not None)
    return _cost(node.op, pattern, node.in_types, node.outputs, attrs, semantic, custom.registered(f"tf::{node.op}"))


@lru_cache(maxsize=65536)
def _cost(
    op: str,
    pattern: tuple[int, ...],
    in_types: tuple[Tensor, ...],
    outputs: tuple[Tensor, ...],
    attrs: tuple[tuple[str, Any], ...],
    semantic: OpClass | None,
    user: Any,
) -> Costed:
    node = Node("", op, tuple(("", number) for number in pattern), in_types, outputs, dict(attrs))
    if user is not None:
        return _by_formula(node, *user)
    if moves_nothing(node):
        return replace(_plain(node, Cost()), view=True)
    try:
        computed = _iterative(node) if op in kinds.ITERATIVE else work(node)
        reads, writes = accesses(node)
        if node.attrs.get(UNREAD):
            computed = computed + Cost(
                quality="assumed", note="without results that nothing reads, whose size is not known"
            )
    except UnknownWork as reason:
        return _plain(node, unknown(f"{op}: {reason}"), semantic)
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:
        # A graph that TensorFlow accepted has what the rules read; a foreign one may not.
        return _plain(node, unknown(f"{op}: {type(error).__name__} in its rule"), semantic)
    total = msgspec.structs.replace(
        computed, bytes_read=sum(size for _, _, size in reads), bytes_written=sum(size for _, _, size in writes)
    )
    read = {place for is_input, place, _ in reads if is_input}
    return replace(
        _plain(node, total, semantic),
        reads=reads,
        writes=writes,
        inplace=any(is_input and place in read for is_input, place, _ in writes),
    )


def _iterative(node: Node) -> Cost:
    """The work of what takes rounds: unknown, but where a faster way takes none (least squares)."""
    try:
        return work(node)
    except UnknownWork:
        return unknown(f"{node.op}: how much it computes depends on its numbers")


def classify(op: str, semantic: OpClass | None = None) -> OpClass:
    """The class of an op; `semantic`: what its scope says it is a part of."""
    plain = kinds.base(op)
    if kinds.update_rule(plain) is not None:
        return "optimizer"
    op_class: OpClass = kinds.CLASS_OF.get(plain, "movement" if plain in kinds.VIEWS else "other")
    if semantic is not None and (op_class in _PARTS or plain in _PARTS_BY_OP):
        return semantic
    return op_class


def title(node: Node) -> str:
    """The op for people, what is fused into it included: "MatMul + BiasAdd + Relu"."""
    fused = node.attrs.get("fused_ops") or node.attrs.get("op_names") or ()
    plain = kinds.base(node.op)
    return " + ".join(fused if plain == "UnaryOpsComposition" and fused else (plain, *fused))


def kind(op: str) -> str:
    """Our op kind of a TensorFlow op, for the saved signature."""
    plain = kinds.base(op)
    if plain in kinds.PRODUCTS:
        return "matmul"
    if plain in linear_algebra.RULES:
        return LINEAR_ALGEBRA
    if plain in kinds.CONVOLUTIONS:
        return "convolution_backward" if "Backprop" in plain else "convolution"
    return plain


def describe(node: Node) -> str:
    """The shapes of the data inputs, or of the results of a node without any: "[128,768] x [768,768]"."""
    tensors = [node.in_types[place] for place in data_inputs(node)] or list(node.outputs)
    texts = [_shape(tensor) for tensor in tensors]
    return " x ".join(texts[:3]) + (f" +{len(texts) - 3}" if len(texts) > 3 else "")


def _shape(tensor: Tensor) -> str:
    sizes = ("?",) if tensor.shape is None else ("?" if size is None else str(size) for size in tensor.shape)
    return f"[{','.join(sizes)}]"


def _plain(node: Node, computed_work: Cost, semantic: OpClass | None = None) -> Costed:
    types = [tensor.dtype for tensor in node.in_types if tensor.dtype]
    results = [(tensor.dtype, tensor.bytes or 0.0) for tensor in node.outputs if not tensor.handle]
    updated = [(tensor.dtype, tensor.bytes or 0.0) for tensor in node.in_types if tensor.handle]
    op_class = classify(node.op, semantic)
    output = of_most(results) or of_most(updated) or next((dtype for dtype in types if dtype in FLOATING), None)
    return Costed(
        cost=computed_work,
        kind=kind(node.op),
        op_class=op_class,
        shapes=describe(node),
        dtype=computed(types, output, op_class in PRODUCTS or bool(computed_work.flops)),
        output=output,
    )


def _by_formula(node: Node, function: Any, op_class: OpClass) -> Costed:
    """A user's formula gives the work; its bytes are put on inputs and results in proportion to their size."""
    formula_work = function(*(_argument(tensor) for tensor in node.in_types))
    inputs = {place: node.in_types[place].bytes for place in data_inputs(node)}
    results = {place: tensor.bytes for place, tensor in enumerate(node.outputs)}
    return replace(
        _plain(node, formula_work),
        op_class=op_class,
        reads=_divide(formula_work.bytes_read, inputs, True),
        writes=_divide(formula_work.bytes_written, results, False),
    )


def _argument(tensor: Tensor) -> Argument | None:
    if tensor.shape is None or tensor.elements is None:
        return None
    return Argument(tuple(size or 0 for size in tensor.shape), None, tensor.dtype or "")


def _divide(total: float | None, many: Mapping[int, float | None], is_input: bool) -> tuple[Access, ...]:
    summed = sum(size or 0.0 for size in many.values())
    if not total or not summed:
        return ()
    return tuple((is_input, place, total * (size or 0.0) / summed) for place, size in many.items())
