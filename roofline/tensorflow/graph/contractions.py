"""FLOPs of TensorFlow's contractions: products, einsums and convolutions, whichever library's kernel runs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from roofline.core.cost import Cost
from roofline.costs import formulas
from roofline.costs.margins import Margins
from roofline.tensorflow.graph.graph import Node, Tensor
from roofline.tensorflow.graph.tables import FUSED, base

#: The attribute of zeros around the image that oneDNN's convolutions took in, whatever `padding` says.
PADDING = "padding_list"


class UnknownWork(Exception):
    """The work of a node cannot be told; the message says why."""


def sizes(tensor: Tensor, role: str) -> tuple[int, ...]:
    """Return the dimensions of a tensor; UnknownWork, which names its role, where one of them is not known."""
    if tensor.shape is None:
        raise UnknownWork(f"the shape of {role} was not known before the run")
    dimensions = tuple(size for size in tensor.shape if size is not None)
    if len(dimensions) != len(tensor.shape):
        raise UnknownWork(f"a dimension of {role} was not known before the run")
    return dimensions


def held(tensor: Tensor) -> int:
    """Count the numbers that a compressed sparse matrix holds. UnknownWork where nothing in the step tells."""
    if tensor.dtype is None:
        raise UnknownWork("how many numbers a compressed matrix holds is seen nowhere in the step")
    return prod(sizes(tensor, "a compressed matrix"))


def sparse_factors(node: Node) -> tuple[int, int]:
    """(numbers that the sparse factor of a product holds, columns of the dense one).

    A sparse tensor is three inputs (places, numbers, shape), a compressed matrix is one.
    """
    compressed = node.op == "SparseMatrixMatMul"
    numbers = held(node.in_types[0]) if compressed else prod(sizes(node.in_types[1], "the sparse factor"))
    turned = node.attrs.get("transpose_b") or node.attrs.get("adjoint_b")
    dense = sizes(node.in_types[1 if compressed else 3], "the dense factor")
    return numbers, dense[-2 if turned else -1]


def contraction(node: Node) -> Cost:
    """The work of a contraction with what is fused into it. UnknownWork where a shape or an attribute is missing."""
    op = base(node.op)
    if len(node.in_types) < (1 if op == "Einsum" else 2) or not node.outputs:
        raise UnknownWork("it lacks inputs or outputs")
    if op == "Einsum":
        cost = einsum(node.attrs.get("equation", ""), [sizes(t, "an input") for t in node.in_types])
    elif "MatMul" in op:
        cost = _product(node)
    else:
        cost = _convolution(node, op)
    return cost + fused(node)


def inside(node: Node, margins: Margins) -> float | None:
    """The FLOPs of a convolution, or of a gradient of one, without what pairs with zeros around the image [FLOP]."""
    return _convolution(node, base(node.op), margins).flops


def fused(node: Node) -> Cost:
    """The vector work of what grappler fused behind a contraction (attribute fused_ops), per output element."""
    names = node.attrs.get("fused_ops") or ()
    if base(node.op) == "Conv2DBackpropFilterWithBias":
        gradient = sizes(node.in_types[2], "the gradient")
        return formulas.reduction(prod(gradient), sizes(node.outputs[0], "the result")[-1])
    if base(node.op).endswith("WithBias"):
        names = ("BiasAdd", *names)
    cost = Cost()
    number = prod(sizes(node.outputs[0], "the result")) if names else 0
    for name in names:
        if name not in FUSED:
            raise UnknownWork(f"no rule for {name}, which is fused into it")
        for kind in FUSED[name]:
            cost = cost + formulas.elementwise(kind, number)
    return cost


def _product(node: Node) -> Cost:
    """MatMul has transpose_a, the batched ones adj_x; the first input has the summed dimension, the result the rest."""
    a = sizes(node.in_types[0], "the first factor")
    result = sizes(node.outputs[0], "the product")
    if len(a) < 2 or len(result) < 2:
        raise UnknownWork("a factor is no matrix")
    turned = node.attrs.get("transpose_a") or node.attrs.get("adj_x")
    return formulas.matmul(result[-2], result[-1], a[-2] if turned else a[-1], prod(result[:-2]))


def einsum(equation: str, operands: Sequence[Sequence[int]]) -> Cost:
    """The work of an einsum of one or two operands.

    What only one operand has and the result has not is summed away first, and a repeated label is a diagonal: neither
    is matrix work. The rest is a batched product, all remaining labels multiplied.
    """
    operand_labels, arrow, right = equation.replace(" ", "").partition("->")
    terms = operand_labels.split(",")
    if not arrow or len(terms) != len(operands):
        raise UnknownWork(f"the equation {equation!r} does not fit its operands")
    labels = [_labels(term, len(shape)) for term, shape in zip(terms, operands, strict=True)]
    extent: dict[str, int] = {}
    for names, shape in zip(labels, operands, strict=True):
        for name, size in zip(names, shape, strict=True):
            # Only the labels of an ellipsis may differ: 1 is broadcast.
            extent[name] = max(size, extent.get(name, 1)) if size else 0
    result_labels = set(_labels(right, None, {name for names in labels for name in names}))
    if len(operands) == 1:
        distinct = set(labels[0])
        return formulas.reduction(_size(distinct, extent), _size(distinct & result_labels, extent))
    if len(operands) > 2:
        raise UnknownWork(f"an einsum of {len(operands)} operands")
    first, second = map(set, labels)
    cost = Cost()
    for operand, partner in ((first, second), (second, first)):
        summed_away = operand - partner - result_labels
        if _size(summed_away, extent) > 1:
            cost = cost + formulas.reduction(_size(operand, extent), _size(operand - summed_away, extent))
    batch, rows, columns = (
        first & second & result_labels,
        (first & result_labels) - second,
        (second & result_labels) - first,
    )
    summed = (first & second) - result_labels
    m, n, k, b = (_size(names, extent) for names in (rows, columns, summed, batch))
    return cost + formulas.matmul(m, n, k, b)


def _labels(term: str, rank: int | None, operand_labels: set[str] | None = None) -> list[str]:
    """List the labels of the dimensions; those of an ellipsis are numbered from the end, so that they align."""
    before, dots, after = term.partition("...")
    if not dots:
        names = list(before)
    elif operand_labels is not None:
        return [*before, *(name for name in operand_labels if name[0] == "."), *after]
    else:
        count = max(0, (rank or 0) - len(before) - len(after))
        names = [*before, *(f".{place}" for place in range(count, 0, -1)), *after]
    if rank is not None and len(names) != rank:
        raise UnknownWork(f"the term {term!r} does not fit an operand of {rank} dimensions")
    return names


def _size(names: set[str], extent: Mapping[str, int]) -> int:
    return prod(extent.get(name, 1) for name in names)


def _convolution(node: Node, op: str, margins: Margins = ()) -> Cost:
    """A convolution or one of its gradients, which pair the same elements: valid positions only.

    margins: what of each dimension of the image is not its own; nothing where there are none.
    """
    image, kernel, result = roles(node, op)
    spatial = len(image) - 2
    channels_first = str(node.attrs.get("data_format", "N")).startswith("NC")
    places = tuple(range(2, 2 + spatial)) if channels_first else tuple(range(1, 1 + spatial))
    channel = 1 if channels_first else len(image) - 1
    if len(kernel) != len(image) or spatial < 1:
        raise UnknownWork("its image and its kernel do not fit")
    size = [image[place] for place in places]
    outputs = [result[place] for place in places]
    stride = [attribute_at(node, "strides", place) for place in places]
    dilation = [attribute_at(node, "dilations", place) for place in places]
    taps = kernel[:spatial]
    if "Depthwise" in op:
        groups, channels_out = image[channel], kernel[-2] * kernel[-1]
    else:
        groups, channels_out = max(1, image[channel] // max(1, kernel[-2])), kernel[-1]
    padding = [
        zeros_before(node, place, *dimension)
        for place, dimension in zip(places, zip(size, taps, stride, dilation, outputs, strict=True), strict=True)
    ]
    if margins:
        if any(edges != (0, 0) for place, edges in enumerate(margins) if place not in places):
            raise UnknownWork("more than its image's places are padded")
        size = [image[place] - sum(margins[place]) for place in places]
        padding = [zeros + margins[place][0] for zeros, place in zip(padding, places, strict=True)]
    return formulas.convolution(
        image[0], image[channel], channels_out, groups, size, taps, stride, padding, dilation, outputs
    )


def roles(node: Node, op: str) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of (image, kernel, result of the forward pass), whichever of them the node makes."""
    if "Backprop" not in op:
        image, kernel, result = node.in_types[0], node.in_types[1], node.outputs[0]
    elif len(node.in_types) < 3:
        raise UnknownWork("it lacks inputs")
    elif "BackpropInput" in op:
        image, kernel, result = node.outputs[0], node.in_types[1], node.in_types[2]
    else:
        image, kernel, result = node.in_types[0], node.outputs[0], node.in_types[2]
    return sizes(image, "the image"), sizes(kernel, "the kernel"), sizes(result, "the result")


def attribute_at(node: Node, attribute: str, place: int) -> int:
    """Return the number of an attribute that has one for each dimension; 1 where it says nothing of this one."""
    values = node.attrs.get(attribute) or ()
    return int(values[place]) if place < len(values) else 1


def zeros_before(node: Node, place: int, size: int, taps: int, stride: int, dilation: int, outputs: int) -> int:
    """Count the zeros before the first element of a dimension: TensorFlow's SAME puts the odd one behind."""
    padding, padding_list = node.attrs.get("padding", "VALID"), node.attrs.get(PADDING) or ()
    explicit = padding_list or node.attrs.get("explicit_paddings") or ()
    if (padding_list or padding == "EXPLICIT") and 2 * place < len(explicit):
        return int(explicit[2 * place])
    if padding == "SAME" or base(node.op).startswith("PadWith"):
        # A pad that was fused into the convolution is taken to be even: how it lies is data of another input.
        return max(0, (outputs - 1) * stride + (taps - 1) * dilation + 1 - size) // 2
    return 0
