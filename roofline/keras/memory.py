"""Add up the memory of a Keras model's weights and optimizer, for any backend and both major versions."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

#: Bytes of the types that numpy does not know by name.
_OTHERS = {"bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1}


def state_bytes(model: Any) -> tuple[float, float | None] | None:
    """Sum (weights, optimizer state) [byte], the second None without an optimizer; None for other objects."""
    weights = getattr(model, "weights", None)
    if not isinstance(weights, list) or not hasattr(model, "optimizer"):
        return None
    optimizer = model.optimizer
    variables = getattr(optimizer, "variables", None) if optimizer is not None else None
    if callable(variables):  # in Keras 2 a method
        variables = variables()
    return _bytes(weights), None if variables is None else _bytes(variables)


def _bytes(variables: Iterable[Any]) -> float:
    return float(sum(prod(variable.shape) * _itemsize(variable.dtype) for variable in variables))


def _itemsize(dtype: Any) -> int:
    import numpy as np

    name = getattr(dtype, "name", None) or str(dtype).removeprefix("torch.")
    return _OTHERS.get(name) or np.dtype(name).itemsize
