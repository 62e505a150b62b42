"""Keywords with a detour."""

from __future__ import annotations

from collections.abc import Callable

import torch
from spectrum import FFT, HOP, Frontend, Keywords, step_of
from torch import Tensor


class Double(Frontend):
    """The spectrogram in double precision, as NumPy had it."""

    def power(self, x: Tensor) -> Tensor:
        wide = torch.stft(x.double(), FFT, HOP, window=self.window.double(), return_complex=True)
        return wide.abs().square().float()


class Dithered(Keywords):
    """Noise against digital silence, whose strength somebody set to 0."""

    strength = 0.0

    def heard(self, x: Tensor) -> Tensor:
        return x + self.strength * torch.randn_like(x)


def double() -> Callable[[], Tensor]:
    return step_of(Keywords(Double))


def dithered() -> Callable[[], Tensor]:
    return step_of(Dithered())


def double_and_dithered() -> Callable[[], Tensor]:
    return step_of(Dithered(Double))
