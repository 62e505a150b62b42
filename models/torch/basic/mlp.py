"""A network of 4-32-16-4 units with tanh that learns the matrix exponential of 2 x 2 matrices.

The smallest problem of the SimpleChains comparison: 756 parameters, all 10,000 samples in every step, mean
squared error and Adam with lr 1e-3 as published, not our usual AdamW. Nearly all of its time is overhead.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from roofline.core.step import Step, Workload
from roofline.models._step import loss_switch
from roofline.models.torch._step import prepare, step


def network(dims: Mapping[str, Any]) -> nn.Module:
    """The dense network; (batch, 4) to (batch, 4)."""
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    for number, (width_in, width_out) in enumerate(pairwise(dims["widths"]), start=1):
        if number > 1:
            layers[f"dense{number - 1}_tanh"] = nn.Tanh()
        layers[f"dense{number}"] = nn.Linear(width_in, width_out)
    return nn.Sequential(layers)


def build(workload: Workload) -> Step:
    """One forward pass or one training step (mean squared error, Adam 1e-3) over all samples."""
    dims = prepare(workload)
    model = network(dims)
    matrices = torch.randn(dims["batch"], 2, 2)
    return step(
        workload,
        dims,
        model,
        {"input": matrices.flatten(1)},
        targets=torch.linalg.matrix_exp(matrices).flatten(1),
        loss=functional.mse_loss,
        optimizer=torch.optim.Adam,
        switches=loss_switch(workload, "mean squared error"),
    )
