"""Private training: a gradient of each sample by torch.func, cut to a length, and averaged."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, vmap

BATCH, IN, HIDDEN, OUT, LENGTH = 3, 64, 256, 10, 1.0


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(IN, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, OUT))


def gradients(loss_of, weights, x, y):
    return vmap(grad(loss_of), in_dims=(None, 0, 0))(weights, x, y)


def make_train(gradients=gradients):
    model = network()
    weights = {name: p.detach().clone() for name, p in model.named_parameters()}
    g = torch.Generator().manual_seed(1)
    x, y = torch.randn(BATCH, IN, generator=g), torch.randint(OUT, (BATCH,), generator=g)

    def loss_of(weights, x, y):
        return F.cross_entropy(functional_call(model, weights, (x[None],)), y[None])

    def step():
        found = gradients(loss_of, weights, x, y)
        length = torch.stack([v.flatten(1).norm(dim=1) for v in found.values()]).norm(dim=0)
        factor = (LENGTH / (length + 1e-6)).clamp_max(1)
        for name, v in found.items():
            weights[name].sub_(1e-3 * torch.einsum("b...,b->...", v, factor) / BATCH)
        return length

    return step
