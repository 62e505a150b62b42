"""Read the shapes of arguments, by which calls are told apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def shapes_of(values: Iterable[Any]) -> list[tuple[Any, ...]]:
    """List the shapes of the arrays among values; () of one that has none to tell, such as a nested tensor.

    An argument may be any object of the program, and its `shape` may raise: the program's call must not.
    """
    shapes = []
    for value in values:
        try:
            if hasattr(value, "shape"):
                shapes.append(tuple(value.shape))
        except Exception:
            shapes.append(())
    return shapes
