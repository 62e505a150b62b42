"""Counting a step of Keras 3 on PyTorch without data: what Keras reads of it, and how it makes variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from math import prod
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

from roofline.keras import names
from roofline.pytorch.recording import shapes
from roofline.recording.backend import NeedsData

#: Variables that do not learn, of up to so many numbers, have them: a learning rate, a counter, the state of a seed.
_FEW = 2


@contextmanager
def without_data() -> Iterator[None]:
    """While active, tensors that are made have no data. Raises NeedsData where somebody asks for it.

    Keras ends its steps by making numpy arrays of what they return, at which nobody looks: these are zeros.
    """
    import keras
    from keras.src import backend

    results = _Results(backend.convert_to_numpy)
    with ExitStack() as active:
        active.enter_context(names.restarted())
        active.enter_context(patch.object(backend.Variable, "__init__", _made(backend.Variable.__init__)))
        active.enter_context(patch.object(backend.Variable, "_initialize_with_initializer", _initialised))
        for module in (backend, backend.torch.core):
            active.enter_context(patch.object(module, "convert_to_numpy", results.converted))
        for method in ("train_on_batch", "predict_on_batch"):
            active.enter_context(patch.object(keras.Model, method, results.handed_over(getattr(keras.Model, method))))
        active.enter_context(shapes.without_data())
        yield


def _made(make: Callable[..., None]) -> Callable[..., None]:
    """Return how a variable is made, with its number where it is given one. make: as Keras does it."""

    def made(variable: Any, initializer: Any, *args: Any, **kwargs: Any) -> None:
        with _disable_current_modes() if isinstance(initializer, (int, float)) else nullcontext():
            make(variable, initializer, *args, **kwargs)

    return made


def _initialised(variable: Any, initializer: Callable[..., Any]) -> None:
    """The value of a variable, which nobody draws where it is only a shape."""
    from keras.src.backend.torch.core import get_device, to_torch_dtype

    shape, dtype = variable.shape, variable.dtype
    if variable.trainable or prod(shape) > _FEW:
        variable._initialize(torch.empty(shape, dtype=to_torch_dtype(dtype), device=get_device()))
        return
    with _disable_current_modes():
        variable._initialize(initializer(shape, dtype=dtype))


class _Results:
    """Return what Keras makes numpy arrays of."""

    def __init__(self, convert: Callable[[Any], Any]) -> None:
        """convert: as Keras does it."""
        self._convert = convert
        self._handing_over = False

    def handed_over(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """A method that ends by handing over what it returns."""

        def called(*args: Any, **kwargs: Any) -> Any:
            self._handing_over = True
            try:
                return method(*args, **kwargs)
            finally:
                self._handing_over = False

        return called

    def converted(self, value: Any) -> Any:
        """Zeros that take no memory for a tensor without data."""
        if not isinstance(value, FakeTensor):
            with _disable_current_modes():
                return self._convert(value)
        if not self._handing_over:
            raise NeedsData("the numbers of a tensor")
        return np.broadcast_to(np.float32(0), tuple(value.shape))
