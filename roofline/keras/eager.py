"""Detect Keras models that run op by op, in any version and on any engine, without importing Keras."""

from __future__ import annotations

import gc

#: The distributions whose models have `run_eagerly`.
_LIBRARIES = frozenset(("keras", "tf_keras"))


def runs_eagerly() -> bool:
    """Tell whether a model of this process has `run_eagerly`. It searches all objects: for an error's words only.

    An imported Keras proves nothing: TensorFlow itself imports it when a function is first traced.
    """
    objects = gc.get_objects()
    models = {kind for kind in {type(candidate) for candidate in objects} if _is_model(kind)}
    return any(vars(candidate).get("_run_eagerly") is True for candidate in objects if type(candidate) in models)


def _is_model(kind: type) -> bool:
    """Tell whether a class is a Keras model's, by its bases alone: reading attributes of an object may have effects."""
    return any(
        base.__name__ in ("Model", "Trainer") and base.__module__.partition(".")[0] in _LIBRARIES
        for base in kind.__mro__
    )
