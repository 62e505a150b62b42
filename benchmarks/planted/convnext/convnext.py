"""A small ConvNeXt: wide depthwise convolutions, and a norm and two layers over channels that come last."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

IMAGES, WIDTH, BLOCKS, CLASSES = 4, 48, 4, 10


class Block(nn.Module):
    def __init__(self, width: int = WIDTH):
        super().__init__()
        self.spread = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 0.1))

    def mixed(self, x: Tensor) -> Tensor:
        x = self.norm(x.permute(0, 2, 3, 1))
        return (self.scale * self.down(F.gelu(self.up(x)))).permute(0, 3, 1, 2)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.mixed(self.spread(x))


class ConvNeXt(nn.Module):
    def __init__(self, block: type[Block] = Block, width: int = WIDTH):
        super().__init__()
        torch.manual_seed(0)
        self.stem = nn.Conv2d(3, width, 4, stride=4)
        self.blocks = nn.Sequential(*[block(width) for _ in range(BLOCKS)])
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


def images(side: int) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(1)
    return torch.randn(IMAGES, 3, side, side, generator=g), torch.randint(CLASSES, (IMAGES,), generator=g)


def show(model: nn.Module):
    x, _ = images(96)
    model.eval()

    @torch.no_grad()
    def step():
        return model(x)

    return step


def make_train(after=lambda model, rule, loss: None):
    model, (x, y) = ConvNeXt(), images(40)
    rule = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    def step():
        rule.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        rule.step()
        after(model, rule, loss)
        return loss.detach()

    return step


def make_step():
    return show(ConvNeXt())
