"""A network of 4-32-16-4 units with tanh that learns the matrix exponential of 2 x 2 matrices (a Keras Sequential).

The smallest problem of the SimpleChains comparison: 756 parameters, all 10,000 samples in every step, mean
squared error and Adam with lr 1e-3 as in PyTorch. Nearly all of its time is overhead.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from roofline.core.step import Step, Workload
from roofline.models._adam import Adam
from roofline.models._keras.prepare import generator, prepare
from roofline.models._keras.step import step
from roofline.models._keras.version import Version
from roofline.models._step import loss_switch


def network(version: Version, dims: Mapping[str, Any]) -> Any:
    """The dense network; (batch, 4) to (batch, 4)."""
    keras, (first, *widths) = version.KERAS, dims["widths"]
    layers: list[Any] = [keras.Input((first,), dtype=keras.mixed_precision.global_policy().variable_dtype)]
    for number, width in enumerate(widths, start=1):
        activation = "tanh" if number < len(widths) else None
        layers.append(keras.layers.Dense(width, activation=activation, name=f"dense{number}"))
    return keras.Sequential(layers, name="mlp")


def mean_squared_error(keras: ModuleType) -> Any:
    """The mean over samples and outputs."""
    return keras.losses.MeanSquaredError(name="loss")


def build(version: Version, workload: Workload) -> Step:
    """One forward pass or one training step (mean squared error, Adam 1e-3) over all samples."""
    dims = prepare(version, workload)
    matrices = generator().standard_normal((dims["batch"], 2, 2), np.float32)
    return step(
        version,
        workload,
        dims,
        network(version, dims),
        matrices.reshape(-1, 4),
        targets=exponential(matrices).reshape(-1, 4),
        loss=mean_squared_error,
        optimizer=Adam(),
        switches=loss_switch(workload, "mean squared error"),
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
    result: np.ndarray = np.exp(s)[:, None, None] * (
        np.cosh(root).real[:, None, None] * identity + slope[:, None, None] * shifted
    )
    return result.astype(np.float32)
