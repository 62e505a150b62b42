"""The names that Keras 3 gives layers by itself: "dense", "dense_1", ..."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def anew() -> Iterator[None]:
    """Keras counts from the beginning, and afterwards again: the same model built once more has the same names."""
    import keras

    keras.utils.clear_session()
    try:
        yield
    finally:
        keras.utils.clear_session()
