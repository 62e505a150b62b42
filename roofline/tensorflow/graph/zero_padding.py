"""Count what is asked of a convolution whose image another node filled up with zeros first, or whose result is cut.

A framework that pads by a layer of its own asks for no products with these zeros, as one that leaves padding to the
convolution does not: model FLOPs are of positions inside the image. Grappler folds such a `Pad` into the convolution,
where it can. Nor are results asked for that padding added at an edge and that are cut off again; where more is cut off,
a part of the results is taken, and all of them are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import NamedTuple

from roofline.costs.margins import Edges, Margins, added, inverted, reshaped, undone
from roofline.tensorflow.graph.contractions import UnknownWork, attribute_at, inside, roles, sizes, zeros_before
from roofline.tensorflow.graph.graph import Graph, Node, Tensor
from roofline.tensorflow.graph.origin import constant, origin
from roofline.tensorflow.graph.tables import CONVOLUTIONS, base
from roofline.xla import scopes

#: What hands on the elements that it is given, with dimensions of one element more or less.
_REARRANGES = ("ExpandDims", "Reshape", "Squeeze")
_NONE = (0, 0)
#: A chain of these longer than this is not followed.
_HOPS = 20


def flops(node: Node, graph: Graph, consumers: Mapping[str, Sequence[Node]]) -> float | None:
    """Count the FLOPs of a convolution without what pairs with such zeros; None for any other node.

    consumers: of each node, by its name.
    """
    if base(node.op) not in CONVOLUTIONS or len(node.inputs) < 2:
        return None
    try:
        edges = _of_image(node, graph, consumers)
        fewer = _with_fewer_results(node, edges, _of_result(node, graph, consumers))
        return inside(fewer or node, edges) if edges or fewer else None
    except UnknownWork:
        return None


def _of_image(node: Node, graph: Graph, consumers: Mapping[str, Sequence[Node]]) -> Margins:
    """Return the margins of a convolution's image that are not asked for.

    That of a transposed one is what it makes, of which some may be cut off; its gradients have the margins of it. So
    has the gradient of an image those of the forward pass, which the gradient of padding cuts off. Where no convolution
    of the forward pass is left, as none needs its result, all that is cut off is taken for zeros.
    """
    makes_image = "BackpropInput" in node.op
    if makes_image and not is_gradient(node):
        return _undone_of_transposed(node, cut_off(node, graph, consumers))
    place = 2 if "BackpropFilter" in node.op else 1
    image = node.inputs[place : place + 1]
    sharing = [
        consumer
        for name, _ in image
        for consumer in consumers.get(name, ())
        if base(consumer.op) in CONVOLUTIONS and consumer.inputs[place : place + 1] == image
    ]
    if makes_image:
        # The convolution itself, which is there twice where it is recomputed, or the gradient of its kernel.
        gradient_users = consumers.get(node.inputs[2][0], ())
        kernel_gradients = [user for user in gradient_users if "BackpropFilter" in user.op]
        takers = (*sharing, *kernel_gradients)
        images = [taker.inputs[0][0] for taker in takers if "BackpropInput" not in taker.op]
        image_margins = {margins(graph, image) for image in images} or {cut_off(node, graph, consumers)}
        return image_margins.pop() if len(image_margins) == 1 else ()
    transposed = [consumer for consumer in sharing if "BackpropInput" in consumer.op and not is_gradient(consumer)]
    if transposed and is_gradient(node):
        image_margins = {
            _undone_of_transposed(consumer, cut_off(consumer, graph, consumers)) for consumer in transposed
        }
        return image_margins.pop() if len(image_margins) == 1 else ()
    return margins(graph, node.inputs[0][0])


def _of_result(node: Node, graph: Graph, consumers: Mapping[str, Sequence[Node]]) -> Margins:
    """Return what is cut off of the result of a convolution, or of the gradient that its own gradients take.

    Nothing of a transposed one and its gradients: what that makes is the image.
    """
    if "Backprop" not in node.op:
        return () if is_gradient(node) else cut_off(node, graph, consumers)
    users = consumers.get(node.inputs[2][0], ()) if is_gradient(node) else (node,)
    if any(
        "BackpropInput" in consumer.op and consumer.inputs[2] == node.inputs[2] and not is_gradient(consumer)
        for consumer in users
    ):
        return ()
    place = 1 if "BackpropInput" in node.op else 0  # which input it has in common with the convolution itself
    sharing = [consumer for consumer in consumers.get(node.inputs[place][0], ()) if base(consumer.op) in CONVOLUTIONS]
    cuts = {
        cut_off(consumer, graph, consumers)
        for consumer in sharing
        if "Backprop" not in consumer.op and consumer.inputs[place] == node.inputs[place] and not is_gradient(consumer)
    }
    return margins(graph, node.inputs[2][0]) or (cuts.pop() if len(cuts) == 1 else ())


def _with_fewer_results(node: Node, around: Margins, cut: Margins) -> Node | None:
    """Return a convolution, or a gradient of one, without results that padding added and that are cut off; else None.

    around: the zeros that another node put around the image.
    """
    dimensions = _dimensions(node)
    if not _lies_along(cut, dimensions):
        return None
    lost, paddings = [_NONE] * len(cut), [0] * 2 * len(cut)
    for place, dimension in dimensions.items():
        low, high = around[place] if around else _NONE
        lost[place] = undone(cut[place], (dimension.padding[0] + low, dimension.padding[1] + high), dimension.stride)
        paddings[2 * place] = dimension.padding[0] - lost[place][0] * dimension.stride
    if not any(map(any, lost)):
        return None
    tensors = list(node.in_types if "Backprop" in node.op else node.outputs)
    place = 2 if "Backprop" in node.op else 0
    result = sizes(tensors[place], "the result")
    shape = tuple(size - sum(edges) for size, edges in zip(result, lost, strict=True))
    tensors[place] = replace(tensors[place], shape=shape)
    attrs = {**node.attrs, "padding": "EXPLICIT", "explicit_paddings": tuple(paddings)}
    if "Backprop" in node.op:
        return replace(node, in_types=tuple(tensors), attrs=attrs)
    return replace(node, outputs=tuple(tensors), attrs=attrs)


class _Dimension(NamedTuple):
    """Hold a dimension that a kernel goes along. reach: of its last tap from its first. padding: its own."""

    size: int
    results: int
    reach: int
    stride: int
    padding: Edges


def _dimensions(node: Node) -> dict[int, _Dimension]:
    """List the dimensions of a convolution that its kernel goes along, by their places in its image."""
    image, kernel, result = roles(node, base(node.op))
    first = 2 if str(node.attrs.get("data_format", "N")).startswith("NC") else 1
    explicit = node.attrs.get("explicit_paddings") if node.attrs.get("padding") == "EXPLICIT" else None
    by_place = {}
    for place, taps in enumerate(kernel[: len(image) - 2], first):
        size, results = image[place], result[place]
        stride, dilation = attribute_at(node, "strides", place), attribute_at(node, "dilations", place)
        low, reach = zeros_before(node, place, size, taps, stride, dilation, results), (taps - 1) * dilation
        high = int(explicit[2 * place + 1]) if explicit else (results - 1) * stride + reach + 1 - size - low
        by_place[place] = _Dimension(size, results, reach, stride, (low, max(0, high)))
    return by_place


def _lies_along(cut: Margins, dimensions: Mapping[int, _Dimension]) -> bool:
    """Return whether something is cut off of a result, and of nothing but these of its dimensions."""
    along = all(edges == _NONE or place in dimensions for place, edges in enumerate(cut))
    return along and len(cut) == len(dimensions) + 2


def is_gradient(node: Node) -> bool:
    """Return whether a node belongs to the backward pass."""
    return scopes.is_gradient(node.name)


def cut_off(node: Node, graph: Graph, consumers: Mapping[str, Sequence[Node]], hops: int = _HOPS) -> Margins:
    """Return what a slice cuts off of what a node gives; nothing where something else takes it.

    Of a node of the backward pass that is the gradient of a `Pad`, a slice of that pass. hops: how many nodes that hand
    it on are followed.
    """
    backward = is_gradient(node)
    users = [user for user in consumers.get(node.name, ()) if backward or not is_gradient(user)]
    if len(users) != 1 or is_gradient(users[0]) != backward or not hops:
        return ()
    return cut_by(users[0], node, graph, consumers, hops)


def cut_by(user: Node, node: Node, graph: Graph, consumers: Mapping[str, Sequence[Node]], hops: int = _HOPS) -> Margins:
    """Return what one user of a node cuts off of it, or those behind it do; nothing where it takes the whole."""
    if (user.op in _REARRANGES or _takes_all(user, graph)) and user.in_types and user.outputs:
        return _reshaped(cut_off(user, graph, consumers, hops - 1), user.outputs[0], user.in_types[_handed_on(user)])
    if user.op == "Transpose":
        edges, order = cut_off(user, graph, consumers, hops - 1), _order(graph, user)
        return tuple(edges[place] for place in inverted(order)) if len(edges) == len(order) else ()
    if _adds_bias(user, node.name):
        return cut_off(user, graph, consumers, hops - 1)
    if user.op == "StridedSliceGrad":
        return _picked(graph, user, cut_off(user, graph, consumers, hops - 1))
    if user.op == "Slice" or (user.op == "StridedSlice" and not is_gradient(node)):
        return around_slice(user, sizes(node.outputs[0], "the result"), graph) or ()
    if user.op == "ConcatV2":
        edges, axis = cut_off(user, graph, consumers, hops - 1), numbers(graph, user, len(user.inputs) - 1)
        return edges if edges and len(axis) == 1 and edges[axis[0]] == (0, 0) else ()
    return ()


def _adds_bias(user: Node, result: str) -> bool:
    """Return whether a number of its own is added to each channel of a result, as a convolution may do it."""
    if user.op not in ("BiasAdd", "AddV2") or len(user.in_types) != 2:
        return False
    bias = next((tensor for (name, _), tensor in zip(user.inputs, user.in_types, strict=False) if name != result), None)
    return bias is not None and bias.shape is not None and bias.elements in (1, *bias.shape)


def _undone_of_transposed(node: Node, cut: Margins) -> Margins:
    """Return the results of a transposed convolution that are cut off, as far as not all taps lead to them.

    It is a convolution of an image with holes, with zeros around it of which its own padding takes some off.
    """
    dimensions = _dimensions(node)
    if not _lies_along(cut, dimensions):
        return ()
    lost = [_NONE] * len(cut)
    for place, dimension in dimensions.items():
        low, with_holes = dimension.padding[0], (dimension.results - 1) * dimension.stride + 1
        lost[place] = undone(cut[place], (dimension.reach - low, dimension.size - with_holes + low), 1)
    return tuple(lost)


def margins(graph: Graph, name: str, hops: int = _HOPS) -> Margins:
    """Return the zeros before and behind the result of a node in each dimension; nothing where none are known.

    They are followed through what hands an image on, whole or in parts. hops: through how many nodes.
    """
    node = graph.by_name.get(name)
    if node is None or not hops:
        return ()
    if node.op == "Split":
        edges = margins(graph, node.inputs[1][0], hops - 1) if len(node.inputs) > 1 else ()
        axis = numbers(graph, node, 0)
        return edges if edges and len(axis) == 1 and edges[axis[0]] == (0, 0) else ()
    if node.op not in _HANDS_ON or not node.inputs:
        return ()
    edges = margins(graph, node.inputs[_handed_on(node)][0], hops - 1)
    return (_rearranged if _takes_all(node, graph) else _HANDS_ON[node.op])(graph, node, edges)


def _handed_on(node: Node) -> int:
    """Return which input a node hands on: of the gradient of a slice the last one, of any other node the first."""
    return -1 if node.op == "StridedSliceGrad" else 0


def _padded(graph: Graph, node: Node, edges: Margins) -> Margins:
    values = numbers(graph, node, 1)
    pad_edges = tuple(zip(values[::2], values[1::2], strict=True)) if len(values) % 2 == 0 else ()
    return added(pad_edges, edges) if len(edges) == len(pad_edges) else pad_edges


def _takes_all(node: Node, graph: Graph) -> bool:
    """Return whether a slice, or the gradient of one, takes all elements in their order.

    Then it only puts dimensions of one element in or out.
    """
    if node.op not in ("StridedSlice", "StridedSliceGrad") or not node.in_types or not node.outputs:
        return False
    elements, result_elements = node.in_types[_handed_on(node)].elements, node.outputs[0].elements
    return elements is not None and elements == result_elements and min(numbers(graph, node, 3), default=0) > 0


def _filled(graph: Graph, node: Node, edges: Margins) -> Margins:
    """Return the edges of the gradient of a slice, which has zeros where the slice took nothing."""
    slice_edges = around_slice(node, numbers(graph, node, 0), graph) or ()
    return added(slice_edges, edges) if len(edges) == len(slice_edges) else slice_edges


def _picked(graph: Graph, node: Node, edges: Margins) -> Margins:
    """Return the edges of every second or third element of an array, from the first element on.

    node: the slice that takes them, or the gradient of it, which puts them back. edges: of the array.
    """
    steps = numbers(graph, node, 3)
    every = (1 << len(steps)) - 1
    full_range = all(node.attrs.get(f"{end}_mask", 0) & every == every for end in ("begin", "end"))
    has_other_masks = any(node.attrs.get(f"{mask}_mask", 0) for mask in ("ellipsis", "new_axis", "shrink_axis"))
    arrays = node.in_types if node.op == "StridedSlice" else node.outputs
    shape = arrays[0].shape if arrays else None
    if not edges or not full_range or has_other_masks or shape is None or None in shape or min(steps, default=0) < 1:
        return ()
    steps = (*steps, *(1,) * (len(edges) - len(steps)))
    sizes = [size or 0 for size in shape]
    return tuple(
        (ceil(low / step), ceil(size / step) - ceil((size - high) / step))
        for (low, high), size, step in zip(edges, sizes, steps, strict=True)
    )


def _turned(graph: Graph, node: Node, edges: Margins) -> Margins:
    order = _order(graph, node)
    return tuple(edges[place] for place in order) if len(edges) == len(order) else ()


def _order(graph: Graph, node: Node) -> tuple[int, ...]:
    """Return which dimension of its input each of a transpose is, also of the gradient of one; () where not known."""
    source = graph.by_name.get(node.inputs[1][0]) if len(node.inputs) > 1 else None
    if source is not None and source.op == "InvertPermutation":
        return inverted(numbers(graph, source, 0))
    return numbers(graph, node, 1)


def _rearranged(graph: Graph, node: Node, edges: Margins) -> Margins:
    if not node.in_types or not node.outputs:
        return ()
    return _reshaped(edges, node.in_types[_handed_on(node)], node.outputs[0])


def _reshaped(edges: Margins, image: Tensor, rearranged: Tensor) -> Margins:
    """Return the edges of a tensor that became another; nothing where a size of either is not known."""
    try:
        dimensions, result = sizes(image, "the image"), sizes(rearranged, "the result")
    except UnknownWork:
        return ()
    return (reshaped(edges, dimensions, result) or ()) if edges and len(edges) == len(dimensions) else ()


def _sliced(graph: Graph, node: Node, edges: Margins) -> Margins:
    """Return the edges of a part, as a concatenation's gradient takes it: whole in dimensions that have margins."""
    if not edges or not node.in_types or not node.outputs:
        return ()
    try:
        source_sizes, part = (sizes(tensor, "the image") for tensor in (node.in_types[0], node.outputs[0]))
    except UnknownWork:
        return ()
    cut = [edge for edge, size, part_size in zip(edges, source_sizes, part, strict=True) if size != part_size]
    return edges if all(edge == (0, 0) for edge in cut) else ()


def around_slice(node: Node, sizes: Sequence[int], graph: Graph) -> Margins | None:
    """Return what a slice leaves out of an array, or its gradient fills up; None where it takes no whole rows."""
    begins, ends, strides = (numbers(graph, node, place) for place in range(1, 4))
    if node.op == "Slice":
        begins = begins or _before_padded(graph, node)
        lengths = [n for n in (node.outputs[0].shape if node.outputs else None) or () if n is not None]
        if not len(begins) == len(lengths) == len(sizes):
            return None
        return tuple((at, size - at - n) for at, n, size in zip(begins, lengths, sizes, strict=True))
    if any(node.attrs.get(f"{mask}_mask") for mask in ("ellipsis", "new_axis", "shrink_axis")) or set(strides) != {1}:
        return None
    if not sizes or len(begins) != len(ends) or len(ends) > len(sizes):
        return None
    free_begin, free_end = (int(node.attrs.get(f"{mask}_mask", 0)) for mask in ("begin", "end"))
    margins_found = []
    for place, size in enumerate(sizes):
        begin, end = (begins[place], ends[place]) if place < len(ends) else (0, size)
        begin, end = (at + size if at < 0 else at for at in (begin, end))
        begin = 0 if free_begin >> place & 1 else min(max(begin, 0), size)
        end = size if free_end >> place & 1 else min(max(end, 0), size)
        margins_found.append((begin, size - max(begin, end)))
    return tuple(margins_found)


def _before_padded(graph: Graph, node: Node) -> tuple[int, ...]:
    """Return where the gradient of a `Pad` begins to slice: in the first column of its paddings; nothing of others."""
    column = origin(graph, node.inputs[1][0], ("Reshape",))
    if column is None or column.op != "Slice" or numbers(graph, column, 1) != (0, 0):
        return ()
    rows = (len(numbers(graph, column, 0)) // 2,)
    is_column = (column.in_types[0].shape, column.outputs[0].shape) == ((*rows, 2), (*rows, 1))
    return numbers(graph, column, 0)[::2] if is_column else ()


_HANDS_ON: Mapping[str, Callable[[Graph, Node, Margins], Margins]] = {
    "Pad": _padded,
    **dict.fromkeys(_REARRANGES, _rearranged),
    "Slice": _sliced,
    "StridedSlice": _picked,
    "StridedSliceGrad": _filled,
    "Transpose": _turned,
    "Identity": lambda graph, node, edges: edges,
    "Cast": lambda graph, node, edges: edges,
}


def numbers(graph: Graph, node: Node, place: int) -> tuple[int, ...]:
    """Return the values of an input that is a constant; nothing where it is none."""
    return tuple(int(value) for value in constant(graph, node, place))
