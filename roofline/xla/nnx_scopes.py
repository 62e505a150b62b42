"""Scopes of flax's nnx modules, which name nothing in a program by themselves, as linen's and Keras's layers do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import wraps
from typing import Any

import jax


@contextmanager
def named_layers() -> Iterator[None]:
    """While active, what a call of an nnx module traces is in a scope of its name in the module that calls it.

    The outermost module adds no scope, as in PyTorch. An update of an nnx.Optimizer is in the scope "optimizer".
    Nothing where nnx was not imported.
    """
    nnx = sys.modules.get("flax.nnx")
    if nnx is None:
        yield
        return
    callers: list[Any] = []
    before = [(owner, owner.__dict__["__call__"]) for owner in _classes(nnx.Module) if "__call__" in owner.__dict__]
    update = nnx.Optimizer.update
    try:
        for owner, call in before:
            owner.__call__ = _named(call, callers, nnx.iter_modules)
        nnx.Optimizer.update = jax.named_scope("optimizer")(update)
        yield
    finally:
        for owner, call in before:
            owner.__call__ = call
        nnx.Optimizer.update = update


def _classes(top: type) -> Iterator[Any]:
    """A class and all that inherit from it, each once."""
    waiting, visited = [top], set()
    while waiting:
        current = waiting.pop()
        if current not in visited:
            visited.add(current)
            waiting += current.__subclasses__()
            yield current


def _named(call: Callable[..., Any], callers: list[Any], modules: Callable[[Any], Any]) -> Callable[..., Any]:
    """`call` inside of its scope. callers: the modules being called, the innermost last; modules: of a module."""

    @wraps(call)
    def named(self: Any, *args: Any, **kwargs: Any) -> Any:
        name = ""
        if callers and callers[-1] is not self:  # a class that calls its parent's method is one module
            paths = (path for path, module in modules(callers[-1]) if module is self)
            # A module made on the fly is nobody's child: it goes by its class.
            name = ".".join(map(str, next(paths, ()))) or type(self).__name__
        callers.append(self)
        try:
            with jax.named_scope(name) if name else nullcontext():
                return call(self, *args, **kwargs)
        finally:
            callers.pop()

    return named
