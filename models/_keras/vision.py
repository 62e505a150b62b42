"""KerasCV 0.8.2. It takes the Keras that TensorFlow takes: Keras 3 on any backend, or Keras 2."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from roofline.errors import MissingError


def library(part: str = "") -> ModuleType:
    """KerasCV, or a module inside of it ("models.stable_diffusion"). Raises MissingError where it is not installed."""
    try:
        return import_module(f"keras_cv.{part}".rstrip("."))
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("roofline"):
            raise
        raise MissingError(
            f"This model is built from KerasCV 0.8.2, of which {error.name} is not installed: "
            "run `pip install 'roofline[keras-cv]'`."
        ) from error
