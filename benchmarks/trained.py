"""A training that times its own steps, from one update to the next; prints their median [s].

Arguments: width and number of layers, samples, steps. Of 0 steps: as many as each line of standard input says, and the
median of the last two thirds of them, as other programs ran since the line before.
"""

import sys
import time
from itertools import pairwise

import torch
from torch import nn

width, layers, samples, steps = map(int, sys.argv[1:])
net = nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(layers)))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)


def median(steps: int, left_out: int) -> float:
    """Train so many steps; the median time of those behind the ones that are left out [s]."""
    ends = [time.perf_counter()]
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.randn(samples, width)).mean().backward()
        optimizer.step()
        ends.append(time.perf_counter())
    times = sorted(after - before for before, after in pairwise(ends[left_out:]))
    return times[len(times) // 2]


if steps:
    print(median(steps, 6))
else:
    for line in sys.stdin:
        print(median(int(line), int(line) // 3), flush=True)
