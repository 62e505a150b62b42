"""Read the shapes of arguments, by which calls are told apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from roofline.running.boundary import EMPTY


def shapes_of(values: Iterable[Any], named: Mapping[str, Any] = EMPTY) -> tuple[tuple[Any, ...], ...]:
    """Return the shapes of the arrays among values and named ones; () of one that cannot tell it, as a nested tensor.

    An argument may be any object of the program, and its `shape` may raise: the program's call must not. A number that
    is none of Python's is None: to compare a symbolic one would bind it.
    """
    shapes: list[tuple[Any, ...]] = []
    for value in (*values, *named.values()) if named else values:
        try:
            shape = getattr(value, "shape", None)
            if shape is not None:
                for number in shape:
                    if type(number) is not int:
                        shape = [number if type(number) is int else None for number in shape]
                        break
                shapes.append(tuple(shape))
        except Exception:
            shapes.append(())
    return tuple(shapes)
