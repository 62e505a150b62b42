"""A training with dropout, an inference of the same model, and a training of another one.

Prints a digest of all weights, and what else must not change; then a layer raises an error that nothing catches.
Arguments: number of steps of each of the three.
"""

import gc
import hashlib
import random
import sys
import threading
import warnings

import numpy as np
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


class Wrong(nn.Module):
    def forward(self, x):
        raise ValueError(x)


torch.manual_seed(0)
random.seed(0)
np.random.seed(0)
net, other = Net(nn.Linear(32, 8), nn.Dropout(0.1)), Other(nn.Linear(32, 64), nn.Linear(64, 8))
first, second, third = map(int, sys.argv[1:4])
train(net, first)
net.eval()
with torch.no_grad():
    for _ in range(second):
        net(torch.randn(4, 32))
train(other, third)
weights = [weight.detach().numpy().tobytes() for weight in (*net.parameters(), *other.parameters())]
print(hashlib.sha256(b"".join(weights)).hexdigest())
print(torch.rand(1).item(), random.getstate()[1][-1], np.random.get_state()[2])
print(threading.active_count(), torch.get_num_threads(), sys.getprofile(), sys.gettrace(), len(warnings.filters))
print(gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), "matplotlib" in sys.modules)
print(torch.is_grad_enabled(), len(nn.modules.module._global_forward_hooks), torch.get_default_dtype())
try:
    Wrong()(1)
except ValueError as error:
    raise TypeError from error
