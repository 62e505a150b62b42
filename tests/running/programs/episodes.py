"""A policy that is asked once for each of a few moves, and updated after each of 90 episodes."""

import random

import torch
from torch import nn

torch.manual_seed(0)
moves = random.Random(0)
policy = nn.Sequential(nn.Linear(4, 2), nn.Softmax(-1))
optimizer = torch.optim.Adam(policy.parameters())
for _ in range(90):
    chances = [policy(torch.randn(1, 4))[0, 0] for _ in range(moves.randrange(3, 9))]
    optimizer.zero_grad()
    torch.stack(chances).log().sum().backward()
    optimizer.step()
