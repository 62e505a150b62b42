"""The outermost call of a jitted function that takes gradients: as a rule it updates the weights, too."""

from __future__ import annotations

from roofline.running.boundaries._jitted import FUNCTIONS
from roofline.running.boundary import Boundary, Watcher


def watch(watcher: Watcher) -> None:
    """Take the reports of jitted functions in which gradients were taken (`jax_call` hooks into JAX)."""
    FUNCTIONS.training = watcher


BOUNDARY = Boundary(name="call of {label}", module="jax", watch=watch, backend="jax")
