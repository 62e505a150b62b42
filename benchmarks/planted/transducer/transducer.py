"""A transducer: sounds and letters meet in a joint network, and all alignments are summed."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BATCH, FRAMES, LETTERS, HIDDEN, WORDS, BANDS = 3, 32, 15, 192, 160, 40


class Joint(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(HIDDEN, WORDS)

    def forward(self, sound: Tensor, text: Tensor) -> Tensor:
        return self.out(torch.tanh(sound[:, :, None] + text[:, None]))


def aligned(log_p: Tensor, labels: Tensor) -> Tensor:
    """Minus the logarithm of the sum over alignments, one diagonal after the other, all samples at once."""
    frames, letters = log_p.shape[1], log_p.shape[2]
    blank = log_p[..., 0]
    emit = log_p[:, :, :-1].gather(3, labels[:, None, :, None].expand(-1, frames, -1, 1))[..., 0]
    row = torch.cat((torch.zeros(len(log_p), 1), emit[:, 0].cumsum(1)), dim=1)
    for t in range(1, frames):
        # alpha[t, u] = logsumexp(alpha[t-1, u] + blank, alpha[t, u-1] + emit): a scan along u
        down = row + blank[:, t - 1]
        along = torch.cat((torch.zeros(len(log_p), 1), emit[:, t].cumsum(1)), dim=1)
        row = torch.logcumsumexp(down - along, dim=1) + along
    assert row.shape[1] == letters
    return -(row[:, -1] + blank[:, -1, -1]).mean()


class Transducer(nn.Module):
    def __init__(self, joint=Joint):
        super().__init__()
        torch.manual_seed(0)
        self.sound = nn.Sequential(nn.Linear(BANDS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN))
        self.text = nn.Embedding(WORDS, HIDDEN)
        self.joint = joint()

    def forward(self, x, labels):
        text = self.text(F.pad(labels, (1, 0)))
        return self.joint(self.sound(x), text).log_softmax(-1)


def train(model, loss_of=aligned):
    g = torch.Generator().manual_seed(1)
    x, labels = torch.randn(BATCH, FRAMES, BANDS, generator=g), torch.randint(1, WORDS, (BATCH, LETTERS), generator=g)
    rule = torch.optim.SGD(model.parameters(), lr=1e-4)

    def step():
        rule.zero_grad()
        loss = loss_of(model(x, labels), labels)
        loss.backward()
        rule.step()
        return loss.detach()

    return step


def make_train():
    return train(Transducer())
