"""The shop of `shop.py` in PyTorch: the same weights and visits."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

VISITS, LENGTH, GOODS, SIZE = 32, 12, 1500, 64


class Shop(nn.Module):
    def __init__(self):
        super().__init__()
        generator = np.random.default_rng(0)

        def weight(*shape):
            return nn.Parameter(
                torch.from_numpy(generator.standard_normal(shape).astype(np.float32) / shape[-1] ** 0.5)
            )

        self.goods = weight(GOODS, SIZE)
        self.gates, self.fresh = weight(2 * SIZE, 2 * SIZE), weight(2 * SIZE, SIZE)

    def forward(self, seen):
        x = F.embedding(seen, self.goods)
        h = x.new_zeros(VISITS, SIZE)
        for t in range(LENGTH):
            keep, forget = torch.sigmoid(torch.cat([x[:, t], h], 1) @ self.gates).chunk(2, dim=1)
            h = keep * h + (1 - keep) * torch.tanh(torch.cat([x[:, t], forget * h], 1) @ self.fresh)
        return h @ self.goods.T


def make_train(also=lambda scores, bought: None):
    generator = np.random.default_rng(1)
    seen = torch.from_numpy(generator.integers(0, GOODS, (VISITS, LENGTH)))
    bought = torch.from_numpy(generator.integers(0, GOODS, VISITS))
    model = Shop()
    rule = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step():
        rule.zero_grad()
        scores = model(seen)
        loss = F.cross_entropy(scores, bought)
        loss.backward()
        rule.step()
        also(scores.detach(), bought)
        return loss.detach()

    return step


kept = []


def ranks(scores, bought):
    """At which place of a full list what was bought stands, in each step of training."""
    order = scores.argsort(dim=1, descending=True)
    place = (order == bought[:, None]).int().argmax(dim=1)
    kept[:] = [(1 / (place + 1)).mean()]


def ranked():
    return make_train(ranks)
