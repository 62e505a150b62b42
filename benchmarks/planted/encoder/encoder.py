"""A small transformer encoder, written plainly: the model that causes are planted into.

`encoder_planted.py` has copies with one thing changed (some with two); all but four of them compute the same function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import roofline

#: (width, heads, units of the feed-forward part, layers, samples, tokens). In "tiny" most of the time is overhead, in
#: "narrow" much of it is memory traffic.
SIZES = {"base": (64, 4, 128, 3, 16, 64), "tiny": (32, 4, 64, 3, 1, 16), "narrow": (32, 4, 64, 3, 64, 32)}
VOCABULARY, LABELS = 1000, 16

MakeOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.project(x).chunk(3, -1)
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        return self.out(self.attend(query, key, value).transpose(1, 2).flatten(2))

    def project(self, x: Tensor) -> Tensor:
        return self.qkv(x)

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(query, key, value)


class FeedForward(nn.Module):
    def __init__(self, width: int, units: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, units)
        self.down = nn.Linear(units, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activate(self.up(x)))

    def activate(self, x: Tensor) -> Tensor:
        return functional.gelu(x)


class Layer(nn.Module):
    """Normalised before and after attention and feed-forward part."""

    def __init__(
        self,
        width: int,
        heads: int,
        units: int,
        norm: type[nn.LayerNorm] = nn.LayerNorm,
        attention: type[Attention] = Attention,
        feed_forward: type[FeedForward] = FeedForward,
    ) -> None:
        super().__init__()
        self.norm1 = norm(width)
        self.attention = attention(width, heads)
        self.norm2 = norm(width)
        self.norm3 = norm(width)
        self.ffn = feed_forward(width, units)
        self.norm4 = norm(width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.norm2(self.attention(self.norm1(x)))
        return x + self.norm4(self.ffn(self.norm3(x)))


class Encoder(nn.Module):
    def __init__(self, layer: Callable[..., Layer], width: int, heads: int, units: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.layers = nn.ModuleList(layer(width, heads, units) for _ in range(layers))
        self.head = nn.Linear(width, LABELS)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = self.through(layer, x)
        return self.head(x.mean(1))

    def through(self, layer: nn.Module, x: Tensor) -> Tensor:
        return layer(x)


def fused_adamw(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, fused=True)


def step(
    mode: str,
    size: str,
    layer: type[Layer] = Layer,
    encoder: type[Encoder] = Encoder,
    optimizer: MakeOptimizer = fused_adamw,
    batch: int | None = None,
    seq: int | None = None,
    width: int | None = None,
    **parts: type[nn.Module],
) -> roofline.Step:
    """One forward pass or one training step; what is not given is that of the size. parts: of a layer, by argument."""
    sized_width, heads, units, layers, samples, tokens = SIZES[size]
    width, batch, seq = width or sized_width, batch or samples, seq or tokens
    torch.manual_seed(0)
    model = encoder(partial(layer, **parts), width, heads, units * width // sized_width, layers).train(mode == "train")
    ids = torch.randint(VOCABULARY, (batch, seq))
    labels = torch.randint(LABELS, (batch,))
    made = optimizer(model.parameters()) if mode == "train" else None

    def infer() -> object:
        with torch.no_grad():
            return model(ids)

    def train() -> object:
        made.zero_grad()
        loss = functional.cross_entropy(model(ids), labels)
        loss.backward()
        made.step()
        return loss

    parameters = sum(p.numel() for p in model.parameters())
    return roofline.Step(
        run=infer if made is None else train,
        mode=mode,
        model=model,
        parameters=parameters,
        trainable=parameters,
        samples=batch,
        tokens=batch * seq,
        batch=batch,
        seq=seq,
    )


def variant(mode: str = "infer", size: str = "base", **changes: Any) -> Callable[..., roofline.Step]:
    """Return the function that makes a step with some arguments of `step` changed, for `roofline profile`."""

    def make_step(
        mode: str = mode, size: str = size, batch: int | None = None, seq: int | None = None
    ) -> roofline.Step:
        return step(mode, size, batch=batch, seq=seq, **changes)

    return make_step


make_step = variant()
