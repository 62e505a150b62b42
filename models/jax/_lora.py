"""LoRA in JAX: a frozen projection with a low-rank update beside it, which is all that learns.

The same as `models/torch/_lora.py`, name for name: Hu et al. 2021, arXiv 2106.09685, as the library peft has it.
"""

from __future__ import annotations

from dataclasses import replace

from flax import nnx
from jax import Array

from roofline.models.jax._layers import Make, named

#: The initial A: uniform up to 1 / sqrt(width in), as of PyTorch's Linear: a variance of a third of its square.
_UNIFORM = nnx.initializers.variance_scaling(1 / 3, "fan_in", "uniform")


class LoRALinear(nnx.Module):
    """`base` plus the update, computed from the input and never added to the weights. Only the update is LoRAParam."""

    def __init__(self, base: nnx.Linear, rank: int, alpha: float, make: Make) -> None:
        self.base = base
        self.lora_A = _learned(replace(make, kernel=_UNIFORM).linear(base.in_features, rank, bias=False))
        zeros = replace(make, kernel=nnx.initializers.zeros_init())
        self.lora_B = _learned(zeros.linear(rank, base.out_features, bias=False))
        self.scale = alpha / rank

    def __call__(self, hidden: Array) -> Array:
        """(..., width in) to (..., width out)."""
        update = named("lora_B", self.lora_B, named("lora_A", self.lora_A, hidden))
        return named("base", self.base, hidden) + update * self.scale


def _learned(layer: nnx.Linear) -> nnx.Linear:
    layer.kernel = nnx.LoRAParam(layer.kernel[...])
    return layer
