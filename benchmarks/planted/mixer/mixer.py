"""An MLP-mixer over patches of images, written plainly, that predicts a visual word for each patch.

The functions that `mixer_planted.py` lists at its end make copies with one thing changed (some with two).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import roofline

#: (patches, width, units over patches, units over channels, layers, words, samples). "wide" has many weights
#: for few patches, "words" many words to choose from.
SIZES = {
    "base": (64, 128, 64, 256, 4, 512, 4),
    "wide": (8, 256, 32, 768, 5, 512, 2),
    "words": (64, 64, 32, 64, 2, 4096, 2),
}
PIXELS = 48

MakeOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]
Loss = Callable[[Tensor, Tensor], Tensor]


class Mixing(nn.Module):
    """Two linear layers over the last axis."""

    def __init__(self, width: int, units: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, units), nn.Linear(units, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.apply_linear(self.second, self.activate(self.apply_linear(self.first, x)))

    def apply_linear(self, linear: nn.Linear, x: Tensor) -> Tensor:
        return linear(x)

    def activate(self, x: Tensor) -> Tensor:
        return functional.gelu(x, approximate="tanh")


class Block(nn.Module):
    def __init__(
        self, patches: int, width: int, over_patches: int, over_channels: int, mixing: type[Mixing] = Mixing
    ) -> None:
        super().__init__()
        self.norm1, self.patches = nn.LayerNorm(width), mixing(patches, over_patches)
        self.norm2, self.channels = nn.LayerNorm(width), mixing(width, over_channels)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.turn(self.patches(self.turn(self.norm1(x))))
        return x + self.channels(self.norm2(x))

    def turn(self, x: Tensor) -> Tensor:
        return x.transpose(1, 2)


class Mixer(nn.Module):
    def __init__(self, block: Callable[..., Block], shape: list[int], layers: int, words: int) -> None:
        super().__init__()
        width = shape[1]
        self.stem = nn.Linear(PIXELS, width)
        self.blocks = nn.ModuleList(block(*shape) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words)

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images)
        for block in self.blocks:
            x = self.through(block, x)
        return self.head(self.norm(x))

    def through(self, block: nn.Module, x: Tensor) -> Tensor:
        return block(x)


def fused_adamw(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=1e-4, weight_decay=0.01, fused=True)


def nothing(model: nn.Module) -> None:
    """What happens to a new model, and after each update."""


def step(
    mode: str,
    size: str,
    block: type[Block] = Block,
    mixer: type[Mixer] = Mixer,
    optimizer: MakeOptimizer = fused_adamw,
    loss: Loss = functional.cross_entropy,
    prepare: Callable[[nn.Module], object] = nothing,
    after: Callable[[nn.Module], None] = nothing,
    batch: int | None = None,
    mixing: type[Mixing] = Mixing,
) -> roofline.Step:
    """One forward pass or training step. prepare: what is done to the new model; after: what follows each update."""
    *shape, layers, words, samples = SIZES[size]
    batch, patches = batch or samples, shape[0]
    torch.manual_seed(0)
    model = mixer(partial(block, mixing=mixing), shape, layers, words).train(mode == "train")
    images, wanted = torch.randn(batch, patches, PIXELS), torch.randint(words, (batch * patches,))
    prepare(model)
    made = optimizer(model.parameters())

    def infer() -> object:
        with torch.no_grad():
            return model(images)

    def train() -> object:
        made.zero_grad()
        value = loss(model(images).flatten(0, 1), wanted)
        value.backward()
        made.step()
        after(model)
        return value

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


def variant(mode: str = "infer", size: str = "base", **changes: Any) -> Callable[..., roofline.Step]:
    """Return the function that makes a step with some arguments of `step` changed, for `roofline profile`."""

    def make_step(mode: str = mode, size: str = size, batch: int | None = None) -> roofline.Step:
        return step(mode, size, batch=batch, **changes)

    return make_step


make_step = variant()
