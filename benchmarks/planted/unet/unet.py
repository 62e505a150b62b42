"""A small U-Net with GroupNorm and SiLU, written plainly: copies with one cause planted are in `unet_planted.py`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import roofline

CHANNELS, GROUPS, SAMPLES, EDGE = 16, 4, 8, 32


class Unit(nn.Module):
    """Convolution, norm, activation."""

    def __init__(self, channels_in: int, channels_out: int, norm: type[nn.GroupNorm] = nn.GroupNorm) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels_in, channels_out, 3, padding=1, bias=False)
        self.group_norm = norm(GROUPS, channels_out)

    def forward(self, x: Tensor) -> Tensor:
        return self.activate(self.group_norm(self.convolve(x)))

    def convolve(self, x: Tensor) -> Tensor:
        return self.convolution(x)

    def activate(self, x: Tensor) -> Tensor:
        return functional.silu(x)


class UNet(nn.Module):
    def __init__(self, unit: Callable[..., Unit]) -> None:
        super().__init__()
        c = CHANNELS
        self.down1, self.down2 = unit(4, c), unit(c, c)
        self.middle1, self.middle2 = unit(c, 2 * c), unit(2 * c, 2 * c)
        self.up1, self.up2 = unit(3 * c, c), unit(c, c)
        self.head = nn.Conv2d(c, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        high = self.through(self.down2, self.through(self.down1, x))
        low = functional.avg_pool2d(high, 2)
        low = self.through(self.middle2, self.through(self.middle1, low))
        low = functional.interpolate(low, scale_factor=2.0, mode="nearest")
        joined = torch.cat([high, low], 1)
        return self.head(self.through(self.up2, self.through(self.up1, joined)))

    def through(self, unit: nn.Module, x: Tensor) -> Tensor:
        return unit(x)


def nothing() -> None:
    """What happens before a step."""


def step(
    mode: str,
    unit: type[Unit] = Unit,
    net: type[UNet] = UNet,
    before: Callable[[], None] = nothing,
    batch: int | None = None,
    norm: type[nn.GroupNorm] = nn.GroupNorm,
) -> roofline.Step:
    """One forward pass, or one training step (mean squared error, SGD)."""
    torch.manual_seed(0)
    batch = batch or SAMPLES
    model = net(partial(unit, norm=norm)).train(mode == "train")
    images, wanted = torch.randn(batch, 4, EDGE, EDGE), torch.randn(batch, 4, EDGE, EDGE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, fused=True)

    def infer() -> object:
        before()
        with torch.no_grad():
            return model(images)

    def train() -> object:
        before()
        optimizer.zero_grad()
        loss = functional.mse_loss(model(images), wanted)
        loss.backward()
        optimizer.step()
        return loss

    parameters = sum(p.numel() for p in model.parameters())
    return roofline.Step(
        run=infer if mode == "infer" else train,
        mode=mode,
        model=model,
        parameters=parameters,
        trainable=parameters,
        samples=batch,
        batch=batch,
    )


def variant(mode: str = "infer", **changes: Any) -> Callable[..., roofline.Step]:
    """Return the function that makes a step with some arguments of `step` changed, for `roofline profile`."""

    def make_step(mode: str = mode, batch: int | None = None) -> roofline.Step:
        return step(mode, batch=batch, **changes)

    return make_step


make_step = variant()
