"""LeNet5 on 28 x 28 images of one channel (flax nnx), as in the SimpleChains comparison.

Convolution 5 x 5 to 6 channels, ReLU, pooling 2, convolution 5 x 5 to 16, ReLU, pooling 2, dense 256-120-84-10:
44,426 parameters. Training is cross entropy and Adam with lr 3e-4, the published optimizer, not our usual
AdamW. Images are (height, width, channels), flax's layout, so the first dense layer sees its 256 inputs in another
order than in PyTorch.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array

from roofline.core.step import Step, Workload
from roofline.models._adam import Adam
from roofline.models._step import loss_switch
from roofline.models.jax._layers import Make, named
from roofline.models.jax._step import classification_loss, prepare, step


class LeNet5(nnx.Module):
    """Convolutions with ReLU and pooling, then dense layers with ReLU between them."""

    def __init__(self, dims: Mapping[str, Any], make: Make) -> None:
        side = dims["image"]
        for number, (width_in, width_out) in enumerate(pairwise([1, *dims["channels"]]), start=1):
            setattr(self, f"conv{number}", make.conv(width_in, width_out, dims["kernel"]))
            side = (side - dims["kernel"] + 1) // 2
        widths = [dims["channels"][-1] * side * side, *dims["dense"]]
        for number, (width_in, width_out) in enumerate(pairwise(widths), start=1):
            setattr(self, f"dense{number}", make.linear(width_in, width_out))
        self.convolutions, self.denses = len(dims["channels"]), len(dims["dense"])

    def __call__(self, input: Array) -> Array:
        """(batch, image, image, 1) to (batch, classes)."""
        images = input
        for name in (f"conv{number}" for number in range(1, self.convolutions + 1)):
            images = named(f"{name}_relu", jax.nn.relu, named(name, getattr(self, name), images))
            images = named(f"{name}_pool", lambda images: nnx.max_pool(images, (2, 2), (2, 2)), images)
        hidden = named("dense1_flatten", lambda images: images.reshape(images.shape[0], -1), images)
        for number in range(1, self.denses + 1):
            if number > 1:
                hidden = named(f"dense{number - 1}_relu", jax.nn.relu, hidden)
            hidden = named(f"dense{number}", getattr(self, f"dense{number}"), hidden)
        return hidden


def network(dims: Mapping[str, Any], make: Make) -> nnx.Module:
    """The convolutional network; (batch, image, image, 1) to (batch, 10)."""
    return LeNet5(dims, make)


def build(workload: Workload, changes: Mapping[str, Any] | None = None) -> Step:
    """One forward pass or one training step (cross entropy, Adam 3e-4) of LeNet5; changes: dimensions to replace."""
    dims = prepare(workload, changes)
    batch, side = dims["batch"], dims["image"]
    return step(
        workload,
        dims,
        network,
        inputs=lambda key: {"input": jax.random.normal(key, (batch, side, side, 1), jnp.float32)},
        targets=lambda key, _: jax.random.randint(key, (batch,), 0, dims["dense"][-1], jnp.int32),
        loss=classification_loss,
        optimizer=Adam(lr=3e-4),
        switches=loss_switch(workload, "cross entropy"),
    )
