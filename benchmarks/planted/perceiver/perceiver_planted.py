"""The perceiver with one thing done as one should not."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from perceiver import LATENTS, Look, Perceiver, run
from torch import Tensor, nn


class Masked(Look):
    """Nothing is padded, but the mask says so in full."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        here = torch.ones(len(q), k.shape[2], dtype=torch.bool)
        mask = (here[:, None, None, :] & torch.ones(len(q), 1, LATENTS, 1, dtype=torch.bool)).expand(
            -1, q.shape[1], -1, -1
        )
        bias = torch.zeros(mask.shape).masked_fill(~mask, torch.finfo(q.dtype).min)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def masked() -> Callable[[], Tensor]:
    return run(Perceiver(Masked))


class Products(Look):
    """Attention as in the paper."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1) @ v


def products() -> Callable[[], Tensor]:
    return run(Perceiver(Products))


# Nothing was changed


def functional() -> Callable[[], Tensor]:
    """The model is called by torch.func, with its weights beside it."""
    model = Perceiver().eval()
    weights = {**dict(model.named_parameters()), **dict(model.named_buffers())}

    class Called(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.func.functional_call(model, weights, (x,))

    return run(Called())
