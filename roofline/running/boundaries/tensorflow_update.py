"""The outermost call of a `tf.function` that takes gradients: as a rule it updates the weights, too."""

from __future__ import annotations

from roofline.running.boundaries._tensorflow_functions import FUNCTIONS
from roofline.running.boundary import Boundary, Watcher


def watch(watcher: Watcher) -> None:
    """Take the reports of functions in which gradients were taken (`tensorflow_call` hooks into TensorFlow)."""
    FUNCTIONS.training = watcher


BOUNDARY = Boundary(name="call of {label}", module="tensorflow", watch=watch, backend="tensorflow")
