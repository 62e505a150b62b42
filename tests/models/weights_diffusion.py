"""Weights of Stable Diffusion of KerasCV's layers, in Keras 3 and Keras 2, by the names of PyTorch's.

    places(model)    of the encoder or the UNet: (name in PyTorch's `state_dict()`, layout, variable), all of them

Layouts are those of `weights_keras`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

Found = Iterator[tuple[str, str, Any]]
_NAMES = (
    (r"(down|up)_(\d)_", r"\1_blocks.\2."),
    (r"^mid_", "mid_block."),
    (r"(resnets|attentions)_(\d)$", r"\1.\2"),
    (r"attention$", "attentions.0"),
    (r"down(.*)\bsamplers$", r"down\1downsamplers.0.conv"),
    (r"up(.*)\bsamplers$", r"up\1upsamplers.0.conv"),
    (r"time_embedding_(\d)", r"time_embedding.linear_\1"),
)


def places(model: Any) -> Found:
    """Every weight of the encoder or the UNet."""
    above = "unet." if model.name == "diffusion_model" else ""
    for layer in model.layers:
        if layer.trainable_variables:
            name = layer.name
            for pattern, replacement in _NAMES:
                name = re.sub(pattern, replacement, name)
            yield from _layer(layer, above + name)


def _layer(layer: Any, name: str) -> Found:
    kind = type(layer).__name__
    known = {
        "PaddedConv2D": _padded,
        "GroupNormalization": _norm,
        "LayerNormalization": _norm,
        "Dense": _dense,
        "ResBlock": _residual,
        "ResnetBlock": _residual_of_encoder,
        "SpatialTransformer": _transformer,
        "AttentionBlock": _attention_of_encoder,
        "Upsample": lambda layer, name: _padded(layer.conv, name),
    }
    return known[kind](layer, name)


def _padded(layer: Any, name: str, layout: str = "convolution") -> Found:
    yield f"{name}.weight", layout, layer.conv2d.kernel
    yield f"{name}.bias", "same", layer.conv2d.bias


def _dense(layer: Any, name: str) -> Found:
    yield f"{name}.weight", "dense", layer.kernel
    if layer.use_bias:
        yield f"{name}.bias", "same", layer.bias


def _norm(layer: Any, name: str) -> Found:
    yield f"{name}.weight", "same", layer.gamma
    yield f"{name}.bias", "same", layer.beta


def _residual(layer: Any, name: str) -> Found:
    yield from _norm(layer.entry_flow[0], f"{name}.norm1")
    yield from _padded(layer.entry_flow[2], f"{name}.conv1")
    yield from _dense(layer.embedding_flow[1], f"{name}.time_emb_proj")
    yield from _norm(layer.exit_flow[0], f"{name}.norm2")
    yield from _padded(layer.exit_flow[2], f"{name}.conv2")
    yield from _beside(layer, name)


def _residual_of_encoder(layer: Any, name: str) -> Found:
    for number in (1, 2):
        yield from _norm(getattr(layer, f"norm{number}"), f"{name}.norm{number}")
        yield from _padded(getattr(layer, f"conv{number}"), f"{name}.conv{number}")
    yield from _beside(layer, name)


def _beside(layer: Any, name: str) -> Found:
    if hasattr(layer.residual_projection, "conv2d"):  # else it is a function
        yield from _padded(layer.residual_projection, f"{name}.conv_shortcut")


def _attention_of_encoder(layer: Any, name: str) -> Found:
    """Convolutions of 1 x 1, which are dense layers in PyTorch."""
    yield from _norm(layer.norm, f"{name}.group_norm")
    for mine, theirs in (("q", "to_q"), ("k", "to_k"), ("v", "to_v"), ("proj_out", "to_out.0")):
        yield from _padded(getattr(layer, mine), f"{name}.{theirs}", "pixel")


def _transformer(layer: Any, name: str) -> Found:
    block, inside = layer.transformer_block, f"{name}.transformer_blocks.0"
    yield from _norm(layer.norm, f"{name}.norm")
    yield from _padded(layer.proj1, f"{name}.proj_in")
    yield from _padded(layer.proj2, f"{name}.proj_out")
    for attention in ("attn1", "attn2"):
        for mine, theirs in (("to_q", "to_q"), ("to_k", "to_k"), ("to_v", "to_v"), ("out_proj", "to_out.0")):
            yield from _dense(getattr(getattr(block, attention), mine), f"{inside}.{attention}.{theirs}")
    for number in (1, 2, 3):
        yield from _norm(getattr(block, f"norm{number}"), f"{inside}.norm{number}")
    yield from _dense(block.geglu.dense, f"{inside}.ff.net.0.proj")
    yield from _dense(block.dense, f"{inside}.ff.net.2")
