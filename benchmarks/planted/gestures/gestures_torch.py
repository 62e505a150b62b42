"""The gestures of `gestures.py` in PyTorch: the same weights and signals."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

SAMPLES, TIMES, SENSORS, WIDTH, LAYERS, CLASSES = 12, 64, 12, 128, 3, 6


def weights():
    generator = np.random.default_rng(0)
    shapes = [(SENSORS, WIDTH), *[(3 * WIDTH, WIDTH)] * LAYERS, (WIDTH, CLASSES)]
    return [generator.standard_normal(s).astype(np.float32) / s[0] ** 0.5 for s in shapes]


def gestures():
    generator = np.random.default_rng(1)
    signals = generator.standard_normal((SAMPLES, TIMES, SENSORS)).astype(np.float32)
    return torch.from_numpy(signals), torch.from_numpy(generator.integers(0, CLASSES, SAMPLES))


class Layer(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.w = nn.Parameter(torch.from_numpy(w))

    def forward(self, x):
        wide = F.pad(x, (0, 0, 1, 1))
        y = F.silu(torch.cat([wide[:, :-2], x, wide[:, 2:]], 2) @ self.w)
        return x + y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-6)


class Gestures(nn.Module):
    def __init__(self):
        super().__init__()
        first, *between, last = weights()
        self.first, self.last = (nn.Parameter(torch.from_numpy(w)) for w in (first, last))
        self.layers = nn.ModuleList(Layer(w) for w in between)

    def forward(self, x):
        h = x @ self.first
        for layer in self.layers:
            h = layer(h)
        return h.mean(1) @ self.last


def make_train():
    model, (x, y) = Gestures(), gestures()
    rule = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    def step():
        rule.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        rule.step()
        return loss.detach()

    return step
