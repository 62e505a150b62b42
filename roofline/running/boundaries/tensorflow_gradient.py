"""Gradients of a tape outside of compiled functions: the step of a training whose updates are written by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from roofline.running.boundaries._outermost import OUTERMOST
from roofline.running.boundary import Boundary, Watcher


def watch(watcher: Watcher) -> None:
    """Have gradient tapes report that are asked while ops run, and not while a function is traced."""
    import tensorflow as tf

    def differentiating(original: Callable[..., Any]) -> Callable[..., Any]:
        def gradient(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if not OUTERMOST.own.inside and tf.executing_eagerly():
                watcher.ended("gradient", "GradientTape.gradient()", results=(result,))
            return result

        return gradient

    watcher.wrap(tf.GradientTape, "gradient", differentiating)


BOUNDARY = Boundary(name="{label}", module="tensorflow", watch=watch, backend="tensorflow", mode="train")
