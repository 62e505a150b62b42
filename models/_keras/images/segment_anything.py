"""Segment Anything, random weights, one image and two points on it per sample.

Kirillov et al. 2023. Training is of the image encoder alone (mean squared error of the image's embedding, Adam with lr
1e-3), inference of the whole model, which gives four masks. Size base is the huge one: 637,026,048 parameters in the
encoder, 641,090,864 in all. The encoder begins by normalising the colours of the image, as PyTorch's does not. A third
point fills the prompt up, as PyTorch's class does by itself; boxes and masks, of which there are none, are empty
inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from roofline.core.step import Step, Workload
from roofline.models._adam import Adam
from roofline.models._keras.prepare import generator, prepare
from roofline.models._keras.step import step
from roofline.models._keras.version import Version
from roofline.models._step import loss_switch

Network = Callable[[Mapping[str, Any]], Any]

FOREGROUND, BACKGROUND, FILLED_UP = 1, 0, -1  # what a point is said to lie on


def everywhere(dims: Mapping[str, Any]) -> list[int]:
    """The layers that attend over the whole image."""
    every = dims["global_every"]
    return list(range(every - 1, dims["layers"], every))


def mean_squared_error(keras: Any) -> Any:
    """Of the image's embedding."""
    return keras.losses.MeanSquaredError(name="loss")


def build(version: Version, network: Network, encoder: Network, workload: Workload) -> Step:
    """One forward pass of the whole model, or one training step (mean squared error, Adam) of its image encoder.

    network, encoder: make the one and the other from the dimensions.
    """
    dims = prepare(version, workload)
    batch, image, patches = dims["batch"], dims["image"], dims["image"] // dims["patch"]
    draw = generator()
    images = draw.standard_normal((batch, image, image, 3), np.float32)
    targets = draw.standard_normal((batch, patches, patches, dims["out"]), np.float32)
    train = workload.mode == "train"
    points = np.concatenate([draw.random((batch, 2, 2), np.float32) * image, np.zeros((batch, 1, 2), np.float32)], 1)
    prompts = {
        "points": points,
        "labels": np.tile(np.array([FOREGROUND, BACKGROUND, FILLED_UP], np.float32), (batch, 1)),
        "boxes": np.zeros((batch, 0, 2, 2), np.float32),
        "masks": np.zeros((batch, 0, 4 * patches, 4 * patches, 1), np.float32),
    }
    return step(
        version,
        workload,
        dims,
        encoder(dims) if train else network(dims),
        images if train else {"images": images, **prompts},
        targets=targets,
        loss=mean_squared_error,
        optimizer=Adam(),
        switches={
            "attention": "written out",
            "gelu": dims["gelu"],
            "image layout": "channels last",
            **loss_switch(workload, "mean squared error"),
        },
    )
