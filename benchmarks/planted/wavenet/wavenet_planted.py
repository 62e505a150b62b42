"""Copies of the stack of convolutions with one cause planted; all compute the same function."""

from __future__ import annotations

import json

import torch
from torch import Tensor
from torch.nn import functional
from wavenet import Layer, variant


class Sliced(Layer):
    def gated(self, signal: Tensor, gate: Tensor) -> Tensor:
        pairs = zip(signal.split(32, -1), gate.split(32, -1), strict=True)
        return torch.cat([super(Sliced, self).gated(one, two) for one, two in pairs], -1)


class Noisy(Layer):
    def enter(self, x: Tensor) -> Tensor:
        return super().enter(x + 0.0 * torch.rand_like(x))


class Turned(Layer):
    def leave(self, x: Tensor) -> Tensor:
        return turned(super().leave(turned(x)))


def turned(x: Tensor) -> Tensor:
    """To channels last, and back."""
    return x.transpose(1, 2).contiguous().transpose(1, 2).contiguous()


class NormedWeights(Layer):
    """The weights are a direction times a length, as when `remove_weight_norm` was forgotten."""

    def __init__(self, dilation: int) -> None:
        super().__init__(dilation)
        for name in ("taps", "mix"):
            weight = getattr(self, name).weight.detach()
            self.register_buffer(f"{name}_length", weight.norm(dim=(1, 2), keepdim=True), persistent=False)

    def enter(self, x: Tensor) -> Tensor:
        weight = self.taps.weight * (self.taps_length / self.taps.weight.norm(dim=(1, 2), keepdim=True))
        return functional.conv1d(functional.pad(x, (self.dilation, 0)), weight, self.taps.bias, dilation=self.dilation)

    def leave(self, x: Tensor) -> Tensor:
        weight = self.mix.weight * (self.mix_length / self.mix.weight.norm(dim=(1, 2), keepdim=True))
        return functional.conv1d(x, weight, self.mix.bias)


LINES: list[str] = []


def _write(result: Tensor) -> None:
    """The last sample of sound, as a line of JSON."""
    LINES[:] = [json.dumps({"levels": result[-1, :, ::16].numpy().tolist()})]


# --------------------------------------------------------------------------------------------------------- the copies

#: The gate takes 32 places at a time, and the parts are joined.
gate_slices = variant(layer=Sliced)
#: Noise whose strength is 0.
noise = variant(layer=Noisy)
#: What goes into the last product of a layer and what comes out is laid out the other way and back.
transposes = variant(layer=Turned)
#: Each weight is normalised anew before it is used.
weight_norm = variant(layer=NormedWeights)
#: Part of the result is written as JSON.
json_line = variant(after=_write)
