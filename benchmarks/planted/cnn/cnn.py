"""A small convolutional network, and copies of it with one cause planted; all compute the same function."""

from __future__ import annotations

import time
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

import roofline

CHANNELS, LABELS = (3, 16, 16, 16), 10
BATCH, EDGE = 16, 48


class Block(nn.Module):
    norm: type[nn.BatchNorm2d] = nn.BatchNorm2d

    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels_in, channels_out, 3, padding=1, bias=False)
        self.batch_norm = self.norm(channels_out)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.batch_norm(self.convolution(x)))


class Network(nn.Module):
    def __init__(self, block: type[Block]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(block(a, b) for a, b in pairwise(CHANNELS))
        self.head = nn.Linear(CHANNELS[-1], LABELS)

    def forward(self, images: Tensor) -> Tensor:
        x = images
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((2, 3)))


def make_step(block: type[Block] = Block) -> roofline.Step:
    torch.manual_seed(0)
    model = Network(block).eval()
    images = torch.randn(BATCH, CHANNELS[0], EDGE, EDGE)

    def infer() -> object:
        with torch.no_grad():
            return model(images)

    parameters = sum(p.numel() for p in model.parameters())
    return roofline.Step(
        run=infer, model=model, parameters=parameters, trainable=parameters, samples=BATCH, batch=BATCH
    )


def turned(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last).contiguous(memory_format=torch.contiguous_format)


class ChannelsLast(Block):
    def forward(self, x: Tensor) -> Tensor:
        return turned(super().forward(turned(x)))


def channels_last_copies() -> roofline.Step:
    """What goes into a block and what comes out of it is copied to channels last and back."""
    return make_step(ChannelsLast)


class WrittenOutBatchNorm(nn.BatchNorm2d):
    def forward(self, x: Tensor) -> Tensor:
        mean, variance = self.running_mean[:, None, None], self.running_var[:, None, None]
        scaled = (x - mean) / torch.sqrt(variance + self.eps)
        return scaled * self.weight[:, None, None] + self.bias[:, None, None]


class UnfusedNorm(Block):
    norm = WrittenOutBatchNorm


def unfused_norm() -> roofline.Step:
    """Batch normalisation from single ops."""
    return make_step(UnfusedNorm)


class Sleeping(Block):
    def forward(self, x: Tensor) -> Tensor:
        time.sleep(5e-4)
        return super().forward(x)


def sleep() -> roofline.Step:
    """0.5 ms of sleep before each convolution."""
    return make_step(Sleeping)
