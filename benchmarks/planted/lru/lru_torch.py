"""The recurrences of `lru.py` in PyTorch: the same weights and signals."""

import numpy as np
import torch
from torch import nn

SAMPLES, LENGTH, WIDTH, STATES, RANK, LAYERS = 48, 64, 128, 128, 8, 4


class Layer(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.into, self.spread = weight(WIDTH, RANK), weight(RANK, STATES)
        self.out = weight(STATES, WIDTH)

    def forward(self, x, decay):
        u = torch.sqrt(1 - decay**2) * ((x @ self.into) @ self.spread)
        h = torch.zeros_like(u[0])
        states = []
        for now in u.unbind(0):
            h = torch.addcmul(now, decay, h)
            states.append(h)
        h = torch.stack(states)
        return x + (h * torch.sigmoid(h)) @ self.out


class StepByStep(Layer):
    """As in the formula: what comes in, the state and what goes out, for one time after the other."""

    def forward(self, x, decay):
        h = x.new_zeros(SAMPLES, STATES)
        found = []
        for now in x.unbind(0):
            h = decay * h + torch.sqrt(1 - decay**2) * ((now @ self.into) @ self.spread)
            found.append(now + (h * torch.sigmoid(h)) @ self.out)
        return torch.stack(found)


def run(kind):
    generator = np.random.default_rng(0)

    def weight(*shape):
        return nn.Parameter(torch.from_numpy(generator.standard_normal(shape).astype(np.float32) / shape[0] ** 0.5))

    layers = nn.ModuleList(kind(weight) for _ in range(LAYERS))
    x = torch.from_numpy(np.random.default_rng(1).standard_normal((LENGTH, SAMPLES, WIDTH)).astype(np.float32))
    decay = torch.from_numpy(np.exp(-np.exp(np.linspace(-5, 0, STATES))).astype(np.float32))

    @torch.no_grad()
    def step():
        y = x
        for layer in layers:
            y = layer(y, decay)
        return y

    return step


def make_step():
    return run(Layer)


def step_by_step():
    return run(StepByStep)
