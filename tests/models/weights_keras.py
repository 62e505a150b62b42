"""Weights of the models in Keras 3 under the names and in the layouts of the models in PyTorch.

    set_weights(model, weights)    from names of `state_dict()`; ones that no variable takes (buffers) are left alone
    get_weights(model)             the same names, but for the tied head of GPT-2, which is no weight of its own

The order in which Keras builds layers is fixed, so a variable is known by its place; `weights_keras2` has the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import weights_diffusion


class Place(NamedTuple):
    """Where PyTorch keeps a variable of Keras: a weight, or one of `parts` equal pieces of its last axis."""

    name: str
    layout: str = "same"
    part: int = 0
    parts: int = 1


def set_weights(model: Any, weights: Mapping[str, np.ndarray]) -> None:
    """Copies `weights` into `model`."""
    for place, variable in _places(model):
        value = np.asarray(weights[place.name])
        if place.parts > 1:
            value = np.split(value, place.parts, axis=-1)[place.part]
        variable.assign(_to_keras(value, place.layout, tuple(variable.shape)))


def get_weights(model: Any) -> dict[str, np.ndarray]:
    """All weights of `model`."""
    found: dict[str, list[np.ndarray]] = {}
    for place, variable in _places(model):
        value = np.asarray(variable.numpy(), np.float32)
        found.setdefault(place.name, []).append(_to_torch(value, place.layout, _channels(model)))
    return {name: np.concatenate(values, axis=-1) for name, values in found.items()}


def _places(model: Any) -> Iterator[tuple[Place, Any]]:
    variables = model.trainable_variables
    if model.name in ("diffusion_model", "image_encoder"):
        found = [(Place(name, layout), variable) for name, layout, variable in weights_diffusion.places(model)]
        assert {id(variable) for _, variable in found} == {id(variable) for variable in variables}
        return iter(found)
    places = list(_MODELS[re.sub(r"_\d+$", "", model.name)](len(variables)))
    assert len(places) == len(variables), f"{len(places)} places for {len(variables)} variables"
    return zip(places, variables, strict=True)


def _channels(model: Any) -> int:
    """How many channels the first dense layer of LeNet5 finds in a pixel; else 1."""
    kernels = [variable for variable in model.trainable_variables if len(variable.shape) == 4]
    return int(kernels[-1].shape[-1]) if kernels else 1


def _to_keras(value: np.ndarray, layout: str, shape: tuple[int, ...]) -> np.ndarray:
    if layout == "convolution":  # (out, in, height, width)
        return value.transpose(2, 3, 1, 0)
    if layout == "positions":  # the first two rows are no token's
        return value[2:]
    if layout == "pixel":  # (out, in) as a convolution of 1 x 1
        return value.T.reshape(shape)
    if layout == "pixels":  # (out, channel x height x width)
        outputs = value.shape[0]
        side = 4  # of LeNet5's images after two convolutions and poolings
        return value.reshape(outputs, -1, side, side).transpose(2, 3, 1, 0).reshape(shape)
    if layout == "heads out":  # (heads x width, in)
        return value.reshape(shape[0], shape[2], shape[1]).transpose(0, 2, 1)
    return (value.T if layout in ("dense", "heads in") else value).reshape(shape)


def _to_torch(value: np.ndarray, layout: str, channels: int) -> np.ndarray:
    if layout == "convolution":
        return value.transpose(3, 2, 0, 1)
    if layout == "pixel":
        return value[0, 0].T
    if layout == "positions":
        return np.pad(value, ((2, 0), (0, 0)))
    if layout == "pixels":
        return value.reshape(4, 4, channels, -1).transpose(3, 2, 0, 1).reshape(value.shape[-1], -1)
    if layout == "dense":  # (in, ...), the output perhaps split into heads
        return value.reshape(value.shape[0], -1).T
    if layout == "heads in":  # (heads, width, out)
        return value.reshape(-1, value.shape[-1]).T
    if layout == "heads out":  # (heads, in, width)
        return value.transpose(0, 2, 1).reshape(-1, value.shape[1])
    if layout == "product":  # (in, ...) in PyTorch too
        return value.reshape(value.shape[0], -1)
    if layout == "heads in product":
        return value.reshape(-1, value.shape[-1])
    return value.reshape(-1) if layout == "bias" else value


def _pair(name: str, layout: str = "dense") -> list[Place]:
    return [Place(f"{name}.weight", layout), Place(f"{name}.bias", "bias")]


def _norm(name: str) -> list[Place]:
    return [Place(f"{name}.weight"), Place(f"{name}.bias")]


def _bert(variables: int) -> Iterator[Place]:
    for table in ("word", "position", "token_type"):
        yield Place(f"bert.embeddings.{table}_embeddings.weight")
    yield from _norm("bert.embeddings.LayerNorm")
    for number in range((variables - 9) // 16):
        layer = f"bert.encoder.layer.{number}"
        for part in ("query", "key", "value"):
            yield from _pair(f"{layer}.attention.self.{part}")
        yield from _pair(f"{layer}.attention.output.dense", "heads in")
        yield from _norm(f"{layer}.attention.output.LayerNorm")
        yield from _norm(f"{layer}.output.LayerNorm")
        yield from _pair(f"{layer}.intermediate.dense")
        yield from _pair(f"{layer}.output.dense")
    yield from _pair("bert.pooler.dense")
    yield from _pair("classifier")


def _distilbert(variables: int) -> Iterator[Place]:
    for table in ("word", "position"):
        yield Place(f"distilbert.embeddings.{table}_embeddings.weight")
    yield from _norm("distilbert.embeddings.LayerNorm")
    for number in range((variables - 8) // 16):
        layer = f"distilbert.transformer.layer.{number}"
        for part in "qkv":
            yield from _pair(f"{layer}.attention.{part}_lin")
        yield from _pair(f"{layer}.attention.out_lin", "heads in")
        yield from _norm(f"{layer}.sa_layer_norm")
        yield from _norm(f"{layer}.output_layer_norm")
        yield from _pair(f"{layer}.ffn.lin1")
        yield from _pair(f"{layer}.ffn.lin2")
    yield from _pair("pre_classifier")
    yield from _pair("classifier")


def _roberta(variables: int) -> Iterator[Place]:
    yield Place("roberta.embeddings.word_embeddings.weight")
    yield Place("roberta.embeddings.position_embeddings.weight", "positions")
    for place in _bert(variables + 1):
        name = place.name.replace("bert.", "roberta.", 1)
        if "_embeddings." in name:
            continue
        # The head is the pooler and the classifier of BERT under other names.
        name = name.replace("roberta.pooler.dense", "classifier.dense")
        yield place._replace(name=name.replace("classifier.", "classifier.out_proj.") if _is_output(place) else name)


def _is_output(place: Place) -> bool:
    return place.name.startswith("classifier.")


def _gpt2(variables: int) -> Iterator[Place]:
    yield Place("transformer.wte.weight")
    yield Place("transformer.wpe.weight")
    for number in range((variables - 4) // 16):
        layer = f"transformer.h.{number}"
        for part in range(3):
            yield Place(f"{layer}.attn.c_attn.weight", "product", part, 3)
            yield Place(f"{layer}.attn.c_attn.bias", "bias", part, 3)
        yield from _pair(f"{layer}.attn.c_proj", "heads in product")
        yield from _norm(f"{layer}.ln_1")
        yield from _pair(f"{layer}.mlp.c_fc", "product")
        yield from _pair(f"{layer}.mlp.c_proj", "product")
        yield from _norm(f"{layer}.ln_2")
    yield from _norm("transformer.ln_f")


def _gemma(variables: int) -> Iterator[Place]:
    yield Place("model.embed_tokens.weight")
    for number in range((variables - 2) // 9):
        layer = f"model.layers.{number}"
        yield Place(f"{layer}.input_layernorm.weight")
        for part in "qkv":
            yield Place(f"{layer}.self_attn.{part}_proj.weight", "heads out")
        yield Place(f"{layer}.self_attn.o_proj.weight", "heads in")
        yield Place(f"{layer}.post_attention_layernorm.weight")
        for part in ("gate", "up", "down"):
            yield Place(f"{layer}.mlp.{part}_proj.weight", "dense")
    yield Place("model.norm.weight")


def _mistral(variables: int) -> Iterator[Place]:
    yield Place("model.embed_tokens.weight")
    yield Place("lm_head.weight", "dense")
    for number in range((variables - 3) // 9):
        layer = f"model.layers.{number}"
        for part in "qkv":
            yield Place(f"{layer}.self_attn.{part}_proj.weight", "dense")
        yield Place(f"{layer}.self_attn.o_proj.weight", "heads in")
        yield Place(f"{layer}.input_layernorm.weight")
        for part in ("up", "gate", "down"):
            yield Place(f"{layer}.mlp.{part}_proj.weight", "dense")
        yield Place(f"{layer}.post_attention_layernorm.weight")
    yield Place("model.norm.weight")


def _lenet5(variables: int) -> Iterator[Place]:
    yield from _pair("conv1", "convolution")
    yield from _pair("conv2", "convolution")
    yield from _pair("dense1", "pixels")
    yield from _pair("dense2")
    yield from _pair("dense3")


def _vision(variables: int) -> Iterator[Place]:
    encoder = "vision_encoder"
    yield from _pair(f"{encoder}.patch_embed.projection", "convolution")
    yield Place(f"{encoder}.pos_embed")
    for number in range((variables - 9) // 14):
        layer = f"{encoder}.layers.{number}"
        yield from _norm(f"{layer}.layer_norm1")
        yield from _norm(f"{layer}.layer_norm2")
        yield from _pair(f"{layer}.attn.qkv")
        yield from _pair(f"{layer}.attn.proj")
        yield Place(f"{layer}.attn.rel_pos_h")
        yield Place(f"{layer}.attn.rel_pos_w")
        yield from _pair(f"{layer}.mlp.lin1")
        yield from _pair(f"{layer}.mlp.lin2")
    for number in (1, 2):
        yield Place(f"{encoder}.neck.conv{number}.weight", "convolution")
        yield from _norm(f"{encoder}.neck.layer_norm{number}")


def _mlp(variables: int) -> Iterator[Place]:
    for number in range(variables // 2):
        yield from _pair(f"dense{number + 1}")


_MODELS = {
    "bert_text_classifier": _bert,
    "distil_bert_text_classifier": _distilbert,
    "gemma_causal_lm": _gemma,
    "gpt2_causal_lm": _gpt2,
    "mistral_causal_lm": _mistral,
    "roberta_text_classifier": _roberta,
    # as Keras 2 calls them
    "bert": _bert,
    "distilbert": _distilbert,
    "gpt2": _gpt2,
    "roberta": _roberta,
    "lenet5": _lenet5,
    "mlp": _mlp,
    "vi_t_det_backbone": _vision,
}
