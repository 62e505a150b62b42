"""A loop that runs PyTorch's profiler itself. Arguments: whole, or part: of 5 of its 90 steps, which it marks."""

import sys
from collections.abc import Callable

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

torch.manual_seed(0)
net = nn.Linear(32, 64)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)


def train(steps: int, mark: Callable[[], None] = lambda: None) -> None:
    for _ in range(steps):
        net(torch.randn(16, 32)).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        mark()


if sys.argv[1] == "part":
    train(15)
with profile(activities=[ProfilerActivity.CPU]) as profiler:
    train(5, profiler.step) if sys.argv[1] == "part" else train(90)
assert sum("linear" in event.name for event in profiler.events()) == (5 if sys.argv[1] == "part" else 90)
if sys.argv[1] == "part":
    train(70)
