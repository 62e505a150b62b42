"""The outermost call of a `tf.function` that takes no gradients: the step of a program that only infers."""

from __future__ import annotations

from roofline.running.boundaries import _tensorflow_functions
from roofline.running.boundary import Boundary, Watcher


def watch(watcher: Watcher) -> None:
    """Have functions report, those that train as well (`tensorflow_update`)."""
    _tensorflow_functions.FUNCTIONS.inferring = watcher
    watcher.remove_by(_tensorflow_functions.FUNCTIONS.forget)
    _tensorflow_functions.watch(watcher)


BOUNDARY = Boundary(name="call of {label}", module="tensorflow", watch=watch, backend="tensorflow", mode="infer")
