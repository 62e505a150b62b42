"""See the batches of Keras's loops (fit, evaluate, predict), which all go through a list of callbacks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from roofline.running.boundary import Watcher

#: Modules of Keras 3 and Keras 2 that hold `CallbackList`.
MODULES = ("keras.src.callbacks.callback_list", "tf_keras.src.callbacks")


def watch(watcher: Watcher, reports: dict[str, Callable[[Any, Any], None]]) -> None:
    """Have methods of lists of callbacks report behind their own work. reports: of (list, results) by method."""
    for module in MODULES:
        watcher.when_imported(module, partial(_wrap, watcher, module, reports))


def _wrap(watcher: Watcher, module: str, reports: dict[str, Callable[[Any, Any], None]]) -> None:
    import sys

    for name, report in reports.items():
        watcher.wrap(sys.modules[module].CallbackList, name, partial(_reporting, report))


def _reporting(report: Callable[[Any, Any], None], original: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        report(self, kwargs.get("logs", args[-1] if args else None))
        return result

    return call
