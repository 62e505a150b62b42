"""The experts with one thing done as one should not."""

from __future__ import annotations

from collections.abc import Callable

import torch
from experts import CHOSEN, EXPERTS, TOKENS, Mixture, infer
from torch import Tensor


class ByToken(Mixture):
    """Asks for each token where it goes, one number at a time."""

    def mix(self, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
        lists: list[list[int]] = [[] for _ in range(EXPERTS)]
        flat, all_ = weights.flatten(), chosen.flatten()
        for place in range(TOKENS * CHOSEN):
            lists[int(all_[place].item())].append(place)
        out = torch.zeros_like(x)
        for expert, places in zip(self.experts, lists, strict=True):
            where = torch.tensor(places, dtype=torch.long)
            tokens = where // CHOSEN
            out.index_add_(0, tokens, expert(x[tokens]) * flat[where, None])
        return out


def by_token() -> Callable[[], Tensor]:
    return infer(ByToken)
