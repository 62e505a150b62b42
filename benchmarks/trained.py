"""A training that times its own steps, from one update to the next; prints their median [s].

Arguments: width and number of layers, samples, steps.
"""

import sys
import time
from itertools import pairwise

import torch
from torch import nn

width, layers, samples, steps = map(int, sys.argv[1:])
net = nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(layers)))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
ends = [time.perf_counter()]
for _ in range(steps):
    optimizer.zero_grad()
    net(torch.randn(samples, width)).mean().backward()
    optimizer.step()
    ends.append(time.perf_counter())
times = sorted(after - before for before, after in pairwise(ends[6:]))
print(times[len(times) // 2])
