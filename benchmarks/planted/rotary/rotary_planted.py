"""The decoder with one thing, or two, done as one should not."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from rotary import (
    GROUPS,
    HEADS,
    LAYERS,
    LONGEST,
    SIZE,
    WIDTH,
    Attention,
    Decoder,
    prefill,
    rotary_tables,
    tokens,
    train,
)
from torch import Tensor


class TablesPerLayer(Attention):
    """Every layer computes the angles of the longest text there may be, and takes the few that it needs."""

    def tables(self, x: Tensor, tables: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        cos, sin = rotary_tables(torch.arange(LONGEST))
        return cos[: x.shape[1]], sin[: x.shape[1]]


def tables_per_layer() -> Callable[[], Tensor]:
    return prefill(Decoder(attention=TablesPerLayer), tokens())


class Written(Attention):
    """Attention as in the first version of every such model: products, a mask and a softmax."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(SIZE)
        scores = scores + mask
        weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
        return torch.matmul(weights, v)


def written_attention() -> Callable[[], Tensor]:
    return prefill(Decoder(layers=2, attention=Written), tokens(length=320))


class ByHead(Attention):
    """One head after the other, and their results put together."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        heads = []
        for head in range(HEADS):
            scores = q[:, head] @ k[:, head].transpose(1, 2) * SIZE**-0.5 + mask
            heads.append(scores.softmax(-1) @ v[:, head])
        return torch.stack(heads, dim=1)


def by_head() -> Callable[[], Tensor]:
    return prefill(Decoder(attention=ByHead), tokens())


class MaskOfLists(Decoder):
    """The mask is written in Python lists whenever it is needed."""

    def mask(self, length: int) -> Tensor:
        rows = [[0.0 if key <= query else -math.inf for key in range(length)] for query in range(length)]
        return torch.tensor(rows)


def mask_of_lists() -> Callable[[], Tensor]:
    return prefill(MaskOfLists(), tokens())


class HandAdam(torch.optim.Optimizer):
    """AdamW from its paper, parameter by parameter."""

    def __init__(self, parameters: object, lr: float) -> None:
        super().__init__(parameters, {"lr": lr})  # type: ignore[arg-type]
        self.times = 0

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        self.times += 1
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["m"], state["v"] = torch.zeros_like(p), torch.zeros_like(p)
                state["m"] = 0.9 * state["m"] + 0.1 * p.grad
                state["v"] = 0.999 * state["v"] + 0.001 * p.grad * p.grad
                m = state["m"] / (1 - 0.9**self.times)
                v = state["v"] / (1 - 0.999**self.times)
                p.copy_(p - group["lr"] * 0.01 * p - group["lr"] * m / (v.sqrt() + 1e-8))


def hand_adam() -> Callable[[], Tensor]:
    model = Decoder()
    return train(model, tokens(length=64), HandAdam(model.parameters(), lr=1e-4))


def with_cache() -> Callable[[], Tensor]:
    """Keys and values get a place each, for the longest text that there may be, which is made anew for each text."""
    inner = prefill(Decoder(), tokens())

    def step() -> Tensor:
        cache = torch.zeros(LAYERS, 2, 1, GROUPS, 8 * LONGEST, SIZE)
        scores = inner()
        assert cache.shape[-2] > scores.shape[1]
        return scores

    return step


def head_and_mask() -> Callable[[], Tensor]:
    """Two causes: head by head, and the mask of lists."""
    return prefill(MaskOfLists(attention=ByHead), tokens())


# Nothing was changed, or so much that there is nothing to compare


class Twice(Attention):
    """Another order of definitions, and the scale given instead of left to its default."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = self.o_proj
        del self.o_proj

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=SIZE**-0.5)

    def forward(self, x: Tensor, tables: tuple[Tensor, Tensor], mask: Tensor) -> Tensor:
        value = self.split(self.v_proj(x), GROUPS)
        key = self.rotate(self.split(self.k_proj(x), GROUPS), tables)
        query = self.rotate(self.split(self.q_proj(x), HEADS), tables)
        key, value = (one.repeat_interleave(HEADS // GROUPS, dim=1) for one in (key, value))
        return self.dense(self.attend(query, key, value, mask).transpose(1, 2).reshape(*x.shape[:2], WIDTH))


def renamed() -> Callable[[], Tensor]:
    return prefill(Decoder(attention=Twice), tokens())


def one_layer_more() -> Callable[[], Tensor]:
    return prefill(Decoder(layers=4), tokens())
