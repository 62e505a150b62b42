"""A training that times its own steps, from one update to the next: as many as each line of standard input says.

Prints their median [s]. Arguments: width and number of layers, samples.
"""

import sys
import time
from itertools import pairwise
from statistics import median

import torch
from torch import nn

width, layers, samples = map(int, sys.argv[1:])
net = nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(layers)))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)

for line in sys.stdin:
    ends = [time.perf_counter()]
    for _ in range(int(line)):
        optimizer.zero_grad()
        net(torch.randn(samples, width)).mean().backward()
        optimizer.step()
        ends.append(time.perf_counter())
    print(median(after - before for before, after in pairwise(ends)), flush=True)
