"""The products of the published networks that are no transformers, by shape."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from forms.products import BOTH, ONE, Convolution, Product, Products, attention, same


def dense(samples: int, widths: Sequence[int], gradients: int = ONE) -> Products:
    """Dense layers, one after the other; gradients: of the first one, whose input needs none unless layers precede."""
    return tuple(
        Product(samples, inner, outer, gradients=gradients if number == 0 else BOTH)
        for number, (inner, outer) in enumerate(pairwise(widths))
    )


def lenet5(samples: int) -> Products:
    """Return convolutions of 5 x 5 to 6 and to 16 channels, halved after each, and dense layers 256-120-84-10."""
    return (
        Convolution(28, 1, 6, 5, outputs=24, times=samples, gradients=ONE),
        Convolution(12, 6, 16, 5, outputs=8, times=samples),
        *dense(samples, (256, 120, 84, 10), gradients=BOTH),
    )


def _residual(batch: int, side: int, inner: int, outer: int, time: int = 0) -> Products:
    """Return two convolutions, one of 1 x 1 next to them where channels change, the embedded time if there is one."""
    return (
        same(side, inner, outer, times=batch),
        same(side, outer, outer, times=batch),
        *([same(side, inner, outer, kernel=1, times=batch)] if inner != outer else []),
        *([Product(batch, time, outer)] if time else []),
    )


def image_encoder(batch: int, side: int = 512) -> Products:
    """Return the encoder of Stable Diffusion's autoencoder, up to its 8 channels: 34,163,592 parameters.

    Two residual blocks at 128, 256, 512 and 512 channels, halved between them; two more around one attention.
    """
    products: Products = (same(side, 3, 128, times=batch, gradients=ONE),)
    before = 128
    for number, channels in enumerate((128, 256, 512, 512)):
        products += (*_residual(batch, side, before, channels), *_residual(batch, side, channels, channels))
        if number < 3:  # one row and one column of zeros behind the image
            products += (Convolution(side, channels, channels, 3, outputs=side // 2, stride=2, times=batch),)
            side //= 2
        before = channels
    places = side * side
    return (
        *products,
        *_residual(batch, side, 512, 512) * 2,
        *[Product(batch * places, 512, 512)] * 4,
        *attention(places, places, heads=1, width=512, times=batch),
        same(side, 512, 8, times=batch),
    )


def _spatial(batch: int, side: int, channels: int, words: int, context: int) -> Products:
    """Return a transformer block between convolutions of 1 x 1: attention to itself and to the text, a gated layer."""
    places, heads = side * side, 8
    width = channels // heads
    return (
        *[same(side, channels, channels, kernel=1, times=batch)] * 2,
        *[Product(batch * places, channels, channels)] * 6,  # query, key, value, out; and query, out to the text
        *[Product(batch * words, context, channels)] * 2,
        *attention(places, places, heads, width, times=batch),
        *attention(places, words, heads, width, times=batch),
        Product(batch * places, channels, 8 * channels),
        Product(batch * places, 4 * channels, channels),
    )


def denoiser(batch: int, side: int = 64, words: int = 77, context: int = 768) -> Products:
    """Return the UNet of Stable Diffusion 1.4, one evaluation: 859,520,964 parameters.

    Two residual blocks at 320, 640, 1280 and 1280 channels on the way down, three on the way up, which take what the
    way down left as further channels; a transformer block after each, but at the lowest resolution, and one in the
    middle.
    """
    time, widths = 1280, (320, 640, 1280, 1280)
    products: Products = (
        Product(batch, 320, time),
        Product(batch, time, time),
        same(side, 4, 320, times=batch),
    )
    skips, before = [320], 320
    for level, channels in enumerate(widths):
        for _ in range(2):
            products += _residual(batch, side, before, channels, time)
            products += _spatial(batch, side, channels, words, context) if level < 3 else ()
            before = channels
            skips.append(before)
        if level < 3:
            products += (Convolution(side, before, before, 3, outputs=side // 2, stride=2, padding=1, times=batch),)
            side //= 2
            skips.append(before)
    products += _residual(batch, side, before, before, time) * 2
    products += _spatial(batch, side, before, words, context)
    for level, channels in reversed(list(enumerate(widths))):
        for _ in range(3):
            products += _residual(batch, side, before + skips.pop(), channels, time)
            products += _spatial(batch, side, channels, words, context) if level < 3 else ()
            before = channels
        if level > 0:
            side *= 2
            products += (same(side, before, before, times=batch),)
    return (*products, same(side, before, 4, times=batch))
