"""LoRA in PyTorch: a frozen projection with a low-rank update beside it, which is all that learns.

Hu et al. 2021, arXiv 2106.09685, equation 3 and section 4.1: W x + (alpha / r) B A x, B starting at 0. What the library
peft does by default is meant: alpha 8, no dropout, no biases, A uniform as PyTorch's Linear has it.
"""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor, nn


class LoRALinear(nn.Module):
    """`base`, frozen, plus the update. The update is computed from the input and never added to the weights."""

    def __init__(self, base: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        where = {"device": base.weight.device, "dtype": base.weight.dtype}
        self.base = base
        self.lora_A = nn.Linear(base.in_features, rank, bias=False, **where)
        self.lora_B = nn.Linear(rank, base.out_features, bias=False, **where)
        nn.init.zeros_(self.lora_B.weight)
        self.scale = alpha / rank

    def forward(self, hidden: Tensor) -> Tensor:
        """(..., width in) to (..., width out)."""
        updated: Tensor = self.base(hidden) + self.lora_B(self.lora_A(hidden)) * self.scale
        return updated


def add_lora(model: nn.Module, names: Collection[str], rank: int, alpha: float) -> None:
    """Freezes `model` and puts an update beside each Linear whose last name is one of `names`, in place."""
    model.requires_grad_(False)
    for path, layer in list(model.named_modules()):
        parent, _, name = path.rpartition(".")
        if name in names:
            assert isinstance(layer, nn.Linear), path
            with torch.device(layer.weight.device):
                setattr(model.get_submodule(parent), name, LoRALinear(layer, rank, alpha))
