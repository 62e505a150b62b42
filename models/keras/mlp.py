"""A network of 4-32-16-4 units with tanh that learns the matrix exponential of 2 x 2 matrices (keras.Sequential).

The smallest problem of the SimpleChains comparison: 756 parameters, all 10,000 samples in every step, mean
squared error and Adam with lr 1e-3 as in PyTorch. Nearly all of its time is overhead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from roofline.core.step import Step, Workload
from roofline.models.keras._step import adam, generator, prepare, step


def network(dims: Mapping[str, Any]) -> keras.Model:
    """The dense network; (batch, 4) to (batch, 4)."""
    first, *widths = dims["widths"]
    layers: list[Any] = [keras.Input((first,), dtype=keras.config.dtype_policy().variable_dtype)]
    for number, width in enumerate(widths, start=1):
        activation = "tanh" if number < len(widths) else None
        layers.append(keras.layers.Dense(width, activation=activation, name=f"dense{number}"))
    return keras.Sequential(layers, name="mlp")


def mean_squared_error() -> keras.losses.Loss:
    """The mean over samples and outputs."""
    return keras.losses.MeanSquaredError(name="loss")


def build(workload: Workload) -> Step:
    """One forward pass or one training step (mean squared error, Adam 1e-3) over all samples."""
    dims = prepare(workload)
    matrices = generator().standard_normal((dims["batch"], 2, 2), np.float32)
    return step(
        workload,
        dims,
        network(dims),
        matrices.reshape(-1, 4),
        targets=exponential(matrices).reshape(-1, 4),
        loss=mean_squared_error,
        optimizer=adam,
        switches={"loss": "mean squared error"} if workload.mode == "train" else {},
    )


def exponential(matrices: np.ndarray) -> np.ndarray:
    """exp of 2 x 2 matrices (batch, 2, 2), in float32.

    With s = trace / 2 and q = s^2 - det: exp(A) = e^s (cosh(sqrt q) I + sinh(sqrt q) / sqrt q (A - s I)), sqrt q
    imaginary where q < 0 (Cayley-Hamilton).
    """
    a = matrices.astype(np.float64)
    s = (a[:, 0, 0] + a[:, 1, 1]) / 2
    root = np.sqrt((s**2 - np.linalg.det(a)).astype(np.complex128))
    slope = np.where(root == 0, 1.0, np.sinh(root) / np.where(root == 0, 1.0, root)).real
    identity = np.eye(2)
    shifted = a - s[:, None, None] * identity
    result = np.exp(s)[:, None, None] * (np.cosh(root).real[:, None, None] * identity + slope[:, None, None] * shifted)
    return result.astype(np.float32)
