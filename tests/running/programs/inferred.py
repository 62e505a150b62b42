"""Inference with a model of two parts. Arguments: number of calls."""

import sys

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(32, 64), nn.Sequential(nn.GELU(), nn.Linear(64, 8))).eval()
with torch.inference_mode():
    for _ in range(int(sys.argv[1])):
        net(torch.randn(4, 32)).argmax()
