"""Control the names that Keras 3 gives layers by itself: "dense", "dense_1", ..."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def restarted() -> Iterator[None]:
    """Restart Keras's counters, and again afterwards: the same model, built once more, has the same names."""
    import keras

    keras.utils.clear_session()
    try:
        yield
    finally:
        keras.utils.clear_session()
