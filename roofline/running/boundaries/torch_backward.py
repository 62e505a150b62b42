"""A backward pass: the step of a training without an optimizer and without modules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

from roofline.running.boundaries._compiled import leave_uncompiled
from roofline.running.boundaries._outermost import OUTERMOST
from roofline.running.boundary import Boundary, Watcher


def watch(watcher: Watcher) -> None:
    """Have backward passes report."""
    import torch

    def ending(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            since = perf_counter()
            if not OUTERMOST.own.inside:
                watcher.ended("backward", "backward()", since=since)
            return result

        watcher.when_imported("torch._dynamo.eval_frame", partial(leave_uncompiled, call))
        return call

    watcher.wrap(torch.autograd, "backward", ending)


BOUNDARY = Boundary(name="{label}", module="torch", watch=watch, backend="torch", mode="train")
