"""A perceiver: a few latents look at a long array of bytes, and then at each other."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

INPUTS, CHANNELS, BANDS, LATENTS, WIDTH, HEADS, CLASSES = 1536, 32, 16, 48, 96, 4, 10


def fourier(count: int, bands: int = BANDS) -> Tensor:
    """Where an input stands, as sines and cosines (input, 2 * bands)."""
    position = torch.linspace(-1, 1, count)[:, None]
    angles = position * torch.logspace(0, math.log10(count / 2), bands) * math.pi
    return torch.cat((angles.sin(), angles.cos()), dim=-1)


class Look(nn.Module):
    """Latents attend to something, and think about it."""

    def __init__(self, source: int) -> None:
        super().__init__()
        self.norm_latent, self.norm_source = nn.LayerNorm(WIDTH), nn.LayerNorm(source)
        self.query, self.both = nn.Linear(WIDTH, WIDTH), nn.Linear(source, 2 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.think = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH))

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v)

    def forward(self, latents: Tensor, source: Tensor) -> Tensor:
        q = self.query(self.norm_latent(latents))
        k, v = self.both(self.norm_source(source)).chunk(2, dim=-1)
        q, k, v = (x.unflatten(-1, (HEADS, -1)).transpose(1, 2) for x in (q, k, v))
        latents = latents + self.out(self.attend(q, k, v).transpose(1, 2).flatten(2))
        return latents + self.think(latents)


class Perceiver(nn.Module):
    def __init__(self, look: type[Look] = Look) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.latents = nn.Parameter(torch.randn(LATENTS, WIDTH) * 0.1)
        self.register_buffer("positions", fourier(INPUTS))
        self.cross = look(CHANNELS + 2 * BANDS)
        self.inner = nn.ModuleList(Look(WIDTH) for _ in range(2))
        self.head = nn.Linear(WIDTH, CLASSES)

    def where(self, x: Tensor) -> Tensor:
        return self.positions.expand(len(x), -1, -1)

    def forward(self, x: Tensor) -> Tensor:
        latents = self.latents.expand(len(x), -1, -1)
        latents = self.cross(latents, torch.cat((x, self.where(x)), dim=-1))
        for layer in self.inner:
            latents = layer(latents, latents)
        return self.head(latents.mean(1))


def run(model: nn.Module) -> Callable[[], Tensor]:
    x = torch.randn(2, INPUTS, CHANNELS, generator=torch.Generator().manual_seed(1))
    model.eval()
    return torch.inference_mode()(lambda: model(x))


def make_step() -> Callable[[], Tensor]:
    return run(Perceiver())
