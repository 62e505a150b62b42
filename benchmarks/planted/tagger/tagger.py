"""A tagger of words: embeddings, a two-way LSTM over packed sentences, and a score per tag."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

WORDS, EMBEDDING, HIDDEN, TAGS = 3000, 64, 64, 24
LENGTHS = (30, 28, 26, 25, 22, 20, 18, 17, 15, 14, 12, 10)


class Tagger(nn.Module):
    """Sentences, padded, to scores (sentence, word, tag)."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, EMBEDDING, padding_idx=0)
        self.lstm = nn.LSTM(EMBEDDING, HIDDEN, batch_first=True, bidirectional=True)
        self.norm = nn.LayerNorm(2 * HIDDEN)
        self.out = nn.Linear(2 * HIDDEN, TAGS)

    def encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(x, lengths, batch_first=True)
        return pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0]

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        return self.out(self.norm(self.encode(self.embedding(words), lengths)))


def data(lengths: tuple[int, ...] = LENGTHS) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    shape = (len(lengths), max(lengths))
    inside = torch.arange(shape[1]) < torch.tensor(lengths)[:, None]
    words = torch.randint(1, WORDS, shape, generator=generator) * inside
    tags = torch.randint(TAGS, shape, generator=generator)
    return words, tags.masked_fill(~inside, -100), torch.tensor(lengths)


def infer(model: nn.Module, lengths: tuple[int, ...] = LENGTHS) -> Callable[[], Tensor]:
    words, _, sizes = data(lengths)
    model.eval()

    def step() -> Tensor:
        with torch.no_grad():
            return model(words, sizes).argmax(-1)

    return step


def loss_of(scores: Tensor, tags: Tensor) -> Tensor:
    return F.cross_entropy(scores.flatten(0, 1), tags.flatten(), ignore_index=-100)


def train(model: nn.Module, prepare: Callable[[Tensor], Tensor] = lambda words: words) -> Callable[[], Tensor]:
    words, tags, sizes = data()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)

    def step() -> Tensor:
        optimizer.zero_grad()
        loss = loss_of(model(prepare(words), sizes), tags)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def make_step() -> Callable[[], Tensor]:
    return infer(Tagger())


def make_train() -> Callable[[], Tensor]:
    return train(Tagger())
