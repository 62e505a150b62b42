"""Share between boundaries which compiled function runs outermost, and which of them take gradients.

A function is traced in its first call, and what it calls meanwhile tells what it is: one that takes gradients trains.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, cast

from roofline.running.boundaries._outermost import OUTERMOST
from roofline.running.boundaries._shapes import shapes_of
from roofline.running.boundary import Watcher

#: Containers of arguments that are looked into for shapes: deeper trees are a model's state, and its shapes stay.
_LARGEST = 16
#: Functions that one is wrapped around are followed so far: an object may say that it wraps itself.
_DEEPEST = 32


class CompiledFunctions:
    """Report the outermost calls of a framework's compiled functions: those that train to one watcher, else another."""

    def __init__(self) -> None:
        self.training: Watcher | None = None
        self.inferring: Watcher | None = None
        self._train: set[Hashable] = set()

    def forget(self) -> None:
        """Report to nobody any more."""
        self.training = self.inferring = None
        self._train.clear()

    def takes_gradients(self) -> None:
        """Note that the function that is being traced takes gradients."""
        function = OUTERMOST.own.function
        if function is not None:
            self._train.add(function)

    def call(
        self,
        source_of: Callable[[Watcher], Hashable],
        label: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Call a function, and report it if it is part of no other. source_of: tells it apart; label: its name."""
        watcher, outermost = self.inferring, OUTERMOST.own
        if outermost.inside or watcher is None or not watcher.wanted:
            return function(*args, **kwargs)
        try:
            source = source_of(watcher)
        except Exception:  # an attribute of an object of the program's that raises
            source = label
        outermost.inside, outermost.function = True, source
        try:
            result = function(*args, **kwargs)
        finally:
            outermost.inside, outermost.function = False, None
        if source in self._train and self.training is not None:
            watcher = self.training
        watcher.ended(source, f"{label}()", results=(result,), detail=_shapes((*args, *kwargs.values())))
        return result


def source_of(function: Any, watcher: Watcher) -> Hashable:
    """Return what tells a function of Python apart: its code, that of all it is wrapped around, and whose method it is.

    Functions that were made by the same lines share their code, and are one.
    """
    parts: list[Hashable] = []
    while function is not None and len(parts) < _DEEPEST:
        inner = getattr(function, "__wrapped__", None)
        inner = getattr(function, "func", None) if inner is None else inner  # of functools.partial
        owner: Any = getattr(function, "__self__", None)
        code: Hashable = getattr(function, "__code__", None)
        if code is None and not isinstance(function, partial) and not hasattr(function, "lower"):
            owner = function  # an object that can be called
        else:
            parts.append(code or cast("Hashable", type(function)))
        if type(owner).__name__ == "TfMethodTarget":  # what TensorFlow binds a method to instead of its object
            owner = owner.target
        if owner is not None:
            parts.append(watcher.source(owner, type))
        function = inner
    return tuple(parts)


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
