"""What a denoising step of Stable Diffusion 1.4 is in all frameworks: how much noise there is, and the guidance."""

from __future__ import annotations

from math import prod, sqrt

GUIDANCE = 7.5  # how far from the step without a text: the published default
#: A step in the middle of 50 out of 1000, as the published offset of 1 has them: 981, 961, ..., 21, 1.
NOW, NEXT = 501, 481
NOISES = 1000
#: The first and the last variance, whose roots lie evenly (`scaled_linear` in the published configuration).
FIRST_VARIANCE, LAST_VARIANCE = 0.00085, 0.012


def kept(number: int) -> float:
    """Which part of the image's variance is left at a noise level, alpha bar in the papers."""
    first, last = sqrt(FIRST_VARIANCE), sqrt(LAST_VARIANCE)
    return prod(1 - (first + (last - first) * each / (NOISES - 1)) ** 2 for each in range(number + 1))
