"""A network of 4-32-16-4 units with tanh that learns the matrix exponential of 2 x 2 matrices (flax nnx).

The smallest problem of the SimpleChains comparison: 756 parameters, all 10,000 samples in every step, mean
squared error and Adam with lr 1e-3 as published, not our usual AdamW.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array

from roofline.core.step import Step, Workload
from roofline.models._adam import Adam
from roofline.models._step import loss_switch
from roofline.models.jax._layers import Make, named
from roofline.models.jax._program import Inputs
from roofline.models.jax._step import prepare, step


class MLP(nnx.Module):
    """Dense layers with tanh between them."""

    def __init__(self, dims: Mapping[str, Any], make: Make) -> None:
        self.layers = len(dims["widths"]) - 1
        for number, (width_in, width_out) in enumerate(pairwise(dims["widths"]), start=1):
            setattr(self, f"dense{number}", make.linear(width_in, width_out))

    def __call__(self, input: Array) -> Array:
        """(batch, first width) to (batch, last width)."""
        hidden = input
        for number in range(1, self.layers + 1):
            if number > 1:
                hidden = named(f"dense{number - 1}_tanh", jnp.tanh, hidden)
            hidden = named(f"dense{number}", getattr(self, f"dense{number}"), hidden)
        return hidden


def network(dims: Mapping[str, Any], make: Make) -> nnx.Module:
    """The dense network; (batch, 4) to (batch, 4)."""
    return MLP(dims, make)


def loss(output: Array, targets: Array) -> Array:
    """Mean squared error."""
    return jnp.square(output - targets).mean()


def exponentials(inputs: Inputs) -> Array:
    """The exponentials of the 2 x 2 matrices given row by row, in the same form.

    By eigenvalues in numpy: compiling JAX's own function would take longer than the first step.
    """
    matrices = np.asarray(inputs["input"], np.float64).reshape(-1, 2, 2)
    values, vectors = np.linalg.eig(matrices)
    exponential = (vectors * np.exp(values)[:, None, :]) @ np.linalg.inv(vectors)
    return jnp.asarray(exponential.real.reshape(-1, 4), jnp.float32)


def build(workload: Workload, changes: Mapping[str, Any] | None = None) -> Step:
    """One forward pass or one training step (mean squared error, Adam 1e-3) over all samples."""
    dims = prepare(workload, changes)
    return step(
        workload,
        dims,
        network,
        inputs=lambda key: {"input": jax.random.normal(key, (dims["batch"], 4), jnp.float32)},
        targets=lambda _, inputs: exponentials(inputs),
        loss=loss,
        optimizer=Adam(),
        switches=loss_switch(workload, "mean squared error"),
    )
