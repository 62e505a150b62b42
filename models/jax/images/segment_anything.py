"""The image encoder of Segment Anything (flax nnx), random weights, one image per sample.

ViTDet: Kirillov et al. 2023; Li et al. 2022, arXiv 2203.16527. Size base is that of sam-vit-huge: 637,026,048
parameters. Layers and names are those of Hugging Face's SamVisionModel; most layers attend in windows, every
`global_every`-th over the whole image, all with relative positions of rows and of columns. Training is mean squared
error of the image's embedding and Adam with lr 1e-3. Images are (height, width, channels), flax's layout, and so is the
embedding. The prompt encoder and the mask decoder, which inference runs in PyTorch and Keras, are not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array

from roofline.core.step import Step, Workload
from roofline.errors import InputError
from roofline.models._adam import Adam
from roofline.models._step import loss_switch
from roofline.models.jax._layers import TRANSFORMER, Make, gelu, named
from roofline.models.jax._step import prepare, step

EPSILON = 1e-6


class PatchEmbeddings(nnx.Module):
    """Patches of the image, each a vector."""

    def __init__(self, dims: Mapping[str, Any], make: Make) -> None:
        self.projection = make.conv(3, dims["hidden"], dims["patch"], stride=dims["patch"])

    def __call__(self, images: Array) -> Array:
        """(batch, image, image, 3) to (batch, patches, patches, hidden)."""
        return named("projection", self.projection, images)


class Attention(nnx.Module):
    """Self-attention among `length` x `length` patches, with relative positions of rows and of columns."""

    def __init__(self, dims: Mapping[str, Any], length: int, make: Make) -> None:
        self.heads, self.width = dims["heads"], dims["hidden"] // dims["heads"]
        self.qkv = make.linear(dims["hidden"], 3 * dims["hidden"])
        self.proj = make.linear(dims["hidden"], dims["hidden"])
        self.rel_pos_h, self.rel_pos_w = (make.zeros(2 * length - 1, self.width) for _ in range(2))

    def __call__(self, hidden: Array) -> Array:
        """(windows, length, length, hidden) to the same shape."""
        windows, length = hidden.shape[:2]
        projected = named("qkv", self.qkv, hidden).reshape(windows, length * length, 3, self.heads, self.width)
        query, key, value = jnp.moveaxis(projected, 2, 0)
        scores = jnp.einsum("bqnd,bknd->bnqk", query * self.width**-0.5, key)
        places = query.reshape(windows, length, length, self.heads, self.width)
        by_row, by_column = (
            _between(table[...].astype(query.dtype), length) for table in (self.rel_pos_h, self.rel_pos_w)
        )
        rows = jnp.einsum("bhwnd,hkd->bnhwk", places, by_row)
        columns = jnp.einsum("bhwnd,wkd->bnhwk", places, by_column)
        bias = rows[..., :, None] + columns[..., None, :]  # (windows, heads, h, w, k_h, k_w)
        weights = jax.nn.softmax((scores + bias.reshape(scores.shape)).astype(jnp.float32)).astype(value.dtype)
        mixed = jnp.einsum("bnqk,bknd->bqnd", weights, value)
        return named("proj", self.proj, mixed.reshape(hidden.shape))


def _between(table: Array, length: int) -> Array:
    """(2 length - 1, width), by distance, to (length, length, width): for each place, what each other is to it."""
    place = jnp.arange(length)
    return table[place[:, None] - place[None, :] + length - 1]


class MLP(nnx.Module):
    """The feed-forward network."""

    def __init__(self, dims: Mapping[str, Any], make: Make) -> None:
        self.lin1 = make.linear(dims["hidden"], dims["ffn"])
        self.lin2 = make.linear(dims["ffn"], dims["hidden"])
        self.activation = gelu(dims["gelu"])

    def __call__(self, hidden: Array) -> Array:
        """(..., hidden) to the same shape."""
        return named("lin2", self.lin2, named("act", self.activation, named("lin1", self.lin1, hidden)))


class Layer(nnx.Module):
    """One layer: attention in windows or over the whole image, then the feed-forward network; norms come first."""

    def __init__(self, dims: Mapping[str, Any], window: int | None, make: Make) -> None:
        self.window = window
        self.layer_norm1, self.layer_norm2 = (make.norm(dims["hidden"], EPSILON) for _ in range(2))
        self.attn = Attention(dims, window or dims["image"] // dims["patch"], make)
        self.mlp = MLP(dims, make)

    def __call__(self, hidden: Array) -> Array:
        """(batch, patches, patches, hidden) to the same shape."""
        normed = named("layer_norm1", self.layer_norm1, hidden)
        windows = normed if self.window is None else _cut(normed, self.window)
        attended = named("attn", self.attn, windows)
        hidden = hidden + (attended if self.window is None else _joined(attended, hidden.shape))
        return hidden + named("mlp", self.mlp, named("layer_norm2", self.layer_norm2, hidden))


def _cut(hidden: Array, window: int) -> Array:
    """(batch, patches, patches, hidden), zeros behind it, to whole windows (windows, window, window, hidden)."""
    batch, side, _, width = hidden.shape
    across = -(-side // window)
    more = (0, across * window - side)
    filled = jnp.pad(hidden, ((0, 0), more, more, (0, 0)))
    return (
        filled.reshape(batch, across, window, across, window, width).swapaxes(2, 3).reshape(-1, window, window, width)
    )


def _joined(windows: Array, shape: tuple[int, ...]) -> Array:
    """What `_cut` made, put together to `shape` again."""
    batch, side, _, width = shape
    window = windows.shape[1]
    across = -(-side // window)
    filled = windows.reshape(batch, across, across, window, window, width).swapaxes(2, 3)
    return filled.reshape(batch, across * window, across * window, width)[:, :side, :side]


class Neck(nnx.Module):
    """Two convolutions, each with its norm, to the width of the embedding."""

    def __init__(self, dims: Mapping[str, Any], make: Make) -> None:
        self.conv1 = make.conv(dims["hidden"], dims["out"], 1, bias=False)
        self.layer_norm1 = make.norm(dims["out"], EPSILON)
        self.conv2 = make.conv(dims["out"], dims["out"], 3, padding="SAME", bias=False)
        self.layer_norm2 = make.norm(dims["out"], EPSILON)

    def __call__(self, hidden: Array) -> Array:
        """(batch, patches, patches, hidden) to (batch, patches, patches, out)."""
        for name in ("conv1", "layer_norm1", "conv2", "layer_norm2"):
            hidden = named(name, getattr(self, name), hidden)
        return hidden


class Encoder(nnx.Module):
    """Patches with their positions, the layers, the neck."""

    def __init__(self, dims: Mapping[str, Any], make: Make) -> None:
        patches, every = dims["image"] // dims["patch"], dims["global_every"]
        self.patch_embed = PatchEmbeddings(dims, make)
        self.pos_embed = make.zeros(1, patches, patches, dims["hidden"])
        windows = (None if number % every == 0 else dims["window"] for number in range(1, dims["layers"] + 1))
        self.layers = nnx.List([Layer(dims, window, make) for window in windows])
        self.neck = Neck(dims, make)

    def __call__(self, images: Array) -> Array:
        """(batch, image, image, 3) to (batch, patches, patches, out)."""
        patches = named("patch_embed", self.patch_embed, images)
        hidden = patches + self.pos_embed[...].astype(patches.dtype)
        for number, layer in enumerate(self.layers):
            hidden = named(f"layers.{number}", layer, hidden)
        return named("neck", self.neck, hidden)


class SamVisionModel(nnx.Module):
    """The image encoder."""

    def __init__(self, dims: Mapping[str, Any], make: Make) -> None:
        self.vision_encoder = Encoder(dims, make)

    def __call__(self, pixel_values: Array) -> Array:
        """(batch, image, image, 3) to (batch, patches, patches, out)."""
        return named("vision_encoder", self.vision_encoder, pixel_values)


def network(dims: Mapping[str, Any], make: Make) -> nnx.Module:
    """The image encoder of these dimensions; (batch, image, image, 3) to (batch, patches, patches, out)."""
    return SamVisionModel(dims, make)


def loss(embedding: Array, targets: Array) -> Array:
    """Mean squared error of the image's embedding."""
    return jnp.square(embedding - targets).mean()


def build(workload: Workload, changes: Mapping[str, Any] | None = None) -> Step:
    """One training step (mean squared error, Adam) of the image encoder; changes: dimensions to replace.

    Raises InputError for inference, which is of the whole model.
    """
    if workload.mode != "train":
        raise InputError(
            "Inference of segment-anything needs prompts and masks, which it has in PyTorch and Keras only: "
            "use --mode train, --backend torch or --backend keras-jax."
        )
    dims = prepare(workload, changes)
    batch, image, patches = dims["batch"], dims["image"], dims["image"] // dims["patch"]
    return step(
        workload,
        dims,
        network,
        kernel=TRANSFORMER,
        inputs=lambda key: {"pixel_values": jax.random.normal(key, (batch, image, image, 3), jnp.float32)},
        targets=lambda key, _: jax.random.normal(key, (batch, patches, patches, dims["out"]), jnp.float32),
        loss=loss,
        optimizer=Adam(),
        switches={"attention": "written out", "gelu": dims["gelu"], **loss_switch(workload, "mean squared error")},
    )
