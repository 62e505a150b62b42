"""The update of a `torch.optim.Optimizer`, whoever calls it: the program, accelerate, Lightning, a GradScaler.

PyTorch wraps `step` of each class of optimizers when the first object of it is made; the wrapper here goes around that
one, since PyTorch's hooks of an optimizer run inside of its own annotation in a profile. An update that a GradScaler
leaves out, as its gradients are not finite, ends a step, too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial, wraps
from typing import Any

from roofline.running.boundaries._compiled import leave_uncompiled
from roofline.running.boundary import Boundary, Watcher
from roofline.running.identities import kind_of

#: What a step contains whose update a GradScaler leaves out.
SKIPPED = "an update skipped by GradScaler"


class _Updates(threading.local):
    """Report updates of a thread, the outermost of each: one inside is that of a base class, or of a wrapped one."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self.count, self.running = 0, False

    def ended(self, optimizer: Any) -> None:
        """Report that an update has ended, or was left out."""
        name = type(optimizer).__name__
        self._watcher.ended(self._watcher.source(optimizer, partial(kind_of, optimizer, name, _updated)), name)


def _updated(optimizer: Any) -> Iterator[int]:
    """Yield how many numbers each weight has that an optimizer updates."""
    return (weight.numel() for group in optimizer.param_groups for weight in group["params"])


def watch(watcher: Watcher) -> None:
    """Wrap `step` of each class of optimizers, and of GradScaler."""
    from torch.amp.grad_scaler import GradScaler
    from torch.optim import Optimizer

    updates = _Updates(watcher)

    def hooking(original: Callable[..., Any]) -> Callable[..., Any]:
        def profile_hook_step(step: Callable[..., Any]) -> Callable[..., Any]:
            return reporting(original(step))

        return profile_hook_step

    def reporting(step: Callable[..., Any]) -> Callable[..., Any]:
        wrapper = _reporting(step, updates)
        watcher.when_imported("torch._dynamo.eval_frame", partial(leave_uncompiled, wrapper))
        return wrapper

    def expecting(original: Callable[..., Any]) -> Callable[..., Any]:
        def patch_step_function(self: Any) -> None:
            watcher.expect()
            original(self)

        return patch_step_function

    def scaling(original: Callable[..., Any]) -> Callable[..., Any]:
        def step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            before = updates.count
            result = original(self, optimizer, *args, **kwargs)
            if updates.count == before:
                watcher.met(SKIPPED)
                updates.ended(optimizer)
            return result

        return step

    watcher.wrap(Optimizer, "profile_hook_step", hooking)
    watcher.wrap(Optimizer, "_patch_step_function", expecting)
    watcher.wrap(GradScaler, "step", scaling)
    for kind in _wrapped_classes(Optimizer):
        watcher.wrap(kind, "step", reporting)


def _wrapped_classes(kind: type[Any]) -> list[type[Any]]:
    """List the classes of optimizers of which objects were made before."""
    below: list[type[Any]] = []
    for subclass in kind.__subclasses__():
        below += _wrapped_classes(subclass)
    return [*([kind] if getattr(vars(kind).get("step"), "hooked", False) else []), *below]


def _reporting(step: Callable[..., Any], updates: _Updates) -> Callable[..., Any]:
    import torch

    @wraps(step)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling() or updates.running:
            return step(*args, **kwargs)
        updates.running = True
        try:
            result = step(*args, **kwargs)
        finally:
            updates.running = False
        updates.count += 1
        updates.ended(args[0])
        return result

    return wrapper


BOUNDARY = Boundary(name="optimizer.step()", module="torch", watch=watch, backend="torch", mode="train")
