"""The graphs of a step in TensorFlow's graph mode, collected while its functions are traced, as our own nodes.

TensorFlow keeps three graphs of every function that it makes ready to run: before grappler, after it, and cut into
pieces for the devices, in which oneDNN's kernels have replaced some ops. The last is what the executor runs and what a
trace names. None of them holds shapes: they are inferred by importing the graph again (`shapes`), save those of what
Python returns where a graph calls it (`callbacks`) and those that depend on numbers (`run_shapes`), which are seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.eager import context
from tensorflow.python.framework import function_def_to_graph, op_def_registry

from roofline.errors import reason
from roofline.tensorflow import callbacks
from roofline.tensorflow.graph.bytes import moves_nothing
from roofline.tensorflow.graph.graph import DTYPES, Function, Graph, Graphs, Node, Seen, Source, Tensor
from roofline.tensorflow.graph.neighbours import completed
from roofline.tensorflow.graph.tables import CALLS
from roofline.tensorflow.run_shapes import of_nodes, of_unknown
from roofline.tensorflow.scopes import canonical
from roofline.tensorflow.shapes import ERRORS, Outputs, inferred
from roofline.units import cut

#: A call's function attributes, and what inlining calls the part that each becomes.
_PARTS = {"f": "", "cond": "cond/_0/", "body": "body/_0/", "then_branch": "then/_0/", "else_branch": "else/_0/"}
#: From our names of element types to TensorFlow's.
_TENSORFLOW = {ours: theirs for theirs, (ours, _) in reversed(DTYPES.items())}
#: Tensors in attributes that are kept: such as tell how an image is padded.
_NUMBERS = tuple(
    number_type.as_datatype_enum
    for number_type in (tf.int32, tf.int64, tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.bool)
)
_SMALL = 16
#: The op that makes a tensor of a number of Python's, outside of every function.
_CONSTANT = "_EagerConst"
#: Nodes of a shown graph that its function does not have: what goes in and comes out.
ARGUMENTS = ("_Arg", "_DeviceArg", "_Retval", "_DeviceRetval")
#: Calls in calls beyond this depth are damage.
_DEEPEST = 32


def collect(run: Callable[[], object]) -> Graphs:
    """Run `run` and return the graphs of its functions (`collected`)."""
    return collected(run).graphs


@dataclass(frozen=True, slots=True)
class Collected:
    """Hold what a run showed: a RunMetadata, and the graphs in it."""

    metadata: Any
    graphs: Graphs

    @property
    def found(self) -> bool:
        """Tell whether there were functions that compute, read or not."""
        return bool(self.graphs.functions or self.graphs.warnings)

    def with_shapes(self, seen: Seen) -> Graphs:
        """Read the graphs again with shapes that a run told, by events; those that lack none as they are."""
        if self.graphs.shapes_known:
            return replace(self.graphs, seen=seen)
        return replace(read(self.metadata, of_unknown(of_nodes(seen), self.graphs)), seen=seen)


def collected(run: Callable[[], object]) -> Collected:
    """Run `run` and return the graphs of the functions that it made ready.

    TensorFlow shows the graph of a function when it makes it ready, which is in its first call. It is made to do so
    again where this process measured a step before, which may have failed, and, in a second run, where no graph is
    seen, as of functions that were called before. A step without a function has none.
    """
    eager_context = context.context()
    eager_context.ensure_initialized()
    if _MEASURED:
        eager_context.clear_kernel_cache()
    _MEASURED.append(True)
    shown = _shown(run)
    return shown if shown.found else _shown_again(run)


def collected_anew(run: Callable[[], object]) -> Collected | None:
    """Run `run`; where it calls functions that were not called before, return the graphs of all that it calls.

    Such as are traced again for other sizes. It is run a second time then, and may call yet others.
    """
    return _shown_again(run) if _shown(run).found else None


def _shown_again(run: Callable[[], object]) -> Collected:
    """Run `run` with nothing that is ready, so that TensorFlow shows the graphs of all functions."""
    context.context().clear_kernel_cache()
    return _shown(run)


def _shown(run: Callable[[], object]) -> Collected:
    metadata = _metadata(run)
    return Collected(metadata, read(metadata))


#: Whether this process measured a step: not empty. What it called is ready to run, and shows no graph by itself.
_MEASURED: list[bool] = []


def _metadata(run: Callable[[], object]) -> Any:
    eager_context = context.context()
    eager_context.enable_graph_collection()
    try:
        with callbacks.watching() as returned:
            run()
        metadata = eager_context.export_run_metadata()
    finally:
        eager_context.disable_graph_collection()
    for function_graphs in metadata.function_graphs:
        for graph in (
            function_graphs.pre_optimization_graph,
            function_graphs.post_optimization_graph,
            *function_graphs.partition_graphs,
        ):
            _leave_out_constants(graph)
            callbacks.tell(graph, returned)
    return metadata


def _leave_out_constants(graph: Any) -> None:
    """Take out of a function's graph the constants that Python made while it ran, as where it calls Python back.

    Each is recorded as an op of its own with an argument and a result, which no other node of the graph has.
    """
    constants = {node.name for node in graph.node if node.op == _CONSTANT}
    if constants:
        arguments = {text for node in graph.node if node.op == _CONSTANT for text in node.input}
        others_kept = [
            node for node in graph.node if node.name not in constants | arguments and constants.isdisjoint(node.input)
        ]
        del graph.node[:]
        graph.node.extend(others_kept)


def read(metadata: Any, run_shapes: Seen = MappingProxyType({})) -> Graphs:
    """The functions in a RunMetadata, without those that compute nothing (a constant made, a variable set).

    run_shapes: shapes that a run showed, by nodes (`run_shapes.of_nodes`).
    """
    functions: list[Function] = []
    warnings = []
    for number, function_graphs in enumerate(metadata.function_graphs):
        try:
            functions += [function for function in _functions(function_graphs, run_shapes) if _computes(function.after)]
        except ERRORS as error:
            why = cut(reason(error), 160)
            warnings.append(f"The graph of function {number} could not be read, so its ops have no work: {why}")
    return Graphs(tuple(functions), tuple(warnings))


def _computes(graph: Graph) -> bool:
    return any(not moves_nothing(node) for node in graph)


def _functions(function_graphs: Any, run_shapes: Seen) -> Iterator[Function]:
    """A function, and those it calls that were not inlined: their nodes run under their own names.

    An op run eagerly is a function of one node in TensorFlow's eyes; it leaves no events of nodes.
    """
    if is_eager(function_graphs.pre_optimization_graph):
        return
    joined = _joined(function_graphs.partition_graphs)
    shapes = inferred(joined, run_shapes)
    after = Graph(completed(_nodes(joined, shapes)))
    calls = [node for node in joined.node if node.op in CALLS]
    arguments_known = {
        node.attr["index"].i: node.attr for node in function_graphs.post_optimization_graph.node if node.op == "_Arg"
    }
    staying_calls = frozenset(canonical(call.name) for call in calls)
    yield Function(
        Graph(completed(_expanded(function_graphs.pre_optimization_graph, arguments_known, staying_calls))), after
    )
    hidden = {canonical(call.name) for call in calls if _hidden(call, joined)}
    asked = _with_arguments(function_graphs.pre_optimization_graph, arguments_known)
    asked_shapes = inferred(asked, run_shapes) if hidden else {}
    shown = [(call, joined, shapes) for call in calls if canonical(call.name) not in hidden]
    shown += [(node, asked, asked_shapes) for node in asked.node if node.op in CALLS and canonical(node.name) in hidden]
    for call, around, shapes_around in shown:
        if not _is_compiled(call, around):
            for _, body, arguments in _bodies(call, around, shapes_around):
                yield from _called(body, arguments, run_shapes)


def _called(body: Any, arguments_known: Mapping[int, Any], run_shapes: Seen, depth: int = 0) -> Iterator[Function]:
    """Yield a function that runs as it is, and those that a node in it calls by its type, as in TensorFlow 1.

    The nodes of the latter run under their own names, too.
    """
    graph = Graph(completed(_expanded(body, arguments_known, frozenset(), run_shapes)))
    yield Function(graph, graph)
    library = {function.signature.name for function in body.library.function}
    if depth < _DEEPEST and any(node.op in library for node in body.node):
        completed_body = _with_arguments(body, arguments_known)
        shapes = inferred(completed_body, run_shapes)
        for node in completed_body.node:
            if node.op in library:
                for _, inner, arguments in _bodies(node, completed_body, shapes):
                    yield from _called(inner, arguments, run_shapes, depth + 1)


def _hidden(call: Any, joined: Any) -> bool:
    """Tell whether a function that a node calls is not shown.

    That is what grappler makes of one for one call of it, as of those that Keras 2 has for each device. Arguments and
    results that nobody needs are left out of it.
    """
    shown = {function.signature.name for function in joined.library.function}
    names = [value.func.name for value in call.attr.values() if value.WhichOneof("value") == "func"]
    return not shown.issuperset(names)


def is_eager(graph: Any) -> bool:
    """Tell an op of arguments whose shapes nobody knows, or several of these recorded as one, names repeated."""
    inner = [node for node in graph.node if node.op not in ARGUMENTS]
    named = any("_user_specified_name" in node.attr for node in graph.node if node.op == "_Arg")
    return len({node.name for node in graph.node}) < len(graph.node) or (len(inner) <= 1 and not named)


def _joined(partitions: Sequence[Any]) -> tf.compat.v1.GraphDef:
    """The pieces for all devices as one graph, in which what is received is the output of what was sent."""
    joined = tf.compat.v1.GraphDef()
    sent = {}
    names: set[str] = set()
    for piece in partitions:
        joined.node.extend(node for node in piece.node if node.name not in names)
        names.update(node.name for node in piece.node)
        joined.library.function.extend(piece.library.function)
        joined.versions.CopyFrom(piece.versions)
        senders = (node for node in piece.node if node.op in ("_Send", "_HostSend"))
        sent.update({node.attr["tensor_name"].s: node.input[0] for node in senders})
    for node in joined.node:
        if node.op in ("_Recv", "_HostRecv") and node.attr["tensor_name"].s in sent:
            node.input.append(sent[node.attr["tensor_name"].s])
    return joined


# ---------------------------------------------------------------------------------------------- nodes


def _nodes(graph: Any, shapes: Mapping[str, Outputs], prefix: str = "") -> Iterator[Node]:
    for node in graph.node:
        inputs = tuple(_source(text) for text in node.input if not text.startswith("^"))
        yield Node(
            name=prefix + node.name,
            op=node.op,
            inputs=tuple((prefix + name, place) for name, place in inputs),
            in_types=tuple(_at(shapes, name, place) for name, place in inputs),
            outputs=shapes.get(node.name, ()),
            attrs={name: plain for name, value in node.attr.items() if (plain := _plain(value)) is not None},
            device=node.device,
        )


def _source(text: str) -> Source:
    """`name:1` is the second output of a node, `name` its first."""
    name, _, place = text.partition(":")
    return name, int(place or 0)


def _at(shapes: Mapping[str, Outputs], name: str, place: int) -> Tensor:
    outputs = shapes.get(name, ())
    return outputs[place] if place < len(outputs) else Tensor(None, None)


def _plain(value: Any) -> Any:
    """An attribute as a plain value, a small tensor of numbers flat, a large one of equal numbers as one of them.

    None for any other large one, and for a type or a shape, which the edges tell.
    """
    field = value.WhichOneof("value")
    if field in ("i", "f", "b"):
        return getattr(value, field)
    if field == "s":
        return value.s.decode("utf-8", "replace")
    if field == "func":
        return value.func.name
    if field == "list":
        items = value.list
        texts = tuple(text.decode("utf-8", "replace") for text in items.s)
        names = tuple(function.name for function in items.func)
        return texts or names or tuple(items.i) or tuple(items.f) or tuple(items.b)
    if field == "tensor" and value.tensor.dtype in _NUMBERS:
        shape = tf.TensorShape(value.tensor.tensor_shape)
        if (shape.num_elements() or 0) <= _SMALL:
            return tuple(tf.make_ndarray(value.tensor).ravel().tolist())
        if len(value.tensor.float_val) == 1:
            return tuple(value.tensor.float_val)
    return None


# ---------------------------------------------------------------------------------------------- calls


def _expanded(
    graph: Any,
    arguments_known: Mapping[int, Any],
    staying_calls: frozenset[str],
    run_shapes: Seen = MappingProxyType({}),
    prefix: str = "",
    depth: int = 0,
) -> Iterator[Node]:
    """The nodes of a graph and of all functions it calls, named as inlining names them.

    arguments_known: the attributes of an _Arg node by its index. staying_calls: calls that are not inlined.
    """
    completed_graph = _with_arguments(graph, arguments_known)
    shapes = inferred(completed_graph, run_shapes)
    yield from _nodes(completed_graph, shapes, prefix)
    for node in completed_graph.node:
        name = prefix + node.name
        if node.op in CALLS and depth < _DEEPEST and canonical(name) not in staying_calls:
            for part, body, arguments in _bodies(node, completed_graph, shapes):
                yield from _expanded(body, arguments, staying_calls, run_shapes, f"{name}/{part}", depth + 1)


def _with_arguments(graph: Any, arguments_known: Mapping[int, Any]) -> Any:
    """Return the graph without dead code, its arguments with what is known of them."""
    live_graph = _live(graph)
    for node in live_graph.node:
        if node.op == "_Arg":
            for name in ("_handle_shapes", "_handle_dtypes", "_output_shapes"):
                if name in arguments_known.get(node.attr["index"].i, ()):
                    node.attr[name].CopyFrom(arguments_known[node.attr["index"].i][name])
    return live_graph


def _live(graph: Any) -> Any:
    """The graph without what neither reaches a result nor has an effect: the program did not ask for that.

    Gradients that nobody wanted, such as that of the first layer's input, are in the graph before grappler. Those of a
    custom gradient go through one IdentityN, wanted or not: what takes one of them takes what makes it.
    """
    graph = _without_identities(graph)
    nodes = {node.name: node for node in graph.node}
    waiting = [node.name for node in graph.node if node.op in ("_Retval", "_Send") or _has_effect(node.op)]
    live = set(waiting)
    while waiting:
        for text in nodes[waiting.pop()].input:
            name = text.lstrip("^").partition(":")[0]
            if name in nodes and name not in live:
                live.add(name)
                waiting.append(name)
    result = tf.compat.v1.GraphDef(versions=graph.versions, library=graph.library)
    result.node.extend(node for node in graph.node if node.name in live or node.op == "_Arg")
    return result


def _without_identities(graph: Any) -> Any:
    """The graph in which nothing takes its data from an IdentityN."""
    identities = {
        node.name: [text for text in node.input if text[:1] != "^"] for node in graph.node if node.op == "IdentityN"
    }
    if not identities:
        return graph
    result = tf.compat.v1.GraphDef()
    result.CopyFrom(graph)
    for node in result.node:
        for number, text in enumerate(node.input):
            for _ in range(_DEEPEST):
                name, place = _source(text)
                if text.startswith("^") or name not in identities:
                    break
                text = identities[name][place]
            node.input[number] = text
    return result


def _has_effect(op: str) -> bool:
    definition = op_def_registry.get(op)
    return definition is None or definition.is_stateful


def _is_compiled(call: Any, graph: Any) -> bool:
    """Tell whether XLA compiles what is called: its nodes never run."""
    names = {value.func.name for value in call.attr.values() if value.WhichOneof("value") == "func"}
    called = [function for function in graph.library.function if function.signature.name in names]
    return any(attr["_XlaMustCompile"].b for attr in (call.attr, *(function.attr for function in called)))


def _bodies(call: Any, graph: Any, shapes: Mapping[str, Outputs]) -> Iterator[tuple[str, Any, Mapping[int, Any]]]:
    """The functions that a node calls: (what inlining puts before their names, the graph, its arguments)."""
    library = {library_function.signature.name: library_function for library_function in graph.library.function}
    sources = [_source(text) for text in call.input if not text.startswith("^")]
    tensors = [_at(shapes, name, place) for name, place in sources]
    if call.op in ("If", "StatelessIf", "Case", "StatelessCase"):
        tensors = tensors[1:]  # what is chosen by
    if call.op in ("While", "StatelessWhile"):
        # A loop variable may change its shape from trip to trip; the loop's results have what all trips share.
        tensors = [a if a.handle else b for a, b in zip(tensors, shapes.get(call.name, ()), strict=False)]
    if call.op in library:
        yield ("", *_as_graph(library[call.op], graph, tensors))
    for attribute in CALLS.get(call.op, ()):
        value = call.attr[attribute]
        many = value.list.func if value.WhichOneof("value") == "list" else [value.func]
        for number, function in enumerate(many):
            if function.name in library:
                part = f"branch{number}/_0/" if len(many) > 1 else _PARTS.get(attribute, f"{attribute}/_0/")
                yield (part, *_as_graph(library[function.name], graph, tensors))


def _as_graph(function: Any, graph: Any, tensors: Sequence[Tensor]) -> tuple[Any, Mapping[int, Any]]:
    """A function of a library as a graph of its own, its arguments as _Arg nodes."""
    holder = tf.Graph()
    with holder.as_default():
        stub = tf.compat.v1.GraphDef(versions=graph.versions, library=graph.library)
        tf.graph_util.import_graph_def(stub, name="")
        body, flat = function_def_to_graph.function_def_to_graph_def(function)
    body.library.CopyFrom(graph.library)
    index = {argument.name: number for number, argument in enumerate(function.signature.input_arg)}
    for number, result in enumerate(function.signature.output_arg):
        result_node = body.node.add(
            name=f"roofline/result_{number}", op="_Retval", input=[flat[function.ret[result.name]]]
        )
        result_node.attr["T"].type = result.type
        result_node.attr["index"].i = number
    arguments_known: dict[int, Any] = {}
    for node in body.node:
        if node.op != "Placeholder" or node.name not in index:
            continue
        number, kind = index[node.name], node.attr["dtype"].type
        node.op = "_Arg"
        node.ClearField("attr")
        node.attr["T"].type = kind
        node.attr["index"].i = number
        if number < len(tensors):
            arguments_known[number] = _argument(tensors[number])
    return body, arguments_known


def _argument(tensor: Tensor) -> Mapping[str, Any]:
    """Return what an _Arg node says of its tensor, as TensorFlow writes it."""
    attrs: dict[str, Any] = {}
    shape = tf.TensorShape(tensor.shape).as_proto()
    if tensor.handle:
        attrs["_handle_shapes"] = attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(shape=[shape]))
        kind = tf.as_dtype(_TENSORFLOW[tensor.dtype]).as_datatype_enum if tensor.dtype in _TENSORFLOW else 0
        attrs["_handle_dtypes"] = attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(type=[kind]))
    elif tensor.shape is not None:
        attrs["_output_shapes"] = attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(shape=[shape]))
    return attrs
