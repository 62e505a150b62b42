"""Share between boundaries which compiled function runs outermost, and which of them take gradients.

A function is traced in its first call, and what it calls meanwhile tells what it is: one that takes gradients trains.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from roofline.running.boundaries._outermost import OUTERMOST
from roofline.running.boundaries._shapes import shapes_of
from roofline.running.boundary import Watcher

#: Containers of arguments that are looked into for shapes: deeper trees are a model's state, and its shapes stay.
_LARGEST = 16


class CompiledFunctions:
    """Report the outermost calls of a framework's compiled functions: those that train to one watcher, else another."""

    def __init__(self) -> None:
        self.training: Watcher | None = None
        self.inferring: Watcher | None = None
        self._train: set[Hashable] = set()

    def takes_gradients(self) -> None:
        """Note that the function that is being traced takes gradients."""
        if OUTERMOST.running is not None:
            self._train.add(OUTERMOST.running)

    def call(
        self, source: Hashable, label: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Call a function, and report it if it is part of no other. source: tells it apart; label: its name."""
        watcher = self.inferring
        if OUTERMOST.inside or watcher is None or not watcher.wanted:
            return function(*args, **kwargs)
        OUTERMOST.inside, OUTERMOST.running = True, source
        try:
            result = function(*args, **kwargs)
        finally:
            OUTERMOST.inside, OUTERMOST.running = False, None
        if source in self._train and self.training is not None:
            watcher = self.training
        watcher.ended(source, f"{label}()", results=(result,), detail=_shapes((*args, *kwargs.values())))
        return result


def source_of(function: Any) -> Hashable:
    """Return what tells a function of Python apart: its code, which it shares with those made by the same lines."""
    return getattr(function, "__code__", None) or id(function)


def name_of(function: Any) -> str:
    """Name a function of Python for people."""
    inner = getattr(function, "func", function)  # of functools.partial
    return str(getattr(inner, "__name__", None) or type(inner).__name__)


def _shapes(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """List the shapes of the arrays among arguments, and in small tuples, lists and dictionaries among them."""
    shapes: list[Any] = []
    for value in values:
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else (value,)
        if len(parts) <= _LARGEST:
            shapes += shapes_of(parts)
    return tuple(shapes)
