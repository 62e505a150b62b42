"""The network with one thing, or two, done as one should not."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from squeeze import Block, Network, infer, train
from torch import Tensor, nn


class WrittenNorm(nn.Module):
    """Batch norm from its definition."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.register_buffer("running_mean", torch.zeros(width))
        self.register_buffer("running_var", torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean((0, 2, 3), keepdim=True)
        centred = x - mean
        variance = (centred**2).mean((0, 2, 3), keepdim=True)
        with torch.no_grad():
            self.running_mean.mul_(0.9).add_(0.1 * mean.flatten())
            self.running_var.mul_(0.9).add_(0.1 * variance.flatten())
        normal = centred / torch.sqrt(variance + 1e-5)
        return normal * self.weight[:, None, None] + self.bias[:, None, None]


def written_norm() -> Callable[[], Tensor]:
    return train(Network(norm=WrittenNorm))


class Formats(Block):
    """Changes the memory format of what comes in and of what goes out, "as convolutions like it"."""

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.turned(self.conv1, x)))
        y = self.gate(self.bn2(self.turned(self.conv2, y)))
        return F.relu(y + self.shortcut(x))

    def turned(self, conv: nn.Module, x: Tensor) -> Tensor:
        x = x.permute(0, 2, 3, 1).contiguous()
        x = x.permute(0, 3, 1, 2).contiguous()
        return conv(x)


def formats() -> Callable[[], Tensor]:
    return infer(Network(block=Formats))


def plain_kernels() -> Callable[[], Tensor]:
    """oneDNN is off, as it was once while a result was hunted that could not be repeated."""
    inner = infer(Network())

    def step() -> Tensor:
        with torch.backends.mkldnn.flags(enabled=False):
            return inner()

    return step


def printed_clip(parameters: list[nn.Parameter]) -> None:
    """Writes the largest numbers of each gradient as text, in Python, before it clips."""
    lines = []
    for parameter in parameters:
        if parameter.grad is not None:
            numbers = sorted(abs(number) for number in parameter.grad.flatten()[:800].tolist())
            lines.append(" ".join(f"{number:.3e}" for number in numbers[-80:]))
    nn.utils.clip_grad_norm_(parameters, 1.0)
    assert lines


def norm_and_clip() -> Callable[[], Tensor]:
    """Two causes: the norm written out, and gradients written as text."""
    return train(Network(norm=WrittenNorm), clip=printed_clip)


# Nothing was changed, or so much that there is nothing to compare


class Functional(Block):
    """The same calls, of functions instead of modules."""

    def forward(self, x: Tensor) -> Tensor:
        y = F.conv2d(x, self.conv1.weight, None, self.conv1.stride, 1)
        y = torch.relu(self.normal(self.bn1, y))
        y = self.normal(self.bn2, F.conv2d(y, self.conv2.weight, None, 1, 1))
        return torch.relu(self.gate(y) + self.shortcut(x))

    def normal(self, norm: nn.Module, y: Tensor) -> Tensor:
        return F.batch_norm(y, norm.running_mean, norm.running_var, norm.weight, norm.bias, False, 0.1, 1e-5)


def functional() -> Callable[[], Tensor]:
    return infer(Network(block=Functional))


def larger_batch() -> Callable[[], Tensor]:
    return infer(Network(), batch=12)
