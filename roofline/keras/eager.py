"""Whether a Keras model was told to run op by op, in any version and on any engine; nothing here imports Keras."""

from __future__ import annotations

import gc

#: The distributions whose models have `run_eagerly`.
_LIBRARIES = frozenset(("keras", "tf_keras"))


def asked() -> bool:
    """Whether a model of this process has `run_eagerly`. It looks at all objects: for an error's words only.

    That Keras was imported says nothing: TensorFlow itself does so when a function is first traced.
    """
    objects = gc.get_objects()
    models = {kind for kind in {type(one) for one in objects} if _is_model(kind)}
    return any(vars(one).get("_run_eagerly") is True for one in objects if type(one) in models)


def _is_model(kind: type) -> bool:
    """Of its classes alone: an object's own attributes may be made when they are looked at."""
    return any(
        one.__name__ in ("Model", "Trainer") and one.__module__.partition(".")[0] in _LIBRARIES for one in kind.__mro__
    )
