"""A variational autoencoder of grey images."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PIXELS, HIDDEN, LATENT, BATCH = 784, 128, 24, 128


class Autoencoder(nn.Module):
    """Images (batch, pixels) to scores of pixels, and the mean and logarithmic variance of what is hidden."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(PIXELS, HIDDEN), nn.ELU(), nn.Linear(HIDDEN, 2 * LATENT))
        self.decoder = nn.Sequential(nn.Linear(LATENT, HIDDEN), nn.ELU(), nn.Linear(HIDDEN, PIXELS))

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, variance = self.encoder(images).chunk(2, dim=-1)
        hidden = mean + torch.randn_like(mean) * torch.exp(0.5 * variance)
        return self.decoder(hidden), mean, variance


def divergence(mean: Tensor, variance: Tensor) -> Tensor:
    return -0.5 * torch.sum(1 + variance - mean.pow(2) - variance.exp())


def reconstruction(scores: Tensor, images: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(scores, images, reduction="sum")


def images(batch: int = BATCH) -> Tensor:
    return torch.rand(batch, PIXELS, generator=torch.Generator().manual_seed(0))


def train(
    model: nn.Module,
    divergence: Callable[[Tensor, Tensor], Tensor] = divergence,
    reconstruction: Callable[[Tensor, Tensor], Tensor] = reconstruction,
    before: Callable[[Tensor], Tensor] = lambda images: images,
    after: Callable[[nn.Module], None] = lambda model: None,
) -> Callable[[], Tensor]:
    kept = images()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)

    def step() -> Tensor:
        optimizer.zero_grad()
        batch = before(kept)
        scores, mean, variance = model(batch)
        loss = (reconstruction(scores, batch) + divergence(mean, variance)) / len(batch)
        loss.backward()
        optimizer.step()
        after(model)
        return loss.detach()

    return step


def make_train() -> Callable[[], Tensor]:
    return train(Autoencoder())
