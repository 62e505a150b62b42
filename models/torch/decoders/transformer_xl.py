"""Transformer-XL: relative positions, a memory of the segment before, an adaptive softmax; random weights.

Dai et al. 2019, by the form of the published code: a layer multiplies memory and segment by query, key and value, and
drops the queries of the memory; keys of all distances are made once for a batch; each token attends to itself and what
came before it, as many as the memory holds. Size base is transfo-xl-wt103, with 285,205,322 parameters. The memory of a
step is random, as wide as that of a whole segment before; the step computes the next one and does not use it. Words are
drawn by Zipf's law, so that common ones are common, which decides how much work a cluster is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from roofline.core.step import Step, Workload
from roofline.errors import InputError
from roofline.models._step import transformer_switches
from roofline.models.torch._adaptive import AdaptiveEmbedding, AdaptiveSoftmax
from roofline.models.torch._step import prepare, step


class Distances(nn.Module):
    """Sines and cosines of how far keys lie behind a query."""

    def __init__(self, hidden: int, clamp: int) -> None:
        super().__init__()
        self.clamp = clamp
        self.register_buffer("rates", 10000.0 ** (-torch.arange(0, hidden, 2) / hidden), persistent=False)

    def forward(self, keys: int) -> Tensor:
        """(keys, hidden), the farthest first."""
        far = torch.arange(keys - 1, -1, -1, device=self.rates.device, dtype=self.rates.dtype).clamp(max=self.clamp)
        angles = torch.outer(far, self.rates)
        return torch.cat((angles.sin(), angles.cos()), 1)


class Mask(nn.Module):
    """What a token does not see: what comes after it, and what is farther behind than the memory is long."""

    def forward(self, memory: int, like: Tensor) -> Tensor:
        """(seq, memory + seq), of the sequence of `like` (batch, seq, hidden)."""
        seq = like.shape[1]
        everything = torch.ones(seq, memory + seq, dtype=torch.bool, device=like.device)
        return everything.triu(1 + memory) | everything.tril()


class Memory(nn.Module):
    """The last hidden states, for the next segment."""

    def forward(self, memory: Tensor, states: list[Tensor]) -> Tensor:
        """(layers, batch, memory, hidden): the states of this segment come behind, and as many of the first ones go."""
        return torch.cat((memory, torch.stack(states).detach()), 2)[:, :, -memory.shape[2] :]


class Core(nn.Module):
    """Scores of content and of distance, softmax, and the mixing of values."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.content_bias = nn.Parameter(torch.zeros(hidden))
        self.distance_bias = nn.Parameter(torch.zeros(hidden))

    def forward(self, query: Tensor, key: Tensor, value: Tensor, distance: Tensor, mask: Tensor) -> Tensor:
        """query (batch, seq, hidden), key and value (batch, keys, hidden), distance (keys, hidden) to query's shape."""
        content, far = self._split(query + self.content_bias), self._split(query + self.distance_bias)
        scores = content @ self._split(key).mT + shifted(far @ self._split(distance[None]).mT)
        scores = (scores * (query.shape[-1] // self.heads) ** -0.5).masked_fill(mask, float("-inf"))
        return (scores.softmax(-1) @ self._split(value)).transpose(1, 2).flatten(2)

    def _split(self, hidden: Tensor) -> Tensor:
        """(batch, tokens, hidden) to (batch, heads, tokens, width)."""
        return hidden.unflatten(2, (self.heads, -1)).transpose(1, 2)


def shifted(scores: Tensor) -> Tensor:
    """Scores (batch, heads, seq, keys) by distance to scores by key: row i moves seq - 1 - i places to the left."""
    *first, seq, keys = scores.shape
    return functional.pad(scores, (1, 0)).view(*first, keys + 1, seq)[:, :, 1:].view(*first, seq, keys)


class Attention(nn.Module):
    """The products around the core; no biases."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.qkv = nn.Linear(hidden, 3 * hidden, bias=False)
        self.distance = nn.Linear(hidden, hidden, bias=False)
        self.core = Core(hidden, heads)
        self.output = nn.Linear(hidden, hidden, bias=False)

    def forward(self, hidden: Tensor, memory: Tensor, distances: Tensor, mask: Tensor) -> Tensor:
        """(batch, seq, hidden) with (batch, memory, hidden) before it to the same shape."""
        query, key, value = self.qkv(torch.cat((memory, hidden), 1)).chunk(3, -1)
        context = self.core(query[:, -hidden.shape[1] :], key, value, self.distance(distances), mask)
        return self.output(context)


class Layer(nn.Module):
    """Attention and FFN, each with dropout, residual sum and norm after it."""

    def __init__(self, dims: Mapping[str, Any]) -> None:
        super().__init__()
        hidden, rate = dims["hidden"], dims["dropout"]
        self.attention = Attention(hidden, dims["heads"])
        self.attention_norm = nn.LayerNorm(hidden)
        self.ffn = nn.Sequential(
            nn.Linear(hidden, dims["ffn"]), nn.ReLU(), nn.Dropout(rate), nn.Linear(dims["ffn"], hidden)
        )
        self.ffn_norm = nn.LayerNorm(hidden)
        self.dropout = nn.Dropout(rate)

    def forward(self, hidden: Tensor, memory: Tensor, distances: Tensor, mask: Tensor) -> Tensor:
        """(batch, seq, hidden) to the same shape."""
        hidden = self.attention_norm(hidden + self.dropout(self.attention(hidden, memory, distances, mask)))
        return self.ffn_norm(hidden + self.dropout(self.ffn(hidden)))


class TransformerXL(nn.Module):
    """The whole; see the module docstring."""

    def __init__(self, dims: Mapping[str, Any]) -> None:
        super().__init__()
        ends = (0, *dims["cutoffs"], dims["vocabulary"])
        self.embedding = AdaptiveEmbedding(ends, dims["hidden"], dims["divisor"])
        self.distances = Distances(dims["hidden"], dims["clamp"])
        self.mask = Mask()
        self.dropout = nn.Dropout(dims["dropout"])
        self.layers = nn.ModuleList(Layer(dims) for _ in range(dims["layers"]))
        self.memory = Memory()
        self.head = AdaptiveSoftmax(self.embedding)

    def forward(self, words: Tensor, memory: Tensor, labels: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """(batch, seq) word numbers and (layers, batch, memory, hidden) to log-probabilities and the next memory.

        The former are (tokens, words), or with labels (batch, seq) those of the labels (tokens).
        """
        length = memory.shape[2]
        hidden, states = self.dropout(self.embedding(words)), []
        distances, mask = self.dropout(self.distances(length + words.shape[1])), self.mask(length, hidden)
        for layer, before in zip(self.layers, memory, strict=True):
            states.append(hidden)
            hidden = layer(hidden, before, distances, mask)
        after = self.memory(memory, states)
        return self.head(self.dropout(hidden).flatten(0, 1), None if labels is None else labels.flatten()), after


def network(dims: Mapping[str, Any]) -> nn.Module:
    """Transformer-XL of these dimensions, called with word numbers, a memory and, to learn, labels."""
    return TransformerXL(dims)


def words(dims: Mapping[str, Any]) -> Tensor:
    """(batch, seq + 1) word numbers, each as likely as 1 over its rank; the same in every process."""
    likely = 1.0 / torch.arange(1, dims["vocabulary"] + 1, dtype=torch.float64)
    drawn = torch.multinomial(
        likely, dims["batch"] * (dims["seq"] + 1), replacement=True, generator=torch.Generator().manual_seed(0)
    )
    return drawn.view(dims["batch"], dims["seq"] + 1)


def loss(output: tuple[Tensor, Tensor], labels: Tensor) -> Tensor:
    """Cross entropy of the labels, whose log-probabilities the model gave."""
    return -output[0].mean()


def build(workload: Workload) -> Step:
    """One forward pass or one training step (next-word cross entropy, AdamW) of Transformer-XL."""
    if workload.options.get("attention", "eager") != "eager":
        raise InputError(f"No fused kernel has {workload.model}'s scores by distance: use attention=eager.")
    dims = prepare(workload)
    drawn = words(dims)
    labels = drawn[:, 1:].contiguous()
    model = network(dims)
    memory = torch.randn(dims["layers"], dims["batch"], dims["memory"], dims["hidden"])
    learns = {"labels": labels} if workload.mode == "train" else {}
    return step(
        workload,
        dims,
        model,
        {"words": drawn[:, :-1].contiguous(), "memory": memory, **learns},
        targets=labels,
        loss=loss,
        switches=transformer_switches(
            workload,
            dims,
            attention="eager",
            mask="causal, as long as the memory",
            kv_cache="off",
            loss="next-token cross entropy",
        ),
    )
