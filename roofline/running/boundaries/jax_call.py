"""The outermost call of a jitted function that takes no gradients: the step of a program that only infers."""

from __future__ import annotations

from roofline.running.boundaries import _jitted
from roofline.running.boundaries._jitted import watched_names as watched_names
from roofline.running.boundary import Boundary, Watcher


def watch(watcher: Watcher) -> None:
    """Have jitted functions report, those that train as well (`jax_update`)."""
    _jitted.FUNCTIONS.inferring = watcher
    watcher.remove_by(_jitted.FUNCTIONS.forget)
    _jitted.watch(watcher)


BOUNDARY = Boundary(name="call of {label}", module="jax", watch=watch, backend="jax", mode="infer")
