"""Objects that the program holds, found by their type: recorders look into some of them before a step."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import TypeVar

_Object = TypeVar("_Object")


def living(kind: type[_Object]) -> Iterator[_Object]:
    """List the objects of a type, and of those derived from it, that Python's collector tracks."""
    # By type: asking an object for its class may run somebody's code.
    return (instance for instance in gc.get_objects() if issubclass(type(instance), kind))
