"""The tagger with one thing done as one should not."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import torch
from tagger import LENGTHS, Tagger, infer, train
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence


class OneByOne(Tagger):
    """Sentence by sentence, so that no padding is ever seen."""

    def encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        rows = [self.lstm(x[i : i + 1, :size])[0][0] for i, size in enumerate(lengths.tolist())]
        return pad_sequence(rows, batch_first=True)


def one_by_one() -> Callable[[], Tensor]:
    return infer(OneByOne())


def hashed(words: Tensor) -> Tensor:
    """Looks up each word by what its text hashes to, which is what the data set should have done once."""
    rows = []
    for row in words.tolist():
        digests = [hashlib.md5(f"word-{word}".lower().strip().encode()).hexdigest() for word in row]
        rows.append([word if int(digest, 16) >= 0 else 0 for word, digest in zip(row, digests, strict=True)])
    return torch.tensor(rows)


def slow_lookup(words: Tensor) -> Tensor:
    """Suffixes and shapes of words as features too, which nothing uses yet."""
    for _ in range(6):
        words = hashed(words)
    return words


def words_in_python() -> Callable[[], Tensor]:
    return train(Tagger(), slow_lookup)


# Nothing was changed, or so much that there is nothing to compare


class OtherOrder(Tagger):
    """Names and definitions in another order, and the last layer by a function."""

    def __init__(self) -> None:
        super().__init__()
        self.classifier = self.out
        self.rnn, self.layer_norm = self.lstm, self.norm
        del self.out, self.norm

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        states = self.layer_norm(self.encode(self.embedding(words), lengths))
        return nn.functional.linear(states, self.classifier.weight, self.classifier.bias)


def other_order() -> Callable[[], Tensor]:
    return infer(OtherOrder())


def longer() -> Callable[[], Tensor]:
    return infer(Tagger(), tuple(2 * size for size in LENGTHS))
