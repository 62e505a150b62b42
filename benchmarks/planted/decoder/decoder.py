"""A small decoder-only transformer (RMSNorm, rotary embedding, SwiGLU, causal attention), written plainly.

The functions that `decoder_planted.py` lists at its end make copies with one thing changed (some with two).
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
SIZES = {"base": (96, 4, 256, 4, 4, 64), "tiny": (48, 4, 96, 4, 1, 16), "narrow": (32, 4, 64, 4, 32, 64)}
VOCABULARY = 512

MakeOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


class RMSNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)
        self.eps = 1e-6

    def forward(self, x: Tensor) -> Tensor:
        return functional.rms_norm(x, x.shape[-1:], self.weight, self.eps)


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, seq: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        half = width // heads // 2
        angles = torch.outer(torch.arange(seq).float(), 10000.0 ** (-torch.arange(half) / half))
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.project(x).chunk(3, -1)
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        attended = self.attend(self.rotate(query), self.rotate(key), value)
        return self.out(attended.transpose(1, 2).flatten(2))

    def project(self, x: Tensor) -> Tensor:
        return self.qkv(x)

    def rotate(self, x: Tensor) -> Tensor:
        one, two = x.chunk(2, -1)
        return torch.cat([one * self.cos - two * self.sin, two * self.cos + one * self.sin], -1)

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True)


class SwiGLU(nn.Module):
    def __init__(self, width: int, units: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, units, bias=False)
        self.up = nn.Linear(width, units, bias=False)
        self.down = nn.Linear(units, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.gated(self.gate(x), self.up(x)))

    def gated(self, gate: Tensor, up: Tensor) -> Tensor:
        return functional.silu(gate) * up


class Block(nn.Module):
    def __init__(
        self,
        width: int,
        heads: int,
        units: int,
        seq: int,
        norm: type[RMSNorm],
        attention: type[Attention] = Attention,
        feed_forward: type[SwiGLU] = SwiGLU,
    ) -> None:
        super().__init__()
        self.norm1 = norm(width)
        self.attention = attention(width, heads, seq)
        self.norm2 = norm(width)
        self.ffn = feed_forward(width, units)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.ffn(self.norm2(x))


class Decoder(nn.Module):
    def __init__(
        self,
        block: Callable[..., Block],
        width: int,
        heads: int,
        units: int,
        layers: int,
        seq: int,
        norm: type[RMSNorm] = RMSNorm,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.ModuleList(block(width, heads, units, seq, norm) for _ in range(layers))
        self.norm = norm(width)
        self.head = nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = self.through(block, x)
        return self.head(self.norm(x))

    def through(self, block: nn.Module, x: Tensor) -> Tensor:
        return block(x)


def fused_adamw(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=1e-4, fused=True)


def step(
    mode: str,
    size: str,
    block: type[Block] = Block,
    decoder: type[Decoder] = Decoder,
    optimizer: MakeOptimizer = fused_adamw,
    batch: int | None = None,
    seq: int | None = None,
    layers: int | None = None,
    width: int | None = None,
    dtype: torch.dtype = torch.float32,
    frozen: int = 0,
    norm: type[RMSNorm] = RMSNorm,
    **parts: type[nn.Module],
) -> roofline.Step:
    """One forward pass or training step; what is not given is that of the size.

    frozen: blocks that do not learn; parts: of a block, by argument.
    """
    sized_width, heads, units, sized_layers, samples, tokens = SIZES[size]
    width, batch, seq, layers = width or sized_width, batch or samples, seq or tokens, layers or sized_layers
    torch.manual_seed(0)
    units = units * width // sized_width
    model = decoder(partial(block, **parts), width, heads, units, layers, seq, norm).train(mode == "train")
    if dtype != torch.float32:
        model.to(dtype)
    if frozen:
        model.embedding.requires_grad_(False)
        for one in model.blocks[:frozen]:
            one.requires_grad_(False)
    ids = torch.randint(VOCABULARY, (batch, seq))
    targets = torch.randint(VOCABULARY, (batch * seq,))
    made = optimizer([p for p in model.parameters() if p.requires_grad]) if mode == "train" else None

    def infer() -> object:
        with torch.no_grad():
            return model(ids)

    def train() -> object:
        made.zero_grad()
        loss = functional.cross_entropy(model(ids).flatten(0, 1), targets)
        loss.backward()
        made.step()
        return loss

    return roofline.Step(
        run=infer if made is None else train,
        mode=mode,
        model=model,
        parameters=sum(p.numel() for p in model.parameters()),
        trainable=sum(p.numel() for p in model.parameters() if p.requires_grad),
        samples=batch,
        tokens=batch * seq,
        batch=batch,
        seq=seq,
    )


def variant(mode: str = "infer", size: str = "base", **changes: Any) -> Callable[..., roofline.Step]:
    """Return the function that makes a step with some arguments of `step` changed, for `roofline profile`."""

    def make_step(
        mode: str = mode,
        size: str = size,
        batch: int | None = None,
        seq: int | None = None,
        layers: int | None = None,
    ) -> roofline.Step:
        return step(mode, size, batch=batch, seq=seq, layers=layers, **changes)

    return make_step


class MaskedAttention(Attention):
    """The causal mask is an argument, made once."""

    def __init__(self, width: int, heads: int, seq: int) -> None:
        super().__init__(width, heads, seq)
        self.register_buffer("mask", torch.full((seq, seq), -torch.inf).triu(1), persistent=False)

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=self.mask)


class EagerAttention(MaskedAttention):
    """Attention from matmul, softmax and matmul."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = torch.matmul(query * query.shape[-1] ** -0.5, key.transpose(-1, -2)) + self.mask
        return torch.matmul(self.softmax(scores), value)

    def softmax(self, scores: Tensor) -> Tensor:
        return scores.softmax(-1)


make_step = variant()
masked = variant(attention=MaskedAttention)
eager = variant(attention=EagerAttention)
