"""A small GAN: a forger of images and a judge, both trained in each step."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BATCH, LATENT, WIDTH, JUDGE = 6, 32, 32, 16


def forger() -> nn.Module:
    return nn.Sequential(
        nn.Linear(LATENT, WIDTH * 16),
        nn.Unflatten(1, (WIDTH, 4, 4)),
        nn.ConvTranspose2d(WIDTH, WIDTH, 4, 2, 1),
        nn.ReLU(),
        nn.ConvTranspose2d(WIDTH, WIDTH, 4, 2, 1),
        nn.ReLU(),
        nn.ConvTranspose2d(WIDTH, 3, 4, 2, 1),
        nn.Tanh(),
    )


def judge() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, JUDGE, 4, 2, 1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(JUDGE, JUDGE, 4, 2, 1),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
        nn.Linear(JUDGE * 64, 1),
    )


class Trainer:
    def __init__(self) -> None:
        torch.manual_seed(0)
        self.g, self.d = forger(), judge()
        self.g_rule = torch.optim.SGD(self.g.parameters(), lr=1e-3)
        self.d_rule = torch.optim.SGD(self.d.parameters(), lr=1e-3)
        self.real, self.z = torch.rand(BATCH, 3, 32, 32) * 2 - 1, torch.randn(BATCH, LATENT)

    def forged(self, z: Tensor) -> Tensor:
        """For the judge, who does not teach the forger."""
        with torch.no_grad():
            return self.g(z)

    def judged(self) -> Tensor:
        self.d_rule.zero_grad()
        loss = F.softplus(-self.d(self.real)).mean() + F.softplus(self.d(self.forged(self.z))).mean()
        loss.backward()
        self.d_rule.step()
        return loss.detach()

    def fooled(self) -> Tensor:
        self.g_rule.zero_grad()
        loss = F.softplus(-self.d(self.g(self.z))).mean()
        loss.backward()
        self.g_rule.step()
        return loss.detach()

    def __call__(self) -> tuple[Tensor, Tensor]:
        return self.judged(), self.fooled()


def make_train() -> Trainer:
    return Trainer()
