"""A radiance field (NeRF): places along rays, as sines and cosines, become densities and colours, and those pixels."""

import math

import torch
import torch.nn.functional as F
from torch import nn

SIDE, RAYS, SAMPLES, WIDTH, OCTAVES, NEAR, FAR = 160, 96, 48, 64, 6, 2.0, 6.0


def rays():
    """Directions through all pixels of a camera that looks askew; (pixels, 3)."""
    i, j = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="xy")
    towards = torch.stack(((i - SIDE / 2) / SIDE, (SIDE / 2 - j) / SIDE, -torch.ones(SIDE, SIDE)), dim=-1)
    cos, sin = math.cos(0.4), math.sin(0.4)
    turn = torch.tensor([[cos, 0.0, sin], [0.0, 1.0, 0.0], [-sin, 0.0, cos]])
    towards = (towards[..., None, :] * turn).sum(-1)
    return F.normalize(towards, dim=-1).view(-1, 3)


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("octaves", 2.0 ** torch.arange(OCTAVES))
        self.first, self.second = nn.Linear(3 + 6 * OCTAVES, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, 4)

    def encoded(self, x):
        angles = (x[..., None] * self.octaves).flatten(-2)
        return torch.cat((x, angles.sin(), angles.cos()), dim=-1)

    def composited(self, density, colour, apart):
        """Colours in front hide those behind."""
        alpha = 1 - torch.exp(-density * apart)
        passed = torch.cumprod(1 - alpha + 1e-10, dim=1)
        passed = torch.cat((torch.ones_like(passed[:, :1]), passed[:, :-1]), dim=1)
        return ((alpha * passed)[..., None] * colour).sum(1)

    def forward(self, towards):
        depths = torch.linspace(NEAR, FAR, SAMPLES)
        x = torch.tensor([0.0, 0.0, 4.0]) + towards[:, None] * depths[:, None]
        h = torch.relu(self.second(torch.relu(self.first(self.encoded(x)))))
        y = self.out(h)
        return self.composited(F.relu(y[..., 0]), torch.sigmoid(y[..., 1:]), (FAR - NEAR) / SAMPLES)


def picked():
    """Pixels of a step, and their colours."""
    g = torch.Generator().manual_seed(1)
    return torch.randint(SIDE * SIDE, (RAYS,), generator=g), torch.rand(RAYS, 3, generator=g)


def make_step(field=Field):
    torch.manual_seed(0)
    model, towards = field().eval(), rays()[picked()[0]]

    @torch.inference_mode()
    def step():
        return model(towards)

    return step


class Known:
    """Rays are the same for all of the training."""

    def __init__(self):
        self.all = rays()

    def __call__(self, pixels):
        return self.all[pixels]


def make_train(rays_of=Known):
    torch.manual_seed(0)
    model, rays_of, (pixels, colours) = Field().train(), rays_of(), picked()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4, fused=True)

    def step():
        optimizer.zero_grad()
        loss = F.mse_loss(model(rays_of(pixels)), colours)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
