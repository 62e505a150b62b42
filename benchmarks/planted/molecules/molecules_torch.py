"""The molecules of `molecules.py` in PyTorch: the same weights, bonds, energies."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

MOLECULES, ATOMS, BONDS, WIDTH, LAYERS = 24, 16, 24, 64, 3
ALL = MOLECULES * ATOMS


class Layer(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.start, self.end = weight(WIDTH), weight(WIDTH)
        self.value, self.up, self.down = weight(WIDTH, WIDTH), weight(WIDTH, 4 * WIDTH), weight(4 * WIDTH, WIDTH)

    def added(self, x, end, rows):
        return x.index_add(0, end, rows)

    def forward(self, x, start, end):
        value = x @ self.value
        score = F.leaky_relu((value @ self.start)[start] + (value @ self.end)[end], 0.2)
        score = torch.exp(score - score.detach().max())
        share = score / (self.added(score.new_zeros(ALL), end, score)[end] + 1e-9)
        x = self.added(x, end, share[:, None] * value[start])
        return x + F.elu(x @ self.up) @ self.down


class Energy(nn.Module):
    def __init__(self, layer=Layer):
        super().__init__()
        generator = np.random.default_rng(0)

        def weight(*shape):
            return nn.Parameter(
                torch.from_numpy((generator.standard_normal(shape) / shape[0] ** 0.5).astype(np.float32))
            )

        self.layers = nn.ModuleList(layer(weight) for _ in range(LAYERS))
        self.energy = weight(WIDTH)

    def forward(self, x, start, end):
        for layer in self.layers:
            x = layer(x, start, end)
        return (x @ self.energy).view(MOLECULES, ATOMS).sum(1)


def molecules():
    generator = np.random.default_rng(1)
    ends = generator.integers(0, ATOMS, (2, MOLECULES, BONDS)) + ATOMS * np.arange(MOLECULES)[:, None]
    atoms, energies = generator.standard_normal((ALL, WIDTH)), generator.standard_normal(MOLECULES)
    atoms, energies = (torch.from_numpy(a.astype(np.float32)) for a in (atoms, energies))
    return atoms, *torch.from_numpy(ends.reshape(2, -1)), energies


def make_train(layer=Layer):
    model, (*bound, energies) = Energy(layer), molecules()
    rule = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)

    def step():
        rule.zero_grad()
        loss = F.mse_loss(model(*bound), energies)
        loss.backward()
        rule.step()
        return loss.detach()

    return step


class OneByOne(Layer):
    """Molecules are gone through one after the other."""

    def added(self, x, end, rows):
        x = x.clone()
        for ends, messages in zip(end.chunk(MOLECULES), rows.chunk(MOLECULES), strict=True):
            x.index_add_(0, ends, messages)
        return x


def molecule_by_molecule():
    return make_train(OneByOne)
