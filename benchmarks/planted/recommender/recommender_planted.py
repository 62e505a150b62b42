"""The recommender with one thing, or two, done as one should not."""

from __future__ import annotations

from collections.abc import Callable

import torch
from recommender import BAG, BATCH, ROWS, TABLES, WIDTH, Bags, Clicks, Recommender, data, infer, train
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset


class Padded(nn.Module):
    """Looks up all items of all bags, and adds up what is no padding."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(ROWS, WIDTH) for _ in range(TABLES))

    def forward(self, items: list[Tensor], offsets: Tensor) -> Tensor:
        sums = []
        for table, bag in zip(self.tables, items, strict=True):
            bag = bag.view(-1, BAG)
            sums.append((table(bag) * (bag != 0).unsqueeze(-1).float()).sum(dim=1))
        return torch.stack(sums, dim=1)


def padded_bags() -> Callable[[], Tensor]:
    return infer(Recommender(Padded()))


def dense_gradients() -> Callable[[], Tensor]:
    """The tables' gradients are as large as the tables, whoever was seen."""
    return train(Recommender(Bags(sparse=False)))


class Samples(Dataset):
    """One sample at a time, each a few tensors."""

    def __init__(self, clicks: Clicks) -> None:
        self.clicks = clicks

    def __len__(self) -> int:
        return BATCH

    def __getitem__(self, i: int) -> tuple[Tensor, Tensor]:
        items = torch.stack([bag[i * BAG : (i + 1) * BAG] for bag in self.clicks.items])
        return self.clicks.numbers[i], items


def loaded() -> Callable[[], Tensor]:
    """A data loader of no workers collates the samples while the step waits."""
    clicks = data()
    loader = DataLoader(Samples(clicks), batch_size=BATCH)

    def source() -> Clicks:
        numbers, items = next(iter(loader))
        bags = list(items.transpose(0, 1).reshape(TABLES, -1).unbind(0))
        return Clicks(numbers, bags, clicks.offsets, clicks.clicked)

    return infer(Recommender(), source)


def area_under_curve(scores: Tensor, clicked: Tensor) -> None:
    """Compares each that was clicked with each that was not, for three scores in turn."""
    for temperature in (1.0, 2.0, 4.0):
        probability = torch.sigmoid(scores / temperature)
        above = (probability[:, None] > probability[None, :]).float()
        other = (clicked[:, None] > clicked[None, :]).float()
        value = (above * other).sum() / other.sum()
        ranks = torch.sort(probability.repeat(8)).values
        assert len(ranks) > value


def metric_and_loader() -> Callable[[], Tensor]:
    """Two causes: the metric, and the loader."""
    inner, clicked = loaded(), data().clicked

    def step() -> Tensor:
        scores = inner()
        area_under_curve(scores, clicked)
        return scores

    return step


# So much was changed that there is nothing to compare


def wider() -> Callable[[], Tensor]:
    return infer(Recommender(top=768))
