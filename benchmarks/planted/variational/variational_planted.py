"""The autoencoder with one thing done as one should not."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from variational import Autoencoder, divergence, train


def written_loss(scores: Tensor, images: Tensor) -> Tensor:
    """As in the paper: the logarithms of probabilities, kept from zero."""
    probabilities = torch.sigmoid(scores).clamp(1e-7, 1 - 1e-7)
    each = images * torch.log(probabilities) + (1 - images) * torch.log(1 - probabilities)
    return -each.sum(dim=-1).mean() * len(images)


def loss_written() -> Callable[[], Tensor]:
    return train(Autoencoder(), reconstruction=written_loss)


def by_sample(mean: Tensor, variance: Tensor) -> Tensor:
    """Sample after sample."""
    total = mean.new_zeros(())
    for m, v in zip(mean[:32], variance[:32], strict=True):
        total = total + divergence(m, v)
    return total + divergence(mean[32:], variance[32:])


def divergence_by_sample() -> Callable[[], Tensor]:
    return train(Autoencoder(), divergence=by_sample)


def histograms(model: nn.Module) -> None:
    """Watches all weights and gradients, as a logger does that was told to log everything."""
    for parameter in model.parameters():
        for values in (parameter.detach(), parameter.grad):
            if values is not None:
                torch.histc(values.float(), bins=64)


def histograms_logged() -> Callable[[], Tensor]:
    return train(Autoencoder(), after=histograms)


# Nothing was changed


class Functions(Autoencoder):
    """By functions instead of modules."""

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        first, last = self.encoder[0], self.encoder[2]
        hidden = nn.functional.elu(nn.functional.linear(images, first.weight, first.bias))
        mean, variance = nn.functional.linear(hidden, last.weight, last.bias).chunk(2, dim=-1)
        return self.decoder(mean + torch.randn_like(mean) * torch.exp(variance * 0.5)), mean, variance


def by_functions() -> Callable[[], Tensor]:
    return train(Functions())
