"""A small residual network for images with squeeze-and-excitation gates."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WIDTHS, CLASSES = (24, 48, 96), 10


class Gate(nn.Module):
    """Scales each channel by what all of the image says."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.reduce = nn.Conv2d(width, width // 4, 1)
        self.expand = nn.Conv2d(width // 4, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean((2, 3), keepdim=True)
        return x * torch.sigmoid(self.expand(F.relu(self.reduce(mean))))


class Block(nn.Module):
    """conv - norm - relu - conv - norm - gate, and the input beside it."""

    def __init__(self, width: int, out: int, stride: int, norm: Callable[[int], nn.Module]) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, out, 3, stride, 1, bias=False)
        self.bn1 = norm(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = norm(out)
        self.gate = Gate(out)
        self.shortcut = nn.Conv2d(width, out, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def before(self, x: Tensor) -> Tensor:
        return x

    def forward(self, x: Tensor) -> Tensor:
        x = self.before(x)
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.gate(self.bn2(self.conv2(y)))
        return F.relu(y + self.shortcut(x))


class Network(nn.Module):
    """Images of 3 x 32 x 32 to scores."""

    def __init__(self, block: type[Block] = Block, norm: Callable[[int], nn.Module] = nn.BatchNorm2d) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, WIDTHS[0], 3, 1, 1, bias=False)
        widths = (WIDTHS[0], *WIDTHS)
        pairs = pairwise(widths)
        self.blocks = nn.Sequential(*(block(a, b, 1 if a == b else 2, norm) for a, b in pairs))
        self.head = nn.Linear(WIDTHS[-1], CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(images)).mean((2, 3)))


def data(batch: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(batch, 3, 32, 32, generator=generator), torch.randint(CLASSES, (batch,), generator=generator)


def infer(model: nn.Module, batch: int = 8) -> Callable[[], Tensor]:
    images = data(batch)[0]
    model.eval()

    def step() -> Tensor:
        with torch.inference_mode():
            return model(images)

    return step


def clip(parameters: list[nn.Parameter]) -> None:
    nn.utils.clip_grad_norm_(parameters, 1.0)


def train(model: nn.Module, batch: int = 4, clip: Callable[[list[nn.Parameter]], None] = clip) -> Callable[[], Tensor]:
    images, labels = data(batch)
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, foreach=True)

    def step() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        clip(parameters)
        optimizer.step()
        return loss.detach()

    return step


def make_step() -> Callable[[], Tensor]:
    return infer(Network())


def make_train() -> Callable[[], Tensor]:
    return train(Network())
