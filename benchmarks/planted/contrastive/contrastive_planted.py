"""The same with one thing done as one should not."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from contrastive import SAME, TEMPERATURE, Encoder, train
from torch import Tensor


def wide_loss(vectors: Tensor) -> Tensor:
    """Its softmax in double precision."""
    count = len(vectors)
    similar = (vectors @ vectors.T).double() / TEMPERATURE
    similar = similar.masked_fill(SAME, -1e9)
    partners = (torch.arange(count) + count // 2) % count
    return F.cross_entropy(similar, partners)


def loss_wide() -> Callable[[], Tensor]:
    return train(Encoder(), wide_loss)


def rank_metric(vectors: Tensor) -> None:
    """The places of the nearest, from distances in one dimension after the other: no product is needed."""
    lengths = vectors.abs().sum(1)
    table = (lengths[:, None] - lengths[None, :]).abs()
    order = table.argsort(dim=1)
    assert order.shape == table.shape


def ranked() -> Callable[[], Tensor]:
    return train(Encoder(), after=rank_metric)


# Nothing was changed


def transposed(vectors: Tensor) -> Tensor:
    """The same with other names, and mm instead of @."""
    size = vectors.shape[0]
    target = torch.remainder(torch.arange(size) + size // 2, size)
    logits = torch.mm(vectors, vectors.t()).div(TEMPERATURE)
    return torch.nn.CrossEntropyLoss()(logits.masked_fill(SAME, -1e9), target)


def other_words() -> Callable[[], Tensor]:
    return train(Encoder(), transposed)
