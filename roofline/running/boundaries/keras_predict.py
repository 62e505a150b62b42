"""The batches of Keras's `evaluate` and `predict`."""

from __future__ import annotations

from functools import partial
from typing import Any

from roofline.running.boundaries import _keras_loops
from roofline.running.boundary import Boundary, Watcher


def watch(watcher: Watcher) -> None:
    """Have both loops report."""

    def ended(loop: str, callbacks: Any, logs: Any) -> None:
        watcher.ended(loop, f"a batch of {loop}", results=(logs,), model=getattr(callbacks, "model", None))

    loops = {"on_test_batch_end": "evaluate", "on_predict_batch_end": "predict"}
    _keras_loops.watch(watcher, {name: partial(ended, loop) for name, loop in loops.items()})


BOUNDARY = Boundary(name="{label}", module="", watch=watch, backend="keras", mode="infer")
