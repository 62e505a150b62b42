"""Shapes of a TensorFlow graph, inferred by importing it: what `graphs` knows of every edge.

TensorFlow infers nothing through its loops: the node that enters one forgets the shape. For the inference alone the
way back from the end of a body to its head is therefore cut. Where a trip changes a shape, that is found when the two
are compared, and the dimension is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.ops import handle_data_util

from roofline.tensorflow.graph.contractions import PADDING
from roofline.tensorflow.graph.graph import DTYPES, Seen, Shape, Tensor
from roofline.tensorflow.run_shapes import fitting

Outputs = tuple[Tensor, ...]

#: What TensorFlow raises for a graph that it cannot read.
ERRORS = (ValueError, KeyError, TypeError, AttributeError, tf.errors.OpError)

#: Ops of one output that hand their input on.
_SAME = frozenset(("Enter", "Exit", "NextIteration", "LoopCond", "RefEnter", "RefExit", "RefNextIteration"))
_RECEIVES = frozenset(("_Recv", "_HostRecv"))
_MERGES, _BACK = frozenset(("Merge", "RefMerge")), frozenset(("NextIteration", "RefNextIteration"))
#: oneDNN's ops of which TensorFlow infers other shapes than they make (mkl_nn_ops.cc, in 2.21).
_PADS, _WITH_BIAS = "_MklNativePadWith", "_MklNativeConv2DBackpropFilterWithBias"
#: Shapes that change from trip to trip are found in as many rounds as such loops stand one behind another.
_ROUNDS = 6


def inferred(graph: Any, run_shapes: Seen = MappingProxyType({})) -> Mapping[str, Outputs]:
    """Type and shape of all outputs of all nodes of a GraphDef, by node name. One of `ERRORS` for a damaged graph.

    run_shapes: what a run showed of shapes that follow from no graph; nothing where TensorFlow sees a contradiction.
    """
    from_graph = _inferred(graph)
    with_run_shapes = _told(graph, from_graph, run_shapes) if run_shapes else None
    if with_run_shapes is not None:
        with suppress(*ERRORS):
            return _inferred(with_run_shapes)
    return from_graph


def _told(graph: Any, from_graph: Mapping[str, Outputs], run_shapes: Seen) -> Any:
    """Return the graph with the shapes that nodes were seen to get and that are not known; None where there are none.

    TensorFlow takes the attribute for what it would infer where a graph is imported (graph_constructor.cc).
    """
    got: dict[str, dict[int, Shape]] = {}
    for node in graph.node:
        sources = [(name, int(place or 0)) for name, _, place in (text.partition(":") for text in _data(node))]
        tensors = [
            from_graph[name][place] if place < len(from_graph.get(name, ())) else None for name, place in sources
        ]
        shapes = fitting(run_shapes, _run_as(node), [None if tensor is None else tensor.shape for tensor in tensors])
        for (name, place), tensor, shape in zip(sources, tensors, shapes, strict=False):
            if tensor is not None and tensor.elements is None and shape is not None:
                got.setdefault(name, {})[place] = shape
    if not got:
        return None
    result = tf.compat.v1.GraphDef()
    result.CopyFrom(graph)
    for node in result.node:
        if node.name in got:
            places = range(len(from_graph[node.name]))
            protos = [tf.TensorShape(got[node.name].get(place)).as_proto() for place in places]
            shape_list = attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(shape=protos))
            node.attr["_output_shapes"].CopyFrom(shape_list)
    return result


def _run_as(node: Any) -> str:
    """Return the name under which a node runs.

    TensorFlow makes a function of each device's piece of a graph and a graph of that function, so that the result
    `Identity_RetVal` runs as `identity_retval_RetVal` (graph_to_functiondef.cc, function_def_utils.cc).
    """
    return f"{node.name.lower()}_RetVal" if node.op == "_Retval" else str(node.name)


def _data(node: Any) -> list[str]:
    return [text for text in node.input if not text.startswith("^")]


def _inferred(graph: Any) -> Mapping[str, Outputs]:
    changing: dict[str, tf.TensorShape] = {}
    for _ in range(_ROUNDS):
        imported = _imported(_straight(graph, changing))
        changes = _changed(graph, imported)
        if not changes:
            break
        changing |= changes
    return {
        node.name: tuple(_tensor(output) for output in imported.get_operation_by_name(node.name).outputs)
        for node in graph.node
    }


def _imported(graph: Any) -> tf.Graph:
    holder = tf.Graph()
    with holder.as_default():
        tf.graph_util.import_graph_def(graph, name="")
    return holder


def _straight(graph: Any, changing: Mapping[str, tf.TensorShape]) -> Any:
    """The graph without ways back; changing: what is known of merges whose way back brings another shape."""
    result = tf.compat.v1.GraphDef()
    result.CopyFrom(graph)
    back = _ways_back(graph)
    for node in list(result.node):
        # Whom it shall lie beside: shapes do not depend on it, and a node that grappler took out stops the import.
        node.attr.pop("_class", None)
        data = _data(node)
        if node.op.startswith(_PADS):
            _pad_before(result, node, data[-1], node.attr["Tpaddings"].type)
        elif PADDING in node.attr and node.attr[PADDING].list.i:
            _pad_before(result, node, _amounts(result, node), tf.int32.as_datatype_enum)
        if node.op == _WITH_BIAS:
            _bias_apart(result, node)
        elif node.op in _SAME or (node.op in _RECEIVES and data):
            _same(node, _kind(node), data)
        elif node.name in back:
            entries = [text for text in data if text not in back[node.name]]
            kind = node.attr["T"].type
            if node.name in changing:
                entries = [_unsure(result, node.name, kind, changing[node.name])]
            _same(node, kind, entries)
    return result


def _amounts(graph: Any, node: Any) -> str:
    """Add a constant of the zeros that a convolution has as an attribute; return its name."""
    paddings = np.asarray(node.attr[PADDING].list.i, np.int32).reshape(-1, 2)
    constant = graph.node.add(name=f"{node.name}/paddings", op="Const")
    constant.attr["dtype"].type = tf.int32.as_datatype_enum
    constant.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(paddings))
    return str(constant.name)


def _pad_before(graph: Any, node: Any, amounts: str, kind: int) -> None:
    """Put zeros before a convolution that adds them by itself: the shapes that TensorFlow infers leave them out.

    amounts: what gives the number of them, integers of that kind.
    """
    padded = graph.node.add(name=f"{node.name}/padded", op="Pad", input=[node.input[0], amounts])
    padded.attr["T"].type = node.attr["T"].type
    padded.attr["Tpaddings"].type = kind
    node.input[0] = padded.name


def _bias_apart(graph: Any, node: Any) -> None:
    """Make two nodes of one that makes the gradients of a kernel and of a bias, and hand both on.

    TensorFlow infers as many numbers of the bias as the image has channels.
    """
    kernel = graph.node.add()
    kernel.CopyFrom(node)
    kernel.name, kernel.op = f"{node.name}/kernel", node.op.removesuffix("WithBias")
    bias = graph.node.add(name=f"{node.name}/bias", op="BiasAddGrad", input=_data(node)[2:])
    for name in ("T", "data_format"):
        bias.attr[name].CopyFrom(node.attr[name])
    node.op = "IdentityN"
    node.ClearField("attr")
    node.attr["T"].list.type.extend((kernel.attr["T"].type,) * 2)
    del node.input[:]
    node.input.extend((kernel.name, bias.name))


def _ways_back(graph: Any) -> Mapping[str, list[str]]:
    """The inputs of the merges at the heads of loops that come from the end of the body, by the merge's name."""
    ends = {node.name for node in graph.node if node.op in _BACK}
    heads = {node.name: [text for text in node.input if text in ends] for node in graph.node if node.op in _MERGES}
    return {name: inputs for name, inputs in heads.items() if inputs}


def _same(node: Any, kind: int, data: list[str]) -> None:
    """Make the node an identity, which unlike a merge hands on what is known of lists and variables too."""
    node.op = "Identity"
    node.ClearField("attr")
    node.attr["T"].type = kind
    del node.input[:]
    node.input.extend(data[:1])


def _kind(node: Any) -> int:
    if node.op == "LoopCond":
        return int(tf.bool.as_datatype_enum)
    return int(node.attr["tensor_type" if node.op in _RECEIVES else "T"].type)


def _unsure(graph: Any, name: str, kind: int, shape: tf.TensorShape) -> str:
    node = graph.node.add(name=f"{name}/unsure", op="Placeholder")
    node.attr["dtype"].type = kind
    node.attr["shape"].shape.CopyFrom(shape.as_proto())
    return str(node.name)


def _changed(graph: Any, imported: tf.Graph) -> dict[str, tf.TensorShape]:
    """The heads of loops whose ways back bring another shape than was taken for them, with what all have in common."""
    changes = {}
    for name, inputs in _ways_back(graph).items():
        assumed = imported.get_operation_by_name(name).outputs[0].shape
        common = assumed
        for text in inputs:
            shape = imported.get_operation_by_name(text).outputs[0].shape
            common = common.most_specific_common_supertype([shape]) or tf.TensorShape(None)
        if str(common) != str(assumed):
            changes[name] = common
    return changes


def _tensor(output: Any) -> Tensor:
    if output.dtype == tf.resource:
        data = handle_data_util.get_resource_handle_data(output)
        if not data.is_set or not data.shape_and_type:
            return Tensor(None, None, handle=True)
        handle = data.shape_and_type[0]
        return Tensor(
            _dtype(tf.as_dtype(handle.dtype)) if handle.dtype else None, _shape(tf.TensorShape(handle.shape)), True
        )
    return Tensor(_dtype(output.dtype), _shape(output.shape))


def _dtype(dtype: tf.DType) -> str | None:
    type_and_size = DTYPES.get(dtype.base_dtype.name)
    return None if type_and_size is None else type_and_size[0]


def _shape(shape: tf.TensorShape) -> tuple[int | None, ...] | None:
    return None if shape.rank is None else tuple(shape.as_list())
