"""Adaptive embeddings and the adaptive softmax tied to them: rarer words in clusters with narrower vectors.

Baevski and Auli 2019, arXiv 1809.10853, and Grave et al. 2017, arXiv 1609.04309. Which cluster a word is in decides
where it is computed, so that shapes depend on the words.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional


class AdaptiveEmbedding(nn.Module):
    """A table per cluster, and a matrix that makes its vectors as wide as those of the model."""

    def __init__(self, ends: Sequence[int], hidden: int, divisor: int) -> None:
        """ends: 0, the first word of each further cluster, and the number of words."""
        super().__init__()
        self.ends, self.hidden = tuple(ends), hidden
        widths = [hidden // divisor**number for number in range(len(ends) - 1)]
        sizes = [end - start for start, end in pairwise(ends)]
        self.tables = nn.ModuleList(nn.Embedding(size, width) for size, width in zip(sizes, widths, strict=True))
        self.projections = nn.ParameterList(nn.Parameter(torch.randn(hidden, width) * 0.02) for width in widths)

    def forward(self, words: Tensor) -> Tensor:
        """(batch, seq) word numbers to (batch, seq, hidden)."""
        flat = words.flatten()
        found = torch.zeros(len(flat), self.hidden, dtype=self.projections[0].dtype, device=words.device)
        for (start, end), table, projection in zip(pairwise(self.ends), self.tables, self.projections, strict=True):
            places = places_in(flat, start, end)
            found = found.index_copy(0, places, functional.linear(table(flat[places] - start), projection))
        return (found * self.hidden**0.5).view(*words.shape, self.hidden)


def places_in(words: Tensor, start: int, end: int) -> Tensor:
    """Where the words of a cluster are."""
    return ((words >= start) & (words < end)).nonzero().squeeze(1)


class AdaptiveSoftmax(nn.Module):
    """Log-probabilities of the common words and of each cluster, and of the words inside of a cluster.

    Tables and all matrices but the first are those of the embedding.
    """

    def __init__(self, embedding: AdaptiveEmbedding) -> None:
        super().__init__()
        self.ends, hidden = embedding.ends, embedding.hidden
        clusters = len(self.ends) - 2
        self.tables = nn.ParameterList(table.weight for table in embedding.tables)
        self.projection = nn.Parameter(torch.randn(hidden, hidden) * 0.02)
        self.projections = nn.ParameterList(list(embedding.projections)[1:])
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(end - start)) for start, end in pairwise(self.ends))
        self.clusters = nn.Parameter(torch.zeros(clusters, hidden))
        self.cluster_biases = nn.Parameter(torch.zeros(clusters))

    def forward(self, hidden: Tensor, labels: Tensor | None) -> Tensor:
        """(tokens, hidden) to log-probabilities (tokens, words), or with labels (tokens) to those of the labels."""
        first = functional.linear(
            functional.linear(hidden, self.projection.T),
            torch.cat((self.tables[0], self.clusters)),
            torch.cat((self.biases[0], self.cluster_biases)),
        ).log_softmax(-1)
        common = self.ends[1]
        if labels is None:
            parts = [first[:, :common]]
            for number in range(len(self.projections)):
                parts.append(first[:, common + number, None] + self._inside(number, hidden))
            return torch.cat(parts, 1)
        # Of a rare word that of its cluster; every word has one entry of the first distribution.
        entry = labels
        for number, start in enumerate(self.ends[1:-1]):
            entry = torch.where(labels >= start, common + number, entry)
        found = first.gather(1, entry[:, None]).squeeze(1)
        for number, (start, end) in enumerate(pairwise(self.ends[1:])):
            places = places_in(labels, start, end)
            inside = self._inside(number, hidden[places]).gather(1, labels[places, None] - start).squeeze(1)
            found = found.index_add(0, places, inside)
        return found

    def _inside(self, number: int, hidden: Tensor) -> Tensor:
        """Log-probabilities of the words inside of a cluster, 0 being the first one after the common words."""
        narrow = functional.linear(hidden, self.projections[number].T)
        return functional.linear(narrow, self.tables[number + 1], self.biases[number + 1]).log_softmax(-1)
