"""The GAN with what is easily forgotten."""

import torch
from rivals import LATENT, Trainer


class Undetached(Trainer):
    """The judge's loss goes back through the forger, whose gradients are then thrown away."""

    def forged(self, z):
        return self.g(z)


def undetached():
    return Undetached()


class Watched(Trainer):
    """For the log: what becomes of sixteen fixed points in eval mode, and how bright they are."""

    def __init__(self):
        super().__init__()
        self.fixed = torch.linspace(-1, 1, 16 * LATENT).view(16, LATENT)

    def __call__(self):
        losses = super().__call__()
        self.g.eval()
        images = self.g(self.fixed)
        self.bright = [images.mean().item(), images.std().item(), images.amax().item()]
        self.g.train()
        return losses


def watched():
    return Watched()
