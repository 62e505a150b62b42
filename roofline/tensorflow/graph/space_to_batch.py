"""Count what is asked of a dilated convolution that TensorFlow writes without holes, of an image cut into pieces.

`SpaceToBatchND` fills an image up to a multiple of the dilation, and makes each offset an image of its own;
`BatchToSpaceND` puts the results together and cuts off what is too much. So do `tf.nn.depthwise_conv2d`,
`tf.nn.separable_conv2d` and whatever calls `with_space_to_batch`. The gradients pair the same elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roofline.costs import formulas
from roofline.tensorflow.graph.contractions import UnknownWork, sizes
from roofline.tensorflow.graph.graph import Graph, Node
from roofline.tensorflow.graph.origin import origin
from roofline.tensorflow.graph.tables import CONVOLUTIONS, base
from roofline.tensorflow.graph.zero_padding import margins, numbers

#: What hands on the elements that it is given, with dimensions of one element more or less.
_REARRANGES = frozenset("Identity Reshape ExpandDims Squeeze".split())


def flops(node: Node, graph: Graph, consumers: Mapping[str, Sequence[Node]]) -> float | None:
    """Count the FLOPs of the dilated convolution that a node stands for, or of its gradient; None for any other node.

    consumers: of each node, by its name.
    """
    if base(node.op) not in CONVOLUTIONS or len(node.inputs) < 2:
        return None
    forward = node
    if "Backprop" in node.op:
        # What both take: the image, where the gradient is that of the kernel, else the kernel.
        place = 1 if "BackpropInput" in node.op else 0
        sharing = (
            consumer for consumer in consumers.get(node.inputs[place][0], ()) if base(consumer.op) in CONVOLUTIONS
        )
        alike = [
            consumer
            for consumer in sharing
            if "Backprop" not in consumer.op and consumer.inputs[place] == node.inputs[place]
        ]
        if len(alike) != 1:
            return None
        forward = alike[0]
    space_to_batch, batch_to_space = _source(forward, graph), _consumer(forward, consumers)
    if space_to_batch is None or batch_to_space is None or forward.attrs.get("padding") != "VALID":
        return None
    if set(forward.attrs.get("strides") or (1,)) != {1}:  # of each offset by itself: no convolution of the whole
        return None
    try:
        return _pairs(forward, space_to_batch, batch_to_space, graph)
    except UnknownWork:
        return None


def _source(node: Node, graph: Graph) -> Node | None:
    source = origin(graph, node.inputs[0][0], _REARRANGES)
    return source if source is not None and source.op == "SpaceToBatchND" else None


def _consumer(node: Node, consumers: Mapping[str, Sequence[Node]]) -> Node | None:
    for _ in consumers:  # no chain is longer, but where the graph is damaged
        following = consumers.get(node.name, ())
        forward = [consumer for consumer in following if consumer.op == "BatchToSpaceND" or consumer.op in _REARRANGES]
        if len(forward) != 1 or forward[0].op == "BatchToSpaceND":
            return forward[0] if len(forward) == 1 else None
        node = forward[0]
    return None


def _pairs(forward: Node, space_to_batch: Node, batch_to_space: Node, graph: Graph) -> float | None:
    image, result = sizes(space_to_batch.in_types[0], "the image"), sizes(batch_to_space.outputs[0], "the result")
    kernel = sizes(forward.in_types[1], "the kernel")
    block, edges = (numbers(graph, space_to_batch, place) for place in (1, 2))
    cut = numbers(graph, batch_to_space, 2)
    spatial = len(image) - 2
    if not block or len(edges) != len(cut) or len(edges) != 2 * len(block) or len(result) != len(image):
        return None
    undilated = spatial - len(block)
    dilation = [*block, *(1,) * undilated]
    around = (margins(graph, space_to_batch.inputs[0][0]) or ((0, 0),) * len(image))[1:-1]
    padding = [low - lost for low, lost in zip(edges[::2], cut[::2], strict=True)] + [0] * undilated
    depthwise = "Depthwise" in forward.op
    groups = image[-1] if depthwise else max(1, image[-1] // max(1, kernel[-2]))
    return formulas.convolution(
        batch=image[0],
        channels_in=image[-1],
        channels_out=kernel[-2] * kernel[-1] if depthwise else kernel[-1],
        groups=groups,
        size=[size - sum(zeros) for size, zeros in zip(image[1:-1], around, strict=True)],
        kernel=kernel[:-2][-spatial:],
        stride=(1,) * spatial,
        padding=[zeros + low for zeros, (low, _) in zip(padding, around, strict=True)],
        dilation=dilation,
        outputs=result[1:-1],
    ).flops
