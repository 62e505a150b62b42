"""Shapes that only the run of a TensorFlow step knows: of what `tf.where`, `tf.unique` and lookups of sparse ids make.

At its most verbose level the profiler writes the shapes of its inputs beside each node that runs (`TraceString` in
tensorflow/core/framework/op_kernel.cc). What a node makes has the shapes that the nodes behind it get. TensorFlow 2.21
takes no notice of the option `host_tracer_level`, so the level is set where the profiler keeps it.
"""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce

from roofline.tensorflow.graph.graph import Graphs, Node, Seen, Shape
from roofline.traces.xplane.proto import XEvent, XLine, XPlane, XSpace
from roofline.traces.xplane.stats import values

#: `tsl::profiler::internal::g_trace_level`, and its value at which shapes are written (tsl/profiler/lib/traceme.h).
_LEVEL, _VERBOSE = "_ZN3tsl8profiler8internal13g_trace_levelE", 3
#: "float[2,3]" of "(float[2,3];;int32[])", in which what is a variable, or is not there, is empty.
_SHAPE = re.compile(r"\w+\[([\d,]*)\]")


@contextmanager
def verbose(library: ctypes.CDLL | None) -> Iterator[None]:
    """While active, nodes tell a profiler that is on the shapes of what they get; without a library they do not."""
    try:
        level = ctypes.c_int.in_dll(library, _LEVEL) if library is not None else ctypes.c_int()
    except ValueError:
        level = ctypes.c_int()
    before, level.value = level.value, _VERBOSE
    try:
        yield
    finally:
        level.value = before


def read(data: bytes) -> Seen:
    """Read the shapes in an XSpace, by events: the name of a node and its type."""
    shapes_of: dict[str, Counter[tuple[Shape, ...]]] = {}
    for plane in map(XPlane.FromString, XSpace.FromString(data).planes):
        events = {entry.key: entry.value.name for entry in plane.event_metadata}
        stats = {entry.key: entry.value.name for entry in plane.stat_metadata}
        if b"shape" not in stats.values():
            continue
        for line in map(XLine.FromString, plane.lines):
            for event in map(XEvent.FromString, line.events):
                text = values(event.stats, stats).get(b"shape")
                if isinstance(text, bytes):
                    name = events.get(event.metadata_id, b"").decode("utf-8", "replace")
                    shapes_of.setdefault(name, Counter())[_parsed(text.decode())] += 1
    return shapes_of


def of_nodes(events: Seen) -> Seen:
    """Return what was seen by the names of nodes."""
    shapes_of: dict[str, Counter[tuple[Shape, ...]]] = {}
    for event, shapes in events.items():
        shapes_of.setdefault(event.rpartition(":")[0], Counter()).update(shapes)
    return shapes_of


def fitting(run_shapes: Seen, name: str, inputs: Sequence[Shape]) -> tuple[Shape, ...]:
    """Return what the inputs of a node were seen to be, as far as that fits what is known of them; () where it was not.

    A dimension that differs from execution to execution is unknown.
    """
    matching = [
        shapes for shapes in run_shapes.get(name, ()) if len(shapes) == len(inputs) and all(map(_fits, inputs, shapes))
    ]
    return reduce(_common, matching) if matching else ()


def gets(node: Node, shapes: Sequence[Shape]) -> bool:
    """Tell whether a node may have got inputs of these shapes."""
    return len(shapes) == len(node.in_types) and all(
        _fits(tensor.shape, shape) for tensor, shape in zip(node.in_types, shapes, strict=True)
    )


def of_unknown(run_shapes: Seen, graphs: Graphs) -> Seen:
    """Return what was seen without what nodes got whose shapes are known, where others of their names got more."""
    known: dict[str, list[Node]] = {}
    for node in (node for function in graphs.functions for node in function.after):
        if node.name in run_shapes and all(tensor.elements is not None for tensor in node.in_types):
            known.setdefault(node.name, []).append(node)
    rest = {
        name: {
            shapes: times
            for shapes, times in run_shapes[name].items()
            if not any(gets(node, shapes) for node in known_nodes)
        }
        for name, known_nodes in known.items()
    }
    return {**run_shapes, **{name: shapes for name, shapes in rest.items() if shapes}}


def _fits(expected: Shape, shape: Shape) -> bool:
    if expected is None or shape is None:
        return True
    return len(expected) == len(shape) and all(
        None in pair or pair[0] == pair[1] for pair in zip(expected, shape, strict=True)
    )


def _parsed(text: str) -> tuple[Shape, ...]:
    shapes = (_SHAPE.fullmatch(text) for text in text.removeprefix("(").removesuffix(")").split(";"))
    return tuple(None if match is None else tuple(map(int, filter(None, match[1].split(",")))) for match in shapes)


def _common(before: tuple[Shape, ...], now: tuple[Shape, ...]) -> tuple[Shape, ...]:
    return tuple(
        None
        if a is None or b is None or len(a) != len(b)
        else tuple(first if first == second else None for first, second in zip(a, b, strict=True))
        for a, b in zip(before, now, strict=False)
    )
