"""Stable Diffusion 1.4 of KerasCV's layers, random weights: the encoder of its autoencoder, and one denoising step.

Training is of the encoder alone, images to latents before `quant_conv`, as in PyTorch: 34,163,592 parameters, mean
squared error, Adam with lr 1e-3. Inference is one of the steps of KerasCV's `StableDiffusion.generate_image`: the UNet,
859,520,964 parameters, once without and once with the text, then guidance and the update of DDIM (Song et al. 2021,
arXiv 2010.02502, equation 12 with sigma 0).

KerasCV's `ImageEncoder` and `DiffusionModel` have the published widths only. These are the same layers with the widths
of the geometry, in the same order, so that weights are the same ones. Other than in PyTorch's classes, images are
filled up with zeros by a layer of their own before each convolution, attention is written out and GELU is by tanh.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

import numpy as np

from roofline.core.step import Step, Workload
from roofline.models._adam import Adam
from roofline.models._diffusion import GUIDANCE, NEXT, NOW, kept
from roofline.models._keras import vision
from roofline.models._keras.prepare import generator, prepare
from roofline.models._keras.step import arriving, own_step, step
from roofline.models._keras.version import Version
from roofline.models._step import loss_switch

LONGEST_PERIOD = 10_000  # of the sines and cosines that tell the UNet the number of the step
LEVELS = 4
EPSILON = 1e-5

_LAYERS = "src.models.stable_diffusion"  # not among the names that KerasCV exports
#: Parts of KerasCV's layers, which are called as their attribute is: `transformer_block/attn1/to_q`.
_PARTS = (
    *("transformer_block", "attn1", "attn2", "to_q", "to_k", "to_v", "out_proj", "geglu", "dense"),
    *("norm", "norm1", "norm2", "norm3", "proj1", "proj2", "q", "k", "v", "proj_out"),
)


def encoder(version: Version, dims: Mapping[str, Any]) -> Any:
    """The encoder, which training runs; (batch, image, image, 3) to (batch, image / 8, image / 8, 2 latent)."""
    keras, padded = version.KERAS, vision.library(f"{_LAYERS}.padded_conv2d").PaddedConv2D
    residual = vision.library(f"{_LAYERS}.resnet_block").ResnetBlock
    attention = vision.library(f"{_LAYERS}.attention_block").AttentionBlock
    widths, last = dims["encoder_widths"], dims["encoder_widths"][-1]
    dtype = keras.mixed_precision.global_policy().variable_dtype
    layers = [
        keras.Input((dims["image"], dims["image"], 3), dtype=dtype),
        padded(widths[0], 3, padding=1, name="conv_in"),
    ]
    for level, width in enumerate(widths):
        layers += [residual(width, name=f"down_{level}_resnets_{number}") for number in range(dims["layers"])]
        if level < LEVELS - 1:
            behind = ((0, 1), (0, 1))  # one row and one column of zeros
            layers.append(padded(width, 3, padding=behind, strides=2, name=f"down_{level}_samplers"))
    layers += [
        residual(last, name="mid_resnets_0"),
        _named(keras, attention(last, name="mid_attention")),
        residual(last, name="mid_resnets_1"),
        keras.layers.GroupNormalization(epsilon=EPSILON, name="conv_norm_out"),
        keras.layers.Activation("swish", name="conv_act"),
        padded(2 * dims["latent"], 3, padding=1, name="conv_out"),
    ]
    return keras.Sequential(layers, name="image_encoder")


def network(version: Version, dims: Mapping[str, Any]) -> Any:
    """The UNet, which inference runs twice.

    latent: (batch, side, side, latent channels), where a side is image / 8. timestep_embedding: (batch, first width).
    context: (batch, words, context), the encoded text. Gives the noise in the latents, in their shape.
    """
    keras, parts = version.KERAS, vision.library(f"{_LAYERS}.diffusion_model")
    padded = vision.library(f"{_LAYERS}.padded_conv2d").PaddedConv2D
    side, widths, heads = dims["image"] // 8, dims["widths"], dims["heads"]
    dtype = keras.mixed_precision.global_policy().variable_dtype
    inputs = {
        "latent": keras.Input((side, side, dims["latent"]), dtype=dtype, name="latent"),
        "timestep_embedding": keras.Input((widths[0],), dtype=dtype, name="timestep_embedding"),
        "context": keras.Input((dims["words"], dims["context"]), dtype=dtype, name="context"),
    }
    time = keras.layers.Dense(4 * widths[0], name="time_embedding_1")(inputs["timestep_embedding"])
    time = keras.layers.Activation("swish", name="time_embedding_act")(time)
    time = keras.layers.Dense(4 * widths[0], name="time_embedding_2")(time)

    def block(x: Any, width: int, attends: bool, place: str, number: int) -> Any:
        x = parts.ResBlock(width, name=f"{place}_resnets_{number}")([x, time])
        if not attends:
            return x
        transformer = parts.SpatialTransformer(heads, width // heads, name=f"{place}_attentions_{number}")
        return _named(keras, transformer)([x, inputs["context"]])

    x = padded(widths[0], 3, padding=1, name="conv_in")(inputs["latent"])
    left = [x]
    for level, width in enumerate(widths):
        for number in range(dims["layers"]):
            x = block(x, width, level < LEVELS - 1, f"down_{level}", number)
            left.append(x)
        if level < LEVELS - 1:
            x = padded(width, 3, strides=2, padding=1, name=f"down_{level}_samplers")(x)
            left.append(x)
    x = block(x, widths[-1], True, "mid", 0)
    x = block(x, widths[-1], False, "mid", 1)
    for level, width in enumerate(reversed(widths)):
        for number in range(dims["layers"] + 1):
            x = keras.layers.Concatenate(name=f"up_{level}_resnets_{number}_skip")([x, left.pop()])
            x = block(x, width, level > 0, f"up_{level}", number)
        if level < LEVELS - 1:
            x = parts.Upsample(width, name=f"up_{level}_samplers")(x)
    x = keras.layers.GroupNormalization(epsilon=EPSILON, name="conv_norm_out")(x)
    x = keras.layers.Activation("swish", name="conv_act")(x)
    x = padded(dims["latent"], 3, padding=1, name="conv_out")(x)
    return keras.Model(inputs, x, name="diffusion_model")


def _named(keras: Any, layer: Any) -> Any:
    """The layer, with its parts, which are to become scopes, called as it calls them; Keras numbers them else."""
    for name in _PARTS:
        part = getattr(layer, name, None)
        if isinstance(part, keras.layers.Layer):
            # In Keras 3 a plain attribute, in Keras 2 a property of this one.
            setattr(part, "_name" if hasattr(part, "_name") else "name", name)
            _named(keras, part)
    return layer


def embedded(number: int, width: int) -> np.ndarray:
    """The number of a step as the UNet takes it: cosines, then sines, of periods from 2 pi to 2 pi LONGEST_PERIOD."""
    half = width // 2
    angles = number * np.exp(-np.log(LONGEST_PERIOD) * np.arange(half, dtype=np.float32) / half)
    return np.concatenate([np.cos(angles), np.sin(angles)])


def denoised(latent: np.ndarray, noise: np.ndarray, now: float, following: float) -> np.ndarray:
    """The latents of the next step: what the image would be without this noise, and less of the noise again.

    now, following: which part of the image's variance is left, before and after.
    """
    image = (latent - sqrt(1 - now) * noise) / sqrt(now)
    return noise * sqrt(1 - following) + sqrt(following) * image


def build(version: Version, workload: Workload) -> Step:
    """One denoising step, or one training step (mean squared error, Adam) of the encoder."""
    dims = prepare(version, workload)
    return _training(version, workload, dims) if workload.mode == "train" else _denoising(version, workload, dims)


def _training(version: Version, workload: Workload, dims: Mapping[str, Any]) -> Step:
    draw, batch, image = generator(), dims["batch"], dims["image"]
    return step(
        version,
        workload,
        dims,
        encoder(version, dims),
        draw.standard_normal((batch, image, image, 3), np.float32),
        targets=draw.standard_normal((batch, image // 8, image // 8, 2 * dims["latent"]), np.float32),
        loss=lambda keras: keras.losses.MeanSquaredError(name="loss"),
        optimizer=Adam(),
        switches={**_SWITCHES, **loss_switch(workload, "mean squared error")},
    )


def _denoising(version: Version, workload: Workload, dims: Mapping[str, Any]) -> Step:
    """What comes between the calls of the UNet is computed on the host, where `predict_on_batch` leaves its results."""
    draw, batch, side = generator(), dims["batch"], dims["image"] // 8
    model, levels = network(version, dims), (kept(NOW), kept(NEXT))
    latent = draw.standard_normal((batch, side, side, dims["latent"]), np.float32)
    text = (batch, dims["words"], dims["context"])
    given = {
        "latent": latent,
        "without text": draw.standard_normal(text, np.float32),
        "with text": draw.standard_normal(text, np.float32),
    }

    def denoise(given: Mapping[str, Any]) -> np.ndarray:
        time = arriving(version, workload, np.repeat(embedded(NOW, dims["widths"][0])[None], batch, axis=0))
        without, with_text = (
            model.predict_on_batch(
                {"latent": given["latent"], "timestep_embedding": time, "context": given[f"{which} text"]}
            )
            for which in ("without", "with")
        )
        return denoised(latent, without + GUIDANCE * (with_text - without), *levels)

    switches = {**_SWITCHES, "gelu": "tanh", "guidance": f"{GUIDANCE:g}, in two calls", "scheduler": "DDIM"}
    return own_step(version, workload, dims, model, given, denoise, switches=switches)


_SWITCHES = {"attention": "written out", "image layout": "channels last"}
