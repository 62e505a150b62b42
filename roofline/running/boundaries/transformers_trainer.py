"""The steps of Hugging Face's Trainer: an update each, with the batches that are accumulated for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from roofline.running.boundaries import torch_call
from roofline.running.boundary import Boundary, Watcher

#: Methods of the Trainer's handler of callbacks, and what a step contains in which they are called.
_MEANING = {
    "on_evaluate": "an evaluation",
    "on_predict": "an evaluation",
    "on_save": "a checkpoint",
    "on_epoch_begin": "a new pass over the data",
}


def watch(watcher: Watcher) -> None:
    """Have the Trainer's handler of callbacks report."""
    from transformers.trainer_callback import CallbackHandler

    def wrapping(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if name == "on_train_begin":
                watcher.expect()
            elif name in _MEANING:
                watcher.met(_MEANING[name])
            result = original(self, *args, **kwargs)
            if name == "on_step_end":
                watcher.ended("step", "a step of Trainer", model=self.model)
            return result

        return call

    for name in ("on_step_end", "on_train_begin", *_MEANING):
        watcher.wrap(CallbackHandler, name, partial(wrapping, name))


BOUNDARY = Boundary(
    name="step of transformers.Trainer",
    module="transformers.trainer_callback",
    watch=watch,
    backend="torch",
    mode="train",
    parameters=torch_call.BOUNDARY.parameters,
)
