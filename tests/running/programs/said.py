"""Two updates of one optimizer in what the program calls a step."""

import torch
from torch import nn

import roofline

torch.manual_seed(0)
net = nn.Linear(32, 64)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(70):
    for _ in range(2):
        optimizer.zero_grad()
        net(torch.randn(16, 32)).mean().backward()
        optimizer.step()
    roofline.step()
