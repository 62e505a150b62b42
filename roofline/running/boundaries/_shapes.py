"""Read the shapes of arguments, by which calls are told apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from roofline.running.boundary import EMPTY

_are_ints = frozenset({int}).issuperset


def shapes_of(values: Iterable[Any], named: Mapping[str, Any] = EMPTY) -> tuple[tuple[Any, ...], ...]:
    """Return the shapes of the arrays among values and named ones; () of one that cannot tell it, as a nested tensor.

    An argument may be any object of the program, and its `shape` may raise: the program's call must not. A number that
    is none of Python's is None: to compare a symbolic one would bind it.
    """
    shapes = []
    for value in (*values, *named.values()) if named else values:
        try:
            shape = getattr(value, "shape", None)
            if shape is not None:
                known = _are_ints(map(type, shape))
                shapes.append(tuple(shape if known else [number if type(number) is int else None for number in shape]))
        except Exception:
            shapes.append(())
    return tuple(shapes)
