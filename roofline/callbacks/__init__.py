"""Callbacks that profile some steps of a training that runs anyway: of Hugging Face's Trainer, and of Keras's fit.

    trainer = transformers.Trainer(..., callbacks=[profiled := roofline.callbacks.TransformersCallback()])
    model.fit(..., callbacks=[profiled := roofline.callbacks.KerasCallback()])

    print(profiled.profile)

One file per library, which is imported when its callback is first named; MissingError where it is not installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from roofline.errors import MissingError

if TYPE_CHECKING:
    from roofline.callbacks.keras import KerasCallback
    from roofline.callbacks.transformers import TransformersCallback

__all__ = ["KerasCallback", "TransformersCallback"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'roofline.callbacks' has no attribute {name!r}")
    library = name.removesuffix("Callback").lower()
    try:
        return getattr(import_module(f"roofline.callbacks.{library}"), name)
    except ModuleNotFoundError as error:  # the library, or what it needs: Keras imports its backend
        raise MissingError(
            f"{name} needs {error.name}, which is not installed here: run `pip install {library}`, and what it runs on."
        ) from None


def __dir__() -> list[str]:
    return __all__
