"""The outermost call of a module of PyTorch: the step of a program that only infers, and what others contain.

`Module.__call__` is replaced, where PyTorch's own hooks of all modules would slow every call down, warn in compiled
models and be seen by the program.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from roofline.running.boundaries._compiled import leave_uncompiled
from roofline.running.boundaries._outermost import OUTERMOST
from roofline.running.boundary import Boundary, Watcher


def watch(watcher: Watcher) -> None:
    """Have the outermost calls of modules report."""
    from torch.nn import Module

    original: Any = Module.__call__
    call = _reporting(original, watcher)

    def remove() -> None:
        # From its import on, Dynamo knows this function as that of modules, and any other one as the user's own.
        if "torch._dynamo" not in sys.modules:
            setattr(Module, "__call__", original)  # noqa: B010

    setattr(Module, "__call__", call)  # noqa: B010
    watcher.remove_by(remove)
    watcher.when_imported("torch._dynamo.eval_frame", partial(leave_uncompiled, call))


def _reporting(original: Callable[..., Any], watcher: Watcher) -> Callable[..., Any]:
    import torch

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if OUTERMOST.inside or not watcher.wanted:
            return original(self, *args, **kwargs)
        OUTERMOST.inside = True
        try:
            result = original(self, *args, **kwargs)
        finally:
            OUTERMOST.inside = False
        # The module that torch.compile puts around another one has that one's name.
        kind = type(self._modules.get("_orig_mod", self))
        label = _label(kind.__name__, self.training, torch.is_grad_enabled())
        watcher.ended(id(self), label, model=self, detail=_shapes(args, kwargs))
        return result

    return call


@cache
def _label(name: str, training: bool, with_gradients: bool) -> str:
    notes = ([] if training else ["eval"]) + ([] if with_gradients else ["no gradients"])
    return f"{name} ({', '.join(notes)})" if notes else name


def _shapes(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[int, ...], ...]:
    """List the shapes of the tensors among arguments."""
    values = (*args, *kwargs.values()) if kwargs else args
    return tuple([tuple(value.shape) for value in values if hasattr(value, "shape")])


BOUNDARY = Boundary(name="call of {label}", module="torch", watch=watch, backend="torch", mode="infer")
