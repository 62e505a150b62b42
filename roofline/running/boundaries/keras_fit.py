"""The batches of Keras's `fit`."""

from __future__ import annotations

from typing import Any

from roofline.running.boundaries import _keras_loops
from roofline.running.boundary import Boundary, Watcher


def watch(watcher: Watcher) -> None:
    """Have the loop of `fit` report."""

    def ended(callbacks: Any, logs: Any) -> None:
        model = getattr(callbacks, "model", None)
        watcher.ended("batch", "a batch of fit", results=(logs,), model=model)

    _keras_loops.watch(
        watcher,
        {
            "on_train_begin": lambda callbacks, logs: watcher.expect(),
            "on_epoch_begin": lambda callbacks, logs: watcher.met("a new pass over the data"),
            "on_train_batch_end": ended,
        },
    )


BOUNDARY = Boundary(name="batch of fit", module="", watch=watch, backend="keras")
