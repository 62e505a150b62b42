"""Shapes that only the run of a TensorFlow step knows: of what `tf.where`, `tf.unique` and lookups of sparse ids make.

At its most verbose level the profiler writes the shapes of its inputs beside each node that runs (`TraceString` in
tensorflow/core/framework/op_kernel.cc). What a node makes has the shapes that the nodes behind it get. TensorFlow 2.21
takes no notice of the option `host_tracer_level`, so the level is set where the profiler keeps it.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce

from roofline.traces.xplane.proto import XEvent, XLine, XPlane, XSpace
from roofline.traces.xplane.stats import values

#: `tsl::profiler::internal::g_trace_level`, and its value at which shapes are written (tsl/profiler/lib/traceme.h).
_LEVEL, _VERBOSE = "_ZN3tsl8profiler8internal13g_trace_levelE", 3
#: "float[2,3]" of "(float[2,3];;int32[])", in which what is a variable, or is not there, is empty.
_SHAPE = re.compile(r"\w+\[([\d,]*)\]")

#: None: unknown, as where two executions differ in it.
Shape = tuple[int | None, ...] | None
#: By the name of a node the shapes of its inputs, each that was seen: nodes of several functions may have one name.
Seen = Mapping[str, frozenset[tuple[Shape, ...]]]


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
    """Read the shapes in an XSpace."""
    shapes_of: dict[str, set[tuple[Shape, ...]]] = {}
    for plane in map(XPlane.FromString, XSpace.FromString(data).planes):
        events = {entry.key: entry.value.name for entry in plane.event_metadata}
        stats = {entry.key: entry.value.name for entry in plane.stat_metadata}
        if b"shape" not in stats.values():
            continue
        for line in map(XLine.FromString, plane.lines):
            for event in map(XEvent.FromString, line.events):
                text = values(event.stats, stats).get(b"shape")
                if isinstance(text, bytes):
                    name = events.get(event.metadata_id, b"").rpartition(b":")[0].decode("utf-8", "replace")
                    shapes_of.setdefault(name, set()).add(_parsed(text.decode()))
    return {name: frozenset(shapes) for name, shapes in shapes_of.items()}


def fitting(run_shapes: Seen, name: str, inputs: Sequence[Shape]) -> tuple[Shape, ...]:
    """Return what the inputs of a node were seen to be, as far as that fits what is known of them; () where it was not.

    A dimension that differs from execution to execution is unknown.
    """
    matching = [
        shapes for shapes in run_shapes.get(name, ()) if len(shapes) == len(inputs) and all(map(_fits, inputs, shapes))
    ]
    return reduce(_common, matching) if matching else ()


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
