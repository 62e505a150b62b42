"""Closed forms of the models of images: FLOPs of their products, by block, and numbers of parameters."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from math import ceil
from typing import Any

from work import Work, twice


def same_convolution(side: int, width_in: int, width_out: int, times: int) -> int:
    """3 x 3 with padding 1: of 3 taps a place, the first and the last in a row and in a column lack one."""
    return 2 * times * width_in * width_out * (3 * side - 2) ** 2


def segment_anything(d: dict[str, Any], mode: str) -> dict[str, Work]:
    batch, hidden, out, side = d["batch"], d["hidden"], d["out"], d["image"] // d["patch"]
    patches = batch * side * side
    blocks = {
        # Patches of 16 x 16 x 3 numbers, [T, 768] x [768, H]; nobody asks for the gradient of the image.
        "patch embedding": Work(first := 2 * patches * d["patch"] ** 2 * 3 * hidden, first),
        # [T, H] x [H, F] and [T, F] x [F, H], without what fills windows up
        "FFN": twice(d["layers"] * 2 * 2 * patches * hidden * d["ffn"]),
        # [T, H] x [H, O], and a convolution of 3 x 3
        "neck": twice(2 * patches * hidden * out + same_convolution(side, out, out, batch)),
    }
    projections = core = 0
    for layer in range(1, d["layers"] + 1):
        everywhere = layer % d["global_every"] == 0
        length = side if everywhere else d["window"]
        windows = batch * (1 if everywhere else ceil(side / d["window"]) ** 2)
        tokens = windows * length**2
        projections += 4 * 2 * tokens * hidden * hidden  # query, key, value and the output
        core += 2 * 2 * tokens * length**2 * hidden  # Q K^T and P V
        core += 2 * 2 * tokens * length * hidden  # each query with a vector per row, and one per column
    blocks |= {"attention projections": twice(projections), "attention core": twice(core)}
    if mode == "train":
        return blocks
    # Two points and one that fills up: (x, y) by a table [2, O / 2]; so is the grid of patches, once for all images.
    blocks["prompt encoder"] = Work(2 * (batch * 3 + side * side) * 2 * (out // 2), 0)
    # The prompt's 3 tokens, 4 for masks and one for their quality against T patches; half as wide, but to each other.
    tokens, half = 8 * batch, out // 2
    itself = 4 * 2 * tokens * out * out + 2 * 2 * tokens * 8 * out
    across = (
        2 * 2 * (tokens + patches) * out * half + 2 * 2 * tokens * side * side * half
    )  # four projections, two products
    decoder = d["decoder_layers"] * (itself + 2 * across + 2 * 2 * tokens * out * d["decoder_ffn"]) + across
    decoder += 2 * patches * out * (out // 4) * 4 + 2 * 4 * patches * (out // 4) * (out // 8) * 4  # 2 x 2, twice
    decoder += 4 * 2 * batch * (2 * out * out + out * (out // 8))  # a network of three layers for each mask,
    decoder += 2 * batch * 4 * (out // 8) * 16 * side * side  # whose result is multiplied with every pixel
    decoder += 2 * batch * (2 * out * out + out * 4)  # the quality
    return {**blocks, "mask decoder": Work(decoder, 0)}


def stable_diffusion(d: dict[str, Any], mode: str) -> dict[str, Work]:
    return autoencoder(d) if mode == "train" else denoiser(d)


def residual(side: int, width_in: int, width_out: int, times: int) -> int:
    """Two convolutions, and one of 1 x 1 beside them where the channels change."""
    beside = 2 * times * side * side * width_in * width_out if width_in != width_out else 0
    return (
        same_convolution(side, width_in, width_out, times)
        + same_convolution(side, width_out, width_out, times)
        + beside
    )


def autoencoder(d: dict[str, Any]) -> dict[str, Work]:
    batch, side, widths, more = d["batch"], d["image"], d["encoder_widths"], d["layers"] - 1
    first = same_convolution(side, 3, widths[0], batch)  # nobody asks for the gradient of the image
    residuals = sampling = filled_up = 0
    for level, (before, width) in enumerate(pairwise([widths[0], *widths])):
        residuals += residual(side, before, width, batch) + more * residual(side, width, width, batch)
        if level < 3:
            side //= 2  # behind the image lie a row and a column of zeros, which are multiplied and not asked for
            sampling += 2 * batch * width * width * (3 * side - 1) ** 2
            filled_up += 2 * batch * width * width * (3 * side) ** 2
    places, width = side * side, widths[-1]
    core = 2 * 2 * batch * places * places * width
    last = same_convolution(side, width, 2 * d["latent"], batch)
    return {
        "in and out": Work(first + last, first + 2 * last),
        "residual blocks": twice(residuals + 2 * residual(side, width, width, batch)),
        "down and up sampling": Work(sampling, 2 * sampling, ran=2 * filled_up, ran_forward=filled_up),
        "attention projections": twice(4 * 2 * batch * places * width * width),
        "attention core": Work(core, 2 * core, ran=core // 2 * 5),  # one kernel, which makes the scores again
    }


def denoiser(d: dict[str, Any]) -> dict[str, Work]:
    batch, side, widths = 2 * d["batch"], d["image"] // 8, d["widths"]  # with the text and without
    time = 4 * widths[0]
    forward = Counter[str]({"in and out": same_convolution(side, d["latent"], widths[0], batch)})
    forward["time embedding"] = 2 * batch * (widths[0] * time + time * time)

    def block(before: int, width: int, attends: bool) -> None:
        forward["residual blocks"] += residual(side, before, width, batch) + 2 * batch * time * width
        if attends:
            places = batch * side * side
            forward["attention projections"] += (2 + 4) * 2 * places * width * width  # 1 x 1 before and behind
            forward["attention core"] += 2 * 2 * places * side * side * width
            forward["cross attention"] += 2 * 2 * places * width * width + 2 * 2 * places * d["words"] * width
            forward["cross attention"] += 2 * 2 * batch * d["words"] * d["context"] * width
            forward["FFN"] += 2 * places * width * (8 + 4) * width  # half of the first product gates the other

    left, before = [widths[0]], widths[0]
    for level, width in enumerate(widths):
        for _ in range(d["layers"]):
            block(before, width, level < 3)
            before = width
            left.append(width)
        if level < 3:
            side //= 2  # every second place; of the taps only the first in a row and in a column is on padding
            forward["down and up sampling"] += 2 * batch * width * width * (3 * side - 1) ** 2
            left.append(width)
    block(before, before, True)
    block(before, before, False)
    for level, width in reversed([*enumerate(widths)]):
        for _ in range(d["layers"] + 1):
            block(before + left.pop(), width, level < 3)
            before = width
        if level > 0:
            side *= 2
            forward["down and up sampling"] += same_convolution(side, width, width, batch)
    forward["in and out"] += same_convolution(side, before, d["latent"], batch)
    return {name: Work(flops, 0) for name, flops in forward.items()}


def pair(width_in: int, width_out: int, taps: int = 1) -> int:
    """The weights of a product or a convolution, and its biases."""
    return taps * width_in * width_out + width_out


def parameters_of_segment_anything(d: dict[str, Any], mode: str) -> int:
    """The encoder; in inference also the prompt encoder and the mask decoder."""
    hidden, out, side = d["hidden"], d["out"], d["image"] // d["patch"]
    encoder = pair(3, hidden, d["patch"] ** 2) + side * side * hidden  # patches and their places
    for layer in range(1, d["layers"] + 1):
        length = side if layer % d["global_every"] == 0 else d["window"]
        places = 2 * (2 * length - 1) * (hidden // d["heads"])  # distances in a column and in a row
        encoder += 4 * pair(hidden, hidden) + pair(hidden, d["ffn"]) + pair(d["ffn"], hidden) + 2 * 2 * hidden + places
    encoder += hidden * out + 9 * out * out + 2 * 2 * out  # the neck has no biases but its two norms'
    if mode == "train":
        return encoder
    masks = pair(1, 4, 4) + 2 * 4 + pair(4, 16, 4) + 2 * 16 + pair(16, out)  # not used here: nobody gives a mask
    prompts = 2 * (out // 2) + (4 + 1 + 1) * out + masks  # kinds of points, no point, no mask
    half = 3 * pair(out, out // 2) + pair(out // 2, out)
    decoder = (1 + 4) * out + half + 2 * out
    decoder += d["decoder_layers"] * (
        4 * pair(out, out) + 2 * half + pair(out, d["decoder_ffn"]) + pair(d["decoder_ffn"], out) + 4 * 2 * out
    )
    decoder += pair(out, out // 4, 4) + 2 * (out // 4) + pair(out // 4, out // 8, 4)
    decoder += 4 * (2 * pair(out, out) + pair(out, out // 8)) + 2 * pair(out, out) + pair(out, 4)
    return encoder + prompts + decoder


def parameters_of_stable_diffusion(d: dict[str, Any], mode: str) -> int:
    """The encoder; in inference the UNet."""

    def residual(before: int, width: int, time: int = 0) -> int:
        """Two norms, two convolutions, what adds the embedded time, and one of 1 x 1 where the channels change."""
        beside = pair(before, width) if before != width else 0
        added = pair(time, width) if time else 0
        return 2 * before + pair(before, width, 9) + 2 * width + pair(width, width, 9) + added + beside

    if mode == "train":
        widths = d["encoder_widths"]
        last = widths[-1]
        levels = sum(residual(i, o) + (d["layers"] - 1) * residual(o, o) for i, o in pairwise([widths[0], *widths]))
        halving = sum(pair(width, width, 9) for width in widths[:3])
        middle = 2 * residual(last, last) + 2 * last + 4 * pair(last, last)
        return pair(3, widths[0], 9) + levels + halving + middle + 2 * last + pair(last, 2 * d["latent"], 9)

    widths, context = d["widths"], d["context"]
    time = 4 * widths[0]

    def block(before: int, width: int, attends: bool) -> int:
        itself = 3 * width * width + pair(width, width)
        text = width * width + 2 * context * width + pair(width, width)
        gated = pair(width, 8 * width) + pair(4 * width, width)
        transformer = 2 * width + 2 * pair(width, width) + 3 * 2 * width + itself + text + gated
        return residual(before, width, time) + (transformer if attends else 0)

    total = pair(d["latent"], widths[0], 9) + pair(widths[0], time) + pair(time, time)
    left, before = [widths[0]], widths[0]
    for level, width in enumerate(widths):
        total += block(before, width, level < 3) + (d["layers"] - 1) * block(width, width, level < 3)
        total += pair(width, width, 9) if level < 3 else 0
        left += [width] * (d["layers"] + (level < 3))
        before = width
    total += block(before, before, True) + block(before, before, False)
    for level, width in reversed([*enumerate(widths)]):
        for _ in range(d["layers"] + 1):
            total += block(before + left.pop(), width, level < 3)
            before = width
        total += pair(width, width, 9) if level > 0 else 0
    return total + 2 * before + pair(before, d["latent"], 9)
