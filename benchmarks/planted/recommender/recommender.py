"""What somebody will click: bags of items seen, embedded and added up, numbers, and products of all pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

TABLES, ROWS, WIDTH, BAG, NUMBERS, BATCH = 6, 50000, 32, 12, 13, 256


@dataclass
class Clicks:
    """numbers (batch, NUMBERS), items and offsets per table, and whether it was clicked."""

    numbers: Tensor
    items: list[Tensor]
    offsets: Tensor
    clicked: Tensor


def data(batch: int = BATCH) -> Clicks:
    generator = torch.Generator().manual_seed(0)
    return Clicks(
        torch.randn(batch, NUMBERS, generator=generator),
        [torch.randint(1, ROWS, (batch * BAG,), generator=generator) for _ in range(TABLES)],
        torch.arange(0, batch * BAG, BAG),
        torch.randint(2, (batch,), generator=generator).float(),
    )


class Bags(nn.Module):
    """The sum of the embeddings of each bag, table by table: (batch, table, width)."""

    def __init__(self, sparse: bool = True) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(ROWS, WIDTH, mode="sum", sparse=sparse) for _ in range(TABLES))

    def forward(self, items: list[Tensor], offsets: Tensor) -> Tensor:
        return torch.stack([table(bag, offsets) for table, bag in zip(self.tables, items, strict=True)], dim=1)


class Recommender(nn.Module):
    """As in DLRM."""

    def __init__(self, bags: nn.Module | None = None, top: int = 512) -> None:
        super().__init__()
        self.bags = bags or Bags()
        self.bottom = nn.Sequential(nn.Linear(NUMBERS, 128), nn.ReLU(), nn.Linear(128, WIDTH), nn.ReLU())
        pairs = (TABLES + 1) * TABLES // 2
        self.top = nn.Sequential(nn.Linear(WIDTH + pairs, top), nn.ReLU(), nn.Linear(top, top), nn.ReLU())
        self.out = nn.Linear(top, 1)
        self.register_buffer("lower", torch.tril_indices(TABLES + 1, TABLES + 1, -1))

    def chosen(self, products: Tensor) -> Tensor:
        return products[:, self.lower[0], self.lower[1]]

    def forward(self, clicks: Clicks) -> Tensor:
        dense = self.bottom(clicks.numbers)
        all_ = torch.cat((dense[:, None], self.bags(clicks.items, clicks.offsets)), dim=1)
        products = torch.bmm(all_, all_.transpose(1, 2))
        return self.out(self.top(torch.cat((dense, self.chosen(products)), dim=1)))[:, 0]


def infer(model: nn.Module, source: Callable[[], Clicks] | None = None) -> Callable[[], Tensor]:
    clicks = data()
    model.eval()

    def step() -> Tensor:
        with torch.no_grad():
            return torch.sigmoid(model(source() if source else clicks))

    return step


def bce(scores: Tensor, clicked: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(scores, clicked)


def train(
    model: nn.Module,
    loss_of: Callable[[Tensor, Tensor], Tensor] = bce,
    after: Callable[[Tensor, Tensor], None] = lambda scores, clicked: None,
) -> Callable[[], Tensor]:
    clicks = data()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)

    def step() -> Tensor:
        optimizer.zero_grad()
        scores = model(clicks)
        loss = loss_of(scores, clicks.clicked)
        loss.backward()
        optimizer.step()
        after(scores.detach(), clicks.clicked)
        return loss.detach()

    return step


def make_step() -> Callable[[], Tensor]:
    return infer(Recommender())


def make_train() -> Callable[[], Tensor]:
    return train(Recommender())
