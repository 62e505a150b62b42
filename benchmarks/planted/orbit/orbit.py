"""A neural differential equation: Runge-Kutta steps of a field that a small network gives; all states are kept."""

from __future__ import annotations

import torch
from torch import nn

BODIES, SIZE, HIDDEN, STEPS, DT = 256, 64, 64, 24, 0.05


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(SIZE + 1, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, SIZE))

    def forward(self, t, y):
        return self.net(torch.cat([y, t.expand(len(y), 1)], dim=1))


def midpoint(f, t, y, h):
    return y + h * f(t + h / 2, y + h / 2 * f(t, y))


def solve(f, y, times):
    """States at all times (time, body, size)."""
    out = [y]
    for t in times[:-1]:
        y = midpoint(f, t, y, DT)
        out.append(y)
    return torch.stack(out)


def make(solve=solve):
    field = Field()
    y0 = torch.randn(BODIES, SIZE, generator=torch.Generator().manual_seed(1))
    times = torch.arange(STEPS + 1) * DT

    @torch.inference_mode()
    def step():
        return solve(field, y0, times)

    return step
