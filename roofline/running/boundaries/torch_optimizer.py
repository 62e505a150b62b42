"""The update of a `torch.optim.Optimizer`, whoever calls it: the program, accelerate, Lightning, a GradScaler.

PyTorch wraps `step` of each class of optimizers when the first object of it is made; the wrapper here goes around that
one, since PyTorch's hooks of an optimizer run inside of its own annotation in a profile. An update that a GradScaler
leaves out, as its gradients are not finite, ends a step, too.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import partial, wraps
from time import perf_counter
from typing import Any

from roofline.running.boundaries._compiled import leave_uncompiled
from roofline.running.boundaries._outermost import OfThread
from roofline.running.boundary import Boundary, Watcher
from roofline.running.identities import kind_of, nothing, reference

#: What a step contains whose update a GradScaler leaves out.
SKIPPED = "an update skipped by GradScaler"


@dataclass(slots=True)
class _Updates:
    """Count the outermost updates of a thread: one inside is that of a base class, or of a wrapped one."""

    count: int = 0
    running: bool = False


def _updated(optimizer: Any) -> Iterator[int]:
    """Yield how many numbers each weight has that an optimizer updates."""
    return (weight.numel() for group in optimizer.param_groups for weight in group["params"])


_kind = partial(kind_of, _updated)


def watch(watcher: Watcher) -> None:
    """Wrap `step` of each class of optimizers, and of GradScaler."""
    from torch.amp.grad_scaler import GradScaler
    from torch.optim import Optimizer

    of_thread = OfThread(_Updates)

    def hooking(original: Callable[..., Any]) -> Callable[..., Any]:
        def profile_hook_step(step: Callable[..., Any]) -> Callable[..., Any]:
            return reporting(original(step))

        return profile_hook_step

    def reporting(step: Callable[..., Any]) -> Callable[..., Any]:
        wrapper = _reporting(step, of_thread, watcher)
        watcher.when_imported("torch._dynamo.eval_frame", partial(leave_uncompiled, wrapper))
        return wrapper

    def expecting(original: Callable[..., Any]) -> Callable[..., Any]:
        def patch_step_function(self: Any) -> None:
            watcher.expect()
            original(self)

        return patch_step_function

    def scaling(original: Callable[..., Any]) -> Callable[..., Any]:
        def step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            updates = of_thread.own
            before = updates.count
            result = original(self, optimizer, *args, **kwargs)
            if updates.count == before:
                since = perf_counter()
                watcher.met(SKIPPED)
                watcher.ended(watcher.source(optimizer, _kind), type(optimizer).__name__, since=since)
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


def _reporting(step: Callable[..., Any], of_thread: OfThread[_Updates], watcher: Watcher) -> Callable[..., Any]:
    from torch.compiler import is_dynamo_compiling

    # What was updated last, and its source: mostly it is the next one, too.
    last: tuple[Callable[[], Any], Hashable] = (nothing, None)

    @wraps(step)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        nonlocal last
        if is_dynamo_compiling():
            return step(*args, **kwargs)
        begin = perf_counter()
        updates = of_thread.own
        if updates.running:
            return step(*args, **kwargs)
        updates.running = True
        before = perf_counter() - begin
        try:
            result = step(*args, **kwargs)
        finally:
            updates.running = False
        since = perf_counter() - before
        updates.count += 1
        optimizer, source = last
        if optimizer() is not args[0]:
            source = watcher.source(args[0], _kind)
            last = reference(args[0]), source
        watcher.ended(source, type(args[0]).__name__, since=since)
        return result

    return wrapper


BOUNDARY = Boundary(name="optimizer.step()", module="torch", watch=watch, backend="torch", mode="train")
