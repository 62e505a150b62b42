"""A training, an inference of the same model, and a training of another one; prints a digest of all weights.

Arguments: number of steps of each of the three.
"""

import hashlib
import sys

import torch
from torch import nn


class Net(nn.Sequential):
    pass


class Other(nn.Sequential):
    pass


def train(net: nn.Module, steps: int) -> None:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.MSELoss()(net(torch.randn(16, 32)), torch.randn(16, 8)).backward()
        optimizer.step()


torch.manual_seed(0)
net, other = Net(nn.Linear(32, 8), nn.Dropout(0.1)), Other(nn.Linear(32, 64), nn.Linear(64, 8))
first, second, third = map(int, sys.argv[1:])
train(net, first)
net.eval()
with torch.no_grad():
    for _ in range(second):
        net(torch.randn(4, 32))
train(other, third)
weights = [weight.detach().numpy().tobytes() for weight in (*net.parameters(), *other.parameters())]
print(hashlib.sha256(b"".join(weights)).hexdigest())
