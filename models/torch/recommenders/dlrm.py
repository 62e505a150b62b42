"""DLRM: embedding bags and a dense network, their pairwise products, and a network on top.

Naumov et al. 2019. Size base is the sample model of the paper's section 5.2, 514,499,137 parameters, 512 million of
them in the tables. Each bag sums the same number of rows, drawn at random. Binary cross entropy of the click and
plain gradient descent, as published (learning rate 0.1, as its scripts for Criteo have); the last sigmoid is in the
loss, so that inference gives logits. Gradients of the tables are dense, as in JAX, where the published code has
sparse ones: the optimizer of a training step goes over all rows.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from roofline.core.step import Step, Workload
from roofline.models._step import loss_switch
from roofline.models.torch._step import prepare, step

RATE = 0.1


def dense_layers(widths: Sequence[int], *, last: bool) -> nn.Sequential:
    """Dense layers of these widths with ReLU after each; last: after the last one, too."""
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    for number, (width_in, width_out) in enumerate(pairwise(widths), start=1):
        layers[f"dense{number}"] = nn.Linear(width_in, width_out)
        if last or number < len(widths) - 1:
            layers[f"dense{number}_relu"] = nn.ReLU()
    return nn.Sequential(layers)


class Interaction(nn.Module):
    """The product of each vector with each other one, behind the first vector."""

    def __init__(self, vectors: int) -> None:
        super().__init__()
        self.register_buffer("pairs", torch.tril_indices(vectors, vectors, -1), persistent=False)

    def forward(self, vectors: Sequence[Tensor]) -> Tensor:
        """V vectors (batch, width) to (batch, width + V (V - 1) / 2)."""
        stacked = torch.stack(tuple(vectors), 1)
        products = stacked @ stacked.mT
        return torch.cat((vectors[0], products[:, self.pairs[0], self.pairs[1]]), 1)


class Dlrm(nn.Module):
    """The whole; see the module docstring."""

    def __init__(self, dims: Mapping[str, Any]) -> None:
        super().__init__()
        width, vectors = dims["bottom"][-1], dims["tables"] + 1
        self.bottom = dense_layers(dims["bottom"], last=True)
        self.tables = nn.ModuleList(nn.EmbeddingBag(dims["rows"], width, mode="sum") for _ in range(dims["tables"]))
        self.interaction = Interaction(vectors)
        self.top = dense_layers((width + vectors * (vectors - 1) // 2, *dims["top"]), last=False)

    def forward(self, dense: Tensor, sparse: Tensor) -> Tensor:
        """(batch, features) and row numbers (tables, batch, lookups) to logits (batch, 1)."""
        vectors = [self.bottom(dense), *(table(rows) for table, rows in zip(self.tables, sparse, strict=True))]
        return self.top(self.interaction(vectors))


def network(dims: Mapping[str, Any]) -> nn.Module:
    """DLRM of these dimensions; features and row numbers to logits (batch, 1)."""
    return Dlrm(dims)


def build(workload: Workload) -> Step:
    """One forward pass or one training step (binary cross entropy, SGD) of DLRM."""
    dims = prepare(workload)
    model = network(dims)
    batch = dims["batch"]
    return step(
        workload,
        dims,
        model,
        {
            "dense": torch.randn(batch, dims["bottom"][0]),
            "sparse": torch.randint(dims["rows"], (dims["tables"], batch, dims["lookups"])),
        },
        targets=torch.randint(2, (batch, 1)).float(),
        loss=functional.binary_cross_entropy_with_logits,
        optimizer=partial(torch.optim.SGD, lr=RATE),
        switches=loss_switch(workload, "binary cross entropy"),
    )
