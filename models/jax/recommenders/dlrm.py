"""DLRM: embedding bags and a dense network, their pairwise products, and a network on top (flax nnx).

Naumov et al. 2019. Size base is the sample model of the paper's section 5.2, 514,499,137 parameters. Loss, optimizer
and dense gradients of the tables are as in PyTorch; a bag is a gather and a sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax import Array

from roofline.core.step import Step, Workload
from roofline.models._sgd import Sgd
from roofline.models._step import loss_switch
from roofline.models.jax._layers import Make, named
from roofline.models.jax._step import prepare, step

RATE = 0.1


class Dense(nnx.Module):
    """Dense layers with ReLU after each; last: after the last one, too."""

    def __init__(self, widths: Sequence[int], make: Make, *, last: bool) -> None:
        self.layers, self.last = len(widths) - 1, last
        for number, (width_in, width_out) in enumerate(pairwise(widths), start=1):
            setattr(self, f"dense{number}", make.linear(width_in, width_out))

    def __call__(self, hidden: Array) -> Array:
        """(batch, first width) to (batch, last width)."""
        for number in range(1, self.layers + 1):
            hidden = named(f"dense{number}", getattr(self, f"dense{number}"), hidden)
            if self.last or number < self.layers:
                hidden = named(f"dense{number}_relu", jax.nn.relu, hidden)
        return hidden


class Dlrm(nnx.Module):
    """The whole; see the module docstring."""

    def __init__(self, dims: Mapping[str, Any], make: Make) -> None:
        width, vectors = dims["bottom"][-1], dims["tables"] + 1
        self.bottom = Dense(dims["bottom"], make, last=True)
        self.tables = nnx.List([make.embed(dims["rows"], width) for _ in range(dims["tables"])])
        self.top = Dense((width + vectors * (vectors - 1) // 2, *dims["top"]), make, last=False)

    def __call__(self, dense: Array, sparse: Array) -> Array:
        """(batch, features) and row numbers (tables, batch, lookups) to logits (batch, 1)."""
        vectors = [named("bottom", self.bottom, dense)]
        for number, table in enumerate(self.tables):
            vectors.append(named(f"tables.{number}", bag, table, sparse, number))
        return named("top", self.top, named("interaction", interacted, vectors))


def bag(table: nnx.Embed, sparse: Array, number: int) -> Array:
    """The sum of the rows of each sample; the lookups (batch, lookups) of table `number` to (batch, width)."""
    return table(sparse[number]).sum(1)


def interacted(vectors: Sequence[Array]) -> Array:
    """The product of each of V vectors (batch, width) with each other one: (batch, width + V (V - 1) / 2)."""
    stacked = jnp.stack(vectors, 1)
    products = jnp.einsum("bvw,buw->bvu", stacked, stacked)
    rows, columns = jnp.tril_indices(len(vectors), -1)
    return jnp.concatenate((vectors[0], products[:, rows, columns]), 1)


def network(dims: Mapping[str, Any], make: Make) -> nnx.Module:
    """DLRM of these dimensions; features and row numbers to logits (batch, 1)."""
    return Dlrm(dims, make)


def loss(logits: Array, clicks: Array) -> Array:
    """Binary cross entropy of the logits."""
    return optax.sigmoid_binary_cross_entropy(logits, clicks).mean()


def build(workload: Workload, changes: Mapping[str, Any] | None = None) -> Step:
    """One forward pass or one training step (binary cross entropy, SGD) of DLRM; changes: dimensions to replace."""
    dims = prepare(workload, changes)
    batch = dims["batch"]
    return step(
        workload,
        dims,
        network,
        inputs=lambda key: {
            "dense": jax.random.normal(key, (batch, dims["bottom"][0]), jnp.float32),
            "sparse": jax.random.randint(key, (dims["tables"], batch, dims["lookups"]), 0, dims["rows"], jnp.int32),
        },
        targets=lambda key, _: jax.random.randint(key, (batch, 1), 0, 2).astype(jnp.float32),
        loss=loss,
        optimizer=Sgd(RATE),
        switches=loss_switch(workload, "binary cross entropy"),
    )
