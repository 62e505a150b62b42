"""A training with dropout and fresh data in each step. Arguments: number of steps."""

import sys

import torch
from torch import nn


class Net(nn.Sequential):
    pass


torch.manual_seed(0)
net = Net(nn.Linear(64, 128), nn.GELU(), nn.Dropout(0.1), nn.Linear(128, 64))
optimizer = torch.optim.AdamW(net.parameters())
for _ in range(int(sys.argv[1])):
    x = torch.randn(16, 64)
    loss = nn.MSELoss()(net(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
