"""Learning from pairs: two views of each sample are to be more alike than any two samples are."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BATCH, CHANNELS, LENGTH, WIDTH, TEMPERATURE = 256, 4, 32, 48, 0.2
#: Of the similarities those of a sample with itself.
SAME = torch.eye(2 * BATCH, dtype=torch.bool)


class Encoder(nn.Module):
    """Signals (batch, channels, length) to unit vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(CHANNELS, 16, 5, 2, 2)
        self.second = nn.Conv1d(16, 32, 5, 4, 2)
        self.head = nn.Sequential(nn.Linear(32 * 4, 96), nn.ReLU(), nn.Linear(96, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.second(F.relu(self.first(x))))
        return F.normalize(self.head(x.flatten(1)), dim=1)


def view(signals: Tensor) -> Tensor:
    """Moved by a few places and flipped: nothing is random, so that two runs do the same."""
    shifts = torch.arange(len(signals)) % 5
    places = (torch.arange(LENGTH)[None, :] + shifts[:, None]) % LENGTH
    return signals.gather(2, places[:, None, :].expand(-1, CHANNELS, -1))


def loss_of(vectors: Tensor) -> Tensor:
    """vectors (2 batch, width): sample i and i + batch belong together."""
    similar = vectors @ vectors.T / TEMPERATURE
    count = len(vectors)
    similar = similar.masked_fill(SAME, -1e9)
    partners = (torch.arange(count) + count // 2) % count
    return F.cross_entropy(similar, partners)


def train(
    model: nn.Module,
    loss_of: Callable[[Tensor], Tensor] = loss_of,
    view: Callable[[Tensor], Tensor] = view,
    after: Callable[[Tensor], None] = lambda vectors: None,
    optimizer: Callable[[nn.Module], torch.optim.Optimizer] = lambda m: torch.optim.SGD(m.parameters(), lr=1e-2),
) -> Callable[[], Tensor]:
    signals = torch.randn(BATCH, CHANNELS, LENGTH, generator=torch.Generator().manual_seed(0))
    updates = optimizer(model)

    def step() -> Tensor:
        updates.zero_grad()
        vectors = model(torch.cat((signals, view(signals))))
        loss = loss_of(vectors)
        loss.backward()
        updates.step()
        after(vectors.detach())
        return loss.detach()

    return step


def make_train() -> Callable[[], Tensor]:
    return train(Encoder())
