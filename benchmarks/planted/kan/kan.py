"""Kolmogorov-Arnold layers: each pair of features has a spline of its own, on a grid that all share."""

import torch
import torch.nn.functional as F
from torch import nn

BATCH, SIZE, LAYERS, DEEP, PARTS, ORDER = 256, 48, 2, 4, 8, 3
BASES = PARTS + ORDER


def grid():
    return torch.arange(-ORDER, PARTS + ORDER + 1) * (2.0 / PARTS) - 1.0


class KAN(nn.Module):
    def __init__(self, size, outputs):
        super().__init__()
        self.base = nn.Linear(size, outputs)
        self.coefficients = nn.Parameter(torch.randn(outputs, size, BASES) * 0.1)
        self.scales = nn.Parameter(torch.rand(outputs, size))
        self.register_buffer("grid", grid())

    def bases(self, x):
        """Cox and de Boor's recursion: (batch, size, bases)."""
        x, g = x.unsqueeze(-1), self.grid
        b = ((x >= g[:-1]) & (x < g[1:])).to(x.dtype)
        for k in range(1, ORDER + 1):
            rising = (x - g[: -k - 1]) / (g[k:-1] - g[: -k - 1])
            falling = (g[k + 1 :] - x) / (g[k + 1 :] - g[1:-k])
            b = rising * b[..., :-1] + falling * b[..., 1:]
        return b

    def mixed(self, bases):
        weight = self.coefficients * self.scales.unsqueeze(-1)
        return F.linear(bases.flatten(1), weight.flatten(1))

    def forward(self, x):
        return torch.tanh(self.base(F.silu(x)) + self.mixed(self.bases(x)))


class Network(nn.Module):
    def __init__(self, layer=KAN, layers=LAYERS):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(layer(SIZE, SIZE) for _ in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def inputs():
    return torch.rand(BATCH, SIZE, generator=torch.Generator().manual_seed(1)) * 2 - 1


def make_step(layer=KAN):
    model, x = Network(layer).eval(), inputs()

    @torch.inference_mode()
    def step():
        return model(x)

    return step


def make_compiled(layer=KAN):
    model, x = torch.compile(Network(layer, DEEP).eval()), inputs()

    def step():
        with torch.no_grad():
            return model(x)

    return step


def make_train():
    model, x = Network().train(), inputs()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)

    def step():
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), x)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
