"""The batches of Keras's `fit`."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any
from weakref import WeakKeyDictionary

from roofline.running.boundaries import _keras_loops
from roofline.running.boundaries._shapes import shapes_of
from roofline.running.boundary import Boundary, Watcher


def watch(watcher: Watcher) -> None:
    """Have the loop of `fit` report, and tell apart those that train other weights."""
    trained: WeakKeyDictionary[Any, Hashable] = WeakKeyDictionary()  # of each `fit`, by its callbacks

    def ended(callbacks: Any, logs: Any) -> None:
        model = getattr(callbacks, "model", None)
        watcher.ended(
            "batch", "a batch of fit", results=(logs,), model=model, detail=_trained(callbacks, model, trained)
        )

    _keras_loops.watch(
        watcher,
        {
            "on_train_begin": lambda callbacks, logs: watcher.expect(),
            "on_epoch_begin": lambda callbacks, logs: watcher.met("a new pass over the data"),
            "on_train_batch_end": ended,
        },
    )
    _keras_loops.watch_last_batches(watcher)


def _trained(callbacks: Any, model: Any, trained: WeakKeyDictionary[Any, Hashable]) -> Hashable:
    """Return the shapes of the weights that a `fit` trains; None where classes of the program do not tell."""
    try:
        if callbacks not in trained:
            trained[callbacks] = shapes_of(getattr(model, "trainable_variables", ()))
        return trained[callbacks]
    except Exception:  # a list without a hash, a property that raises: the program's `fit` must not
        return None


BOUNDARY = Boundary(name="batch of fit", module="", watch=watch, backend="keras")
