"""N-BEATS: blocks explain a part of a series and take it away; trained on windows of many series."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

SERIES, LENGTH, BACK, AHEAD, BATCH, WIDTH, BLOCKS = 64, 400, 96, 24, 128, 256, 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(BACK, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU())
        self.back, self.ahead = nn.Linear(WIDTH, BACK), nn.Linear(WIDTH, AHEAD)

    def forward(self, x):
        h = self.net(x)
        return self.back(h), self.ahead(h)


class NBeats(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))

    def forward(self, x):
        said = 0
        for block in self.blocks:
            back, ahead = block(x)
            x, said = x - back, said + ahead
        return said


def history() -> Tensor:
    g = torch.Generator().manual_seed(1)
    t = torch.arange(LENGTH) / 24
    return torch.sin(6.28 * t + torch.rand(SERIES, 1, generator=g)) + 0.1 * torch.randn(SERIES, LENGTH, generator=g)


def windows(series: Tensor) -> Callable[[], tuple[Tensor, Tensor]]:
    """The first windows, cut out of one tensor at once."""
    all_ = series.unfold(1, BACK + AHEAD, 1).flatten(0, 1)
    scale = all_[:, :BACK].abs().mean(1, keepdim=True)

    def batch():
        some = all_[:BATCH] / scale[:BATCH]
        return some[:, :BACK], some[:, BACK:]

    return batch


def smape(said, true):
    return (200 * (said - true).abs() / (said.abs() + true.abs() + 1e-3)).mean()


def make_train(batches=windows, after=None) -> Callable[[], Tensor]:
    model = NBeats()
    batch = batches(history())
    rule = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    done = after(model) if after else lambda: None

    def step():
        x, y = batch()
        rule.zero_grad()
        loss = smape(model(x), y)
        loss.backward()
        rule.step()
        done()
        return loss.detach()

    return step
