"""One wide layer without a framework's modules, as a plain callable, and a copy of it that takes fresh memory."""

from __future__ import annotations

from collections.abc import Callable

import torch

SAMPLES, INPUTS, UNITS, OUTPUTS = 4608, 128, 2048, 32


def _parts() -> tuple[torch.Tensor, ...]:
    torch.manual_seed(0)
    return (
        torch.randn(SAMPLES, INPUTS),
        torch.randn(INPUTS, UNITS),
        torch.randn(UNITS),
        torch.randn(UNITS, OUTPUTS),
        torch.randn(OUTPUTS),
    )


def make_step() -> Callable[[], object]:
    """The hidden units lie in memory that is kept from step to step."""
    x, up, up_bias, down, down_bias = _parts()
    hidden, active = torch.empty(SAMPLES, UNITS), torch.empty(SAMPLES, UNITS)
    result = torch.empty(SAMPLES, OUTPUTS)

    def run() -> object:
        torch.addmm(up_bias, x, up, out=hidden)
        torch.clamp_min(hidden, 0.0, out=active)
        return torch.addmm(down_bias, active, down, out=result)

    return run


def fresh_memory() -> Callable[[], object]:
    """Every op takes fresh memory."""
    x, up, up_bias, down, down_bias = _parts()

    def run() -> object:
        hidden = torch.addmm(up_bias, x, up)
        active = torch.clamp_min(hidden, 0.0)
        return torch.addmm(down_bias, active, down)

    return run
