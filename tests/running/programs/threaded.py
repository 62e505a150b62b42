"""A training in a thread of its own."""

import threading

import torch
from torch import nn

net = nn.Linear(8, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)


def train() -> None:
    for _ in range(40):
        net(torch.randn(2, 8)).mean().backward()
        optimizer.step()


thread = threading.Thread(target=train)
thread.start()
thread.join()
