"""Name the layers of Keras 3, and the parts of its training step, for the counting of PyTorch modules.

Keras's layers are modules on the torch backend, but most are in no module tree: a model has them in a list of its own.
Their names are those that the other backends write into their ops.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any

from roofline.core.step import scope


def name(module: Any) -> str | None:
    """Read the name of a Keras layer ("transformer_layer_0"); None for any other module, or without Keras."""
    keras = sys.modules.get("keras")
    return module.name if keras is not None and isinstance(module, keras.layers.Layer) else None


@contextmanager
def marked_training() -> Iterator[None]:
    """Run the parts of Keras's training step outside the model under scopes, while the context is active.

    "loss": the compiled loss of a model; "metrics": updating and reading metrics, the mean loss among them;
    "optimizer": the optimizer's update. For models that train by Keras's own `train_step`; a method that a user's
    class overrides without calling Keras's is not marked.
    """
    import keras

    with ExitStack() as patches:
        for owner, method, part in (
            (keras.Model, "compute_loss", "loss"),
            (keras.Model, "compute_metrics", "metrics"),
            (keras.Model, "reset_metrics", "metrics"),
            (keras.metrics.Mean, "update_state", "metrics"),
            (keras.optimizers.Optimizer, "apply", "optimizer"),
        ):
            patches.enter_context(_under_scope(owner, method, part))
        yield


@contextmanager
def _under_scope(owner: type, method: str, part: str) -> Iterator[None]:
    """Run `owner.method`, which may be inherited, under the scope `part` while the context is active."""
    inherited = method not in vars(owner)
    original = getattr(owner, method)
    setattr(owner, method, _scoped(original, part))
    try:
        yield
    finally:
        if inherited:
            delattr(owner, method)
        else:
            setattr(owner, method, original)


def _scoped(function: Callable[..., Any], part: str) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with scope(part):
            return function(*args, **kwargs)

    return call
