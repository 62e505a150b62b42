"""The U-Net of `unet.py` in JAX, of plain functions, and copies with one cause planted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

import roofline

CHANNELS, GROUPS, SAMPLES, EDGE = 16, 4, 8, 32
UNITS = {
    "down1": (4, 16),
    "down2": (16, 16),
    "middle1": (16, 32),
    "middle2": (32, 32),
    "up1": (48, 16),
    "up2": (16, 16),
}

Parameters = dict[str, Any]


class UNet:
    """Images are channels last; the parts are methods, so that a copy changes one of them."""

    def convolve(self, weights: Array, x: Array) -> Array:
        return lax.conv_general_dilated(x, weights, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def norm(self, scale: Array, shift: Array, x: Array) -> Array:
        samples, high, wide, channels = x.shape
        grouped = x.reshape(samples, high * wide, GROUPS, channels // GROUPS)
        mean = grouped.mean((1, 3), keepdims=True)
        variance = jnp.square(grouped - mean).mean((1, 3), keepdims=True)
        return ((grouped - mean) * lax.rsqrt(variance + 1e-5)).reshape(x.shape) * scale + shift

    def activate(self, x: Array) -> Array:
        return x * jax.nn.sigmoid(x)

    def unit(self, name: str, parameters: Parameters, x: Array) -> Array:
        own = parameters[name]
        with jax.named_scope(name):
            with jax.named_scope("convolution"):
                x = self.convolve(own["weights"], x)
            with jax.named_scope("group_norm"):
                x = self.norm(own["scale"], own["shift"], x)
            with jax.named_scope("silu"):
                return self.activate(x)

    def __call__(self, parameters: Parameters, x: Array) -> Array:
        high = self.unit("down2", parameters, self.unit("down1", parameters, x))
        samples, edge, _, channels = high.shape
        low = high.reshape(samples, edge // 2, 2, edge // 2, 2, channels).mean((2, 4))
        low = self.unit("middle2", parameters, self.unit("middle1", parameters, low))
        low = jnp.repeat(jnp.repeat(low, 2, 1), 2, 2)
        x = self.unit("up2", parameters, self.unit("up1", parameters, jnp.concatenate([high, low], -1)))
        with jax.named_scope("head"):
            return self.convolve(parameters["head"], x)


def step(
    net: type[UNet] = UNet,
    options: dict[str, str] | None = None,
    batch: int | None = None,
) -> roofline.Step:
    keys = iter(jax.random.split(jax.random.key(0), 8))

    def kernel(edge: int, inputs: int, outputs: int) -> Array:
        return jax.random.normal(next(keys), (edge, edge, inputs, outputs)) * (edge * edge * inputs) ** -0.5

    parameters: Parameters = {
        name: {"weights": kernel(3, *shape), "scale": jnp.linspace(0.5, 1.5, shape[1]), "shift": jnp.zeros(shape[1])}
        for name, shape in UNITS.items()
    }
    parameters["head"] = kernel(1, CHANNELS, 4)
    batch = batch or SAMPLES
    images = jax.random.normal(next(keys), (batch, EDGE, EDGE, 4))
    forward = jax.jit(net().__call__, compiler_options=options)
    count = sum(array.size for array in jax.tree.leaves(parameters))
    return roofline.Step(
        run=lambda: forward(parameters, images), parameters=count, trainable=count, samples=batch, batch=batch
    )


def _finite(number: Any) -> None:
    if not abs(float(number)) < 1e6:
        raise ValueError("a number is too large")


class CallingBack(UNet):
    def unit(self, name: str, parameters: Parameters, x: Array) -> Array:
        x = super().unit(name, parameters, x)
        jax.debug.callback(_finite, jnp.abs(x).max())
        return x


def variant(**changes: Any) -> Callable[..., roofline.Step]:
    """Return the function that makes a step with some arguments of `step` changed, for `roofline profile`."""

    def make_step(batch: int | None = None) -> roofline.Step:
        return step(batch=batch, **changes)

    return make_step


make_step = variant()
#: After each unit its largest number goes to a function in Python.
callbacks = variant(net=CallingBack)
#: XLA's fusion pass is off.
no_fusion = variant(options={"xla_disable_hlo_passes": "fusion"})
