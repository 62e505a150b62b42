"""A small U-Net that learns to say what noise was added: group norm, embedded times, and an average of its weights."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WIDTH, TIMES, GROUPS, SIDE = 32, 1000, 8, 16


def embedded(times: Tensor) -> Tensor:
    """Sines and cosines, (batch, width)."""
    rates = torch.exp(-math.log(10000) * torch.arange(WIDTH // 2) / (WIDTH // 2))
    angles = times.float()[:, None] * rates
    return torch.cat((angles.sin(), angles.cos()), dim=1)


class Residual(nn.Module):
    """norm - SiLU - conv, twice, with the time added in between."""

    def __init__(self, width: int, out: int, norm: Callable[[int, int], nn.Module]) -> None:
        super().__init__()
        self.norm1, self.conv1 = norm(GROUPS, width), nn.Conv2d(width, out, 3, padding=1)
        self.time = nn.Linear(4 * WIDTH, out)
        self.norm2, self.conv2 = norm(GROUPS, out), nn.Conv2d(out, out, 3, padding=1)
        self.skip = nn.Conv2d(width, out, 1) if width != out else nn.Identity()

    def activate(self, x: Tensor) -> Tensor:
        return F.silu(x)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        y = self.conv1(self.activate(self.norm1(x)))
        y = y + self.time(F.silu(time))[:, :, None, None]
        return self.skip(x) + self.conv2(self.activate(self.norm2(y)))


class UNet(nn.Module):
    """One level down and up again."""

    def __init__(
        self, residual: type[Residual] = Residual, norm: Callable[[int, int], nn.Module] = nn.GroupNorm
    ) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.SiLU(), nn.Linear(4 * WIDTH, 4 * WIDTH))
        self.first = nn.Conv2d(3, WIDTH, 3, padding=1)
        self.down = residual(WIDTH, WIDTH, norm)
        self.shrink = nn.Conv2d(WIDTH, WIDTH, 3, 2, 1)
        self.middle = residual(WIDTH, 2 * WIDTH, norm)
        self.grow = nn.Conv2d(2 * WIDTH, WIDTH, 3, padding=1)
        self.up = residual(2 * WIDTH, WIDTH, norm)
        self.last = nn.Conv2d(WIDTH, 3, 3, padding=1)

    def run(self, block: nn.Module, x: Tensor, time: Tensor) -> Tensor:
        return block(x, time)

    def forward(self, x: Tensor, times: Tensor) -> Tensor:
        time = self.time(embedded(times))
        x = self.first(x)
        high = self.run(self.down, x, time)
        low = self.run(self.middle, self.shrink(high), time)
        up = self.grow(F.interpolate(low, scale_factor=2.0, mode="nearest"))
        return self.last(self.run(self.up, torch.cat((up, high), dim=1), time))


class Average:
    """Of the weights, over the last steps."""

    def __init__(self, model: nn.Module) -> None:
        self.now = list(model.parameters())
        self.mean = [p.detach().clone() for p in self.now]

    @torch.no_grad()
    def update(self) -> None:
        torch._foreach_lerp_(self.mean, self.now, 0.001)


class Noise:
    """How much of an image is left after so many times."""

    def __init__(self) -> None:
        kept = torch.cumprod(1 - torch.linspace(1e-4, 0.02, TIMES), dim=0)
        self.signal, self.noise = kept.sqrt(), (1 - kept).sqrt()

    def drawn(self, images: Tensor, times: Tensor) -> Tensor:
        return torch.randn_like(images)

    def add(self, images: Tensor, noise: Tensor, times: Tensor) -> Tensor:
        return self.signal[times][:, None, None, None] * images + self.noise[times][:, None, None, None] * noise


def data(batch: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(batch, 3, SIDE, SIDE, generator=generator)
    return images, torch.randint(TIMES, (batch,), generator=generator)


def train(
    model: nn.Module,
    batch: int = 4,
    average: Callable[[nn.Module], Average] = Average,
    noise: Noise | None = None,
) -> Callable[[], Tensor]:
    images, times = data(batch)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    mean, noises = average(model), noise or Noise()

    def step() -> Tensor:
        optimizer.zero_grad()
        drawn = noises.drawn(images, times)
        loss = F.mse_loss(model(noises.add(images, drawn, times), times), drawn)
        loss.backward()
        optimizer.step()
        mean.update()
        return loss.detach()

    return step


def denoise(model: nn.Module, batch: int = 4) -> Callable[[], Tensor]:
    images, times = data(batch)
    model.eval()

    def step() -> Tensor:
        with torch.no_grad():
            return model(images, times)

    return step


def make_step() -> Callable[[], Tensor]:
    return denoise(UNet())


def make_train() -> Callable[[], Tensor]:
    return train(UNet())
