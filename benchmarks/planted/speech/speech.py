"""Letters from frames of sound: a GRU over them, trained by the CTC loss."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

FRAMES, BATCH, BANDS, HIDDEN, LETTERS, LABELS = 80, 8, 40, 96, 29, 14


class Speech(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.front = nn.Linear(BANDS, HIDDEN)
        self.gru = nn.GRU(HIDDEN, HIDDEN)
        self.letters = nn.Linear(HIDDEN, LETTERS)

    def forward(self, x):
        return self.letters(self.gru(F.relu(self.front(x)))[0]).log_softmax(-1)


def trained(model: nn.Module, after: Callable = lambda *_: None, clip: Callable = lambda *_: None) -> Callable:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(FRAMES, BATCH, BANDS, generator=generator)
    labels = torch.randint(1, LETTERS, (BATCH, LABELS), generator=generator)
    frames, lengths = torch.full((BATCH,), FRAMES), torch.full((BATCH,), LABELS)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    def step():
        optimizer.zero_grad()
        scores = model(x)
        loss = F.ctc_loss(scores, labels, frames, lengths)
        loss.backward()
        clip(model)
        optimizer.step()
        after(scores.detach(), labels)
        return loss.detach()

    return step


def make_train():
    return trained(Speech())
