"""A backward pass: the step of a training without an optimizer and without modules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from roofline.running.boundaries._compiled import leave_uncompiled
from roofline.running.boundaries._outermost import OUTERMOST
from roofline.running.boundary import Boundary, Watcher


def watch(watcher: Watcher) -> None:
    """Have backward passes report."""
    import torch

    main, expected, sign = OUTERMOST.main, watcher.expected, object()

    def ending(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            outermost = OUTERMOST.own
            if outermost.inside:
                return result
            awaited = expected.awaited
            if awaited is not None and awaited.sign is sign and outermost is main:
                expected.awaited = awaited.following
                return result
            watcher.ended("backward", "backward()")
            if awaited is not None and outermost is main and expected.went_on_from(awaited):
                awaited.sign = sign
            return result

        watcher.when_imported("torch._dynamo.eval_frame", partial(leave_uncompiled, call))
        return call

    watcher.wrap(torch.autograd, "backward", ending)


BOUNDARY = Boundary(name="{label}", module="torch", watch=watch, backend="torch", mode="train")
