"""A field of colours in hash tables of features, at several resolutions, trained on points."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

LEVELS, ROWS, FEATURES, POINTS = 6, 1 << 12, 2, 512
PRIMES = (1, 2654435761, 805459861)


class HashGrid(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.Parameter(torch.randn(LEVELS, ROWS, FEATURES) * 1e-2)
        self.register_buffer("sides", torch.tensor([4.0 * 1.6**level for level in range(LEVELS)]))
        self.register_buffer("corners", torch.tensor([[i >> 2 & 1, i >> 1 & 1, i & 1] for i in range(8)]))

    def forward(self, x: Tensor) -> Tensor:
        scaled = x * self.sides[:, None, None]  # level, point, 3
        low = scaled.floor()
        part = (scaled - low)[:, :, None]
        at = low.long()[:, :, None] + self.corners
        row = (at[..., 0] * PRIMES[0] ^ at[..., 1] * PRIMES[1] ^ at[..., 2] * PRIMES[2]) % ROWS
        weight = torch.where(self.corners.bool(), part, 1 - part).prod(-1)
        found = self.tables[torch.arange(LEVELS)[:, None, None], row]
        return (weight[..., None] * found).sum(2).transpose(0, 1).flatten(1)


class Colours(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.grid = HashGrid()
        self.net = nn.Sequential(
            nn.Linear(LEVELS * FEATURES, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.net(self.grid(x)).sigmoid()


def adam(parameters) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=1e-3, betas=(0.9, 0.99), fused=True)


def make_train(optimizer: Callable = adam) -> Callable[[], Tensor]:
    model = Colours()
    g = torch.Generator().manual_seed(1)
    x, colour = torch.rand(POINTS, 3, generator=g), torch.rand(POINTS, 3, generator=g)
    rule = optimizer(list(model.parameters()))

    def step() -> Tensor:
        rule.zero_grad()
        loss = (model(x) - colour).square().mean()
        loss.backward()
        rule.step()
        return loss.detach()

    return step
