"""See the batches of Keras's loops (fit, evaluate, predict), which all go through a list of callbacks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from roofline.running.boundary import Watcher

#: Modules of Keras 3 and Keras 2 that hold `CallbackList`.
MODULES = ("keras.src.callbacks.callback_list", "tf_keras.src.callbacks")
#: Those that go over the batches of a pass: module, class, method, and of the class: the number of the batches when it
#: is known, and what holds the data.
_PASSES = (
    ("keras.src.trainers.epoch_iterator", "EpochIterator", "_enumerate_iterator", "_num_batches", "data_adapter"),
    ("tf_keras.src.engine.data_adapter", "DataHandler", "steps", "_inferred_steps", "_adapter"),
)


def watch(watcher: Watcher, reports: dict[str, Callable[[Any, Any], None]]) -> None:
    """Have methods of lists of callbacks report behind their own work. reports: of (list, results) by method."""
    for module in MODULES:
        watcher.when_imported(module, partial(_wrap, watcher, module, reports))


def _wrap(watcher: Watcher, module: str, reports: dict[str, Callable[[Any, Any], None]]) -> None:
    for name, report in reports.items():
        watcher.wrap(sys.modules[module].CallbackList, name, partial(_reporting, report))


def _reporting(report: Callable[[Any, Any], None], original: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        report(self, kwargs.get("logs", args[-1] if args else None))
        return result

    return call


def watch_last_batches(watcher: Watcher) -> None:
    """Have passes over arrays tell of a last batch that is smaller; of other data Keras knows no sizes.

    Where TensorFlow takes the batches from an iterator inside of a function, no argument of a call shows it.
    """
    for module, *names in _PASSES:
        watcher.when_imported(module, partial(_wrap_pass, watcher, module, *names))


def _wrap_pass(watcher: Watcher, module: str, owner: str, method: str, batches: str, adapter: str) -> None:
    def passing(original: Callable[..., Any]) -> Callable[..., Any]:
        def steps(self: Any) -> Iterator[Any]:
            size = getattr(getattr(self, adapter, None), "_partial_batch_size", None)
            for number, step in enumerate(original(self), 1):
                if size and number == getattr(self, batches, None):
                    watcher.met("a smaller last batch")
                yield step

        return steps

    kind = getattr(sys.modules[module], owner)
    if hasattr(kind, method):
        watcher.wrap(kind, method, passing)
