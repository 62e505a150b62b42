"""Read the shapes of arguments, by which calls are told apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_are_ints = frozenset({int}).issuperset


def shapes_of(values: Iterable[Any]) -> tuple[tuple[Any, ...], ...]:
    """Return the shapes of the arrays among values; () of one that has none to tell, such as a nested tensor.

    An argument may be any object of the program, and its `shape` may raise: the program's call must not. A number that
    is none of Python's is None: to compare a symbolic one would bind it.
    """
    shapes = []
    for value in values:
        try:
            shape = getattr(value, "shape", None)
            if shape is not None:
                known = _are_ints(map(type, shape))
                shapes.append(tuple(shape if known else [number if type(number) is int else None for number in shape]))
        except Exception:
            shapes.append(())
    return tuple(shapes)


def of_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], ...]:
    """Return the shapes of the arrays among the arguments of a call."""
    return shapes_of((*args, *kwargs.values())) if kwargs else shapes_of(args)
