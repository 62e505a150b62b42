"""LeNet5 on 28 x 28 images of one channel, as in the SimpleChains comparison.

Convolution 5 x 5 to 6 channels, ReLU, pooling 2, convolution 5 x 5 to 16, ReLU, pooling 2, dense 256-120-84-10:
44,426 parameters. Training is cross entropy and Adam with lr 3e-4, the published optimizer, not our usual
AdamW. The published script also applies a log-softmax before the cross entropy, a slip left out here, and
times the loading of data, which a step does not contain (`--input host` adds the transfer).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from roofline.core.step import Step, Workload
from roofline.models._step import loss_switch
from roofline.models.torch._step import prepare, step


def network(dims: Mapping[str, Any]) -> nn.Module:
    """The convolutional network; (batch, 1, image, image) to (batch, 10)."""
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    side = dims["image"]
    for number, (width_in, width_out) in enumerate(pairwise([1, *dims["channels"]]), start=1):
        layers[f"conv{number}"] = nn.Conv2d(width_in, width_out, dims["kernel"])
        layers[f"conv{number}_relu"] = nn.ReLU()
        layers[f"conv{number}_pool"] = nn.MaxPool2d(2)
        side = (side - dims["kernel"] + 1) // 2
    layers["dense1_flatten"] = nn.Flatten()
    widths = [dims["channels"][-1] * side * side, *dims["dense"]]
    for number, (width_in, width_out) in enumerate(pairwise(widths), start=1):
        if number > 1:
            layers[f"dense{number - 1}_relu"] = nn.ReLU()
        layers[f"dense{number}"] = nn.Linear(width_in, width_out)
    return nn.Sequential(layers)


def build(workload: Workload) -> Step:
    """One forward pass or one training step (cross entropy, Adam 3e-4) of LeNet5."""
    dims = prepare(workload)
    model = network(dims)
    return step(
        workload,
        dims,
        model,
        {"input": torch.randn(dims["batch"], 1, dims["image"], dims["image"])},
        targets=torch.randint(dims["dense"][-1], (dims["batch"],)),
        loss=functional.cross_entropy,
        optimizer=partial(torch.optim.Adam, lr=3e-4),
        switches=loss_switch(workload, "cross entropy"),
    )
