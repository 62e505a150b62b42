"""A stack of dilated causal convolutions with gates, in the manner of WaveNet; its copies: `wavenet_planted.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import roofline

CHANNELS, LEVELS, LAYERS, SAMPLES, LENGTH = 32, 64, 8, 2, 512


class Layer(nn.Module):
    """Two taps, a gate, and one product for what goes on and what goes out."""

    def __init__(self, dilation: int) -> None:
        super().__init__()
        self.dilation = dilation
        self.taps = nn.Conv1d(CHANNELS, 2 * CHANNELS, 2, dilation=dilation)
        self.mix = nn.Conv1d(CHANNELS, 2 * CHANNELS, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        kept, skipped = self.leave(self.gated(*self.enter(x).chunk(2, 1))).chunk(2, 1)
        return x + kept, skipped

    def enter(self, x: Tensor) -> Tensor:
        return self.taps(functional.pad(x, (self.dilation, 0)))

    def gated(self, signal: Tensor, gate: Tensor) -> Tensor:
        return torch.tanh(signal) * torch.sigmoid(gate)

    def leave(self, x: Tensor) -> Tensor:
        return self.mix(x)


class Wave(nn.Module):
    def __init__(self, layer: type[Layer]) -> None:
        super().__init__()
        self.stem = nn.Conv1d(1, CHANNELS, 1)
        self.layers = nn.ModuleList(layer(2 ** (number % 8)) for number in range(LAYERS))
        self.head = nn.Conv1d(CHANNELS, LEVELS, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        total = torch.zeros_like(x)
        for layer in self.layers:
            x, skipped = self.through(layer, x)
            total = total + skipped
        return self.head(functional.relu(total))

    def through(self, layer: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
        return layer(x)


def nothing(result: Tensor) -> None:
    """What happens to the result of a step."""


def step(
    layer: type[Layer] = Layer,
    wave: type[Wave] = Wave,
    after: Callable[[Tensor], None] = nothing,
    batch: int | None = None,
    seq: int | None = None,
) -> roofline.Step:
    """One forward pass."""
    torch.manual_seed(0)
    batch, seq = batch or SAMPLES, seq or LENGTH
    model = wave(layer).eval()
    sound = torch.randn(batch, 1, seq)

    def run() -> object:
        with torch.no_grad():
            result = model(sound)
            after(result)
            return result

    parameters = sum(p.numel() for p in model.parameters())
    return roofline.Step(
        run=run,
        model=model,
        parameters=parameters,
        trainable=parameters,
        samples=batch,
        tokens=batch * seq,
        batch=batch,
        seq=seq,
    )


def variant(**changes: Any) -> Callable[..., roofline.Step]:
    """Return the function that makes a step with some arguments of `step` changed, for `roofline profile`."""

    def make_step(batch: int | None = None, seq: int | None = None) -> roofline.Step:
        return step(batch=batch, seq=seq, **changes)

    return make_step


make_step = variant()
