"""Shapes of what Python returns to a TensorFlow graph that calls it back (`numpy_function`, `py_function`).

No graph holds them: such a node may return anything, and what the program says of it (`set_shape`) stays in Python. So
they are seen while the step runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.ops import script_ops

#: The nodes that call Python back (tensorflow/core/ops/script_ops.cc).
_CALLS_BACK = frozenset(("PyFunc", "PyFuncStateless", "EagerPyFunc"))

#: By the token of a callback the shapes of its results.
Returned = dict[str, tuple[tf.TensorShape, ...]]


@contextmanager
def watching() -> Iterator[Returned]:
    """Record what each Python function returns that a graph calls meanwhile, by its token; complete at the end.

    A dimension that differs from call to call is unknown.
    """
    returned: Returned = {}
    call: Callable[..., Any] = script_ops.FuncRegistry.__call__

    def watched(registry: Any, token: Any, device: Any, args: Any) -> Any:
        result = call(registry, token, device, args)
        name = token.decode() if isinstance(token, bytes) else token
        returned[name] = _both(returned.get(name), _shapes(result))
        return result

    script_ops.FuncRegistry.__call__ = watched
    try:
        yield returned
    finally:
        script_ops.FuncRegistry.__call__ = call


def tell(graph: Any, returned: Mapping[str, tuple[tf.TensorShape, ...]]) -> None:
    """Write into the nodes of a GraphDef, and into those of the functions that it calls, what they returned.

    TensorFlow takes the attribute for what it would infer where a graph is imported (graph_constructor.cc).
    """
    for nodes in (graph.node, *(function.node_def for function in graph.library.function)):
        for node in nodes:
            shapes = returned.get(node.attr["token"].s.decode()) if node.op in _CALLS_BACK else None
            if shapes is not None and len(shapes) == len(node.attr["Tout"].list.type):
                shape_list = attr_value_pb2.AttrValue.ListValue(shape=[shape.as_proto() for shape in shapes])
                node.attr["_output_shapes"].CopyFrom(attr_value_pb2.AttrValue(list=shape_list))


def _shapes(result: Any) -> tuple[tf.TensorShape, ...]:
    """Return the shapes of all results; numpy's, TensorFlow's, or none where it returns nothing."""
    results: Sequence[Any] = result if isinstance(result, (list, tuple)) else () if result is None else (result,)
    return tuple(tf.TensorShape(getattr(array, "shape", None)) for array in results)


def _both(before: tuple[tf.TensorShape, ...] | None, now: tuple[tf.TensorShape, ...]) -> tuple[tf.TensorShape, ...]:
    if before is None:
        return now
    pairs = zip(before, now, strict=False)
    return tuple(a.most_specific_common_supertype([b]) or tf.TensorShape(None) for a, b in pairs)
