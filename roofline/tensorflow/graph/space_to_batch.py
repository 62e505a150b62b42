"""Count what is asked of a dilated convolution that TensorFlow writes without holes, of an image cut into pieces.

`SpaceToBatchND` fills an image up to a multiple of the dilation, and makes each offset an image of its own;
`BatchToSpaceND` puts the results together and cuts off what is too much. So do `tf.nn.depthwise_conv2d`,
`tf.nn.separable_conv2d` and whatever calls `with_space_to_batch`. The gradients pair the same elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roofline.costs import formulas
from roofline.costs.margins import Margins, undone
from roofline.tensorflow.graph.contractions import UnknownWork, roles, sizes
from roofline.tensorflow.graph.graph import Graph, Node
from roofline.tensorflow.graph.origin import origin
from roofline.tensorflow.graph.tables import CONVOLUTIONS, base
from roofline.tensorflow.graph.zero_padding import cut_off, is_gradient, margins, numbers

#: What hands on the elements that it is given, with dimensions of one element more or less.
_REARRANGES = frozenset("Identity Reshape ExpandDims Squeeze".split())


def flops(node: Node, graph: Graph, consumers: Mapping[str, Sequence[Node]]) -> float | None:
    """Count the FLOPs of the dilated convolution that a node stands for, or of its gradient; None for any other node.

    consumers: of each node, by its name.
    """
    if base(node.op) not in CONVOLUTIONS or len(node.inputs) < 2 or node.attrs.get("padding") != "VALID":
        return None
    if set(node.attrs.get("strides") or (1,)) != {1}:  # of each offset by itself: no convolution of the whole
        return None
    makes_image, makes_result = "BackpropInput" in node.op, "Backprop" not in node.op
    image = _consumer(node, consumers) if makes_image else _source(node, 0, graph)
    result = _consumer(node, consumers) if makes_result else _source(node, 2, graph)
    if image is None or result is None:
        return None
    takers = _takers_of_image(node, consumers) if makes_image else [node]
    sources = {source.inputs[0][0] for taker in takers if (source := _source(taker, 0, graph)) is not None}
    edges = {margins(graph, name) for name in sources}
    backward = is_gradient(node)
    try:
        if makes_image and backward and not edges:  # the gradient of padding tells, which cuts it off
            edges = {cut_off(image, graph, consumers)}
        lost = (
            margins(graph, result.inputs[0][0]) if backward or not makes_result else cut_off(result, graph, consumers)
        )
        return _pairs(node, image, result, edges.pop() if len(edges) == 1 else (), lost, graph)
    except UnknownWork:
        return None


def _takers_of_image(gradient: Node, consumers: Mapping[str, Sequence[Node]]) -> list[Node]:
    """List what takes the image that a gradient is of: the convolution itself, and the gradient of its kernel."""
    sharing = [user for user in consumers.get(gradient.inputs[1][0], ()) if user.inputs[1:2] == gradient.inputs[1:2]]
    convolutions = [user for user in sharing if base(user.op) in CONVOLUTIONS and "Backprop" not in user.op]
    return convolutions + [user for user in consumers.get(gradient.inputs[2][0], ()) if "BackpropFilter" in user.op]


def _source(node: Node, place: int, graph: Graph) -> Node | None:
    """Return what cuts an input of a node into pieces."""
    source = origin(graph, node.inputs[place][0], _REARRANGES) if place < len(node.inputs) else None
    return source if source is not None and source.op == "SpaceToBatchND" else None


def _consumer(node: Node, consumers: Mapping[str, Sequence[Node]]) -> Node | None:
    """Return what puts the pieces together that a node makes."""
    for _ in consumers:  # no chain is longer, but where the graph is damaged
        following = consumers.get(node.name, ())
        forward = [consumer for consumer in following if consumer.op == "BatchToSpaceND" or consumer.op in _REARRANGES]
        if len(forward) != 1 or forward[0].op == "BatchToSpaceND":
            return forward[0] if len(forward) == 1 else None
        node = forward[0]
    return None


def _pairs(node: Node, of_image: Node, of_result: Node, zeros: Margins, lost: Margins, graph: Graph) -> float | None:
    """Count the pairs of elements of an image and of a result, which these two cut into pieces or put together.

    zeros: what was put around the image before. lost: what is cut off of the result behind. Raises UnknownWork where a
    size is not known.
    """
    image, result = _whole(of_image, "the image"), _whole(of_result, "the result")
    _, kernel, _ = roles(node, base(node.op))
    (block, edges), (block_of_result, cut) = (
        tuple(numbers(graph, pieces, place) for place in (1, 2)) for pieces in (of_image, of_result)
    )
    spatial = len(image) - 2
    if not block or block != block_of_result or not len(edges) == len(cut) == 2 * len(block):
        return None
    if len(result) != len(image):
        return None
    undilated = spatial - len(block)
    dilation = [*block, *(1,) * undilated]
    around = (zeros or ((0, 0),) * len(image))[1:-1]
    size = [places - sum(ends) for places, ends in zip(image[1:-1], around, strict=True)]
    padding = [low - cut_low for low, cut_low in zip(edges[::2], cut[::2], strict=True)] + [0] * undilated
    padding = [before + low for before, (low, _) in zip(padding, around, strict=True)]
    taps, outputs = kernel[:-2][-spatial:], list(result[1:-1])
    if len(lost) == len(result) and lost[0] == lost[-1] == (0, 0):
        for place, ends in enumerate(lost[1:-1]):
            reach = (taps[place] - 1) * dilation[place]
            behind = outputs[place] + reach - size[place] - padding[place]
            low, high = undone(ends, (padding[place], behind), 1)
            padding[place] -= low
            outputs[place] -= low + high
    depthwise = "Depthwise" in node.op
    groups = image[-1] if depthwise else max(1, image[-1] // max(1, kernel[-2]))
    return formulas.convolution(
        batch=image[0],
        channels_in=image[-1],
        channels_out=kernel[-2] * kernel[-1] if depthwise else kernel[-1],
        groups=groups,
        size=size,
        kernel=taps,
        stride=(1,) * spatial,
        padding=padding,
        dilation=dilation,
        outputs=outputs,
    ).flops


def _whole(pieces: Node, name: str) -> tuple[int, ...]:
    """Return the sizes of what is cut into pieces, or put together."""
    return sizes(pieces.in_types[0] if pieces.op == "SpaceToBatchND" else pieces.outputs[0], name)
