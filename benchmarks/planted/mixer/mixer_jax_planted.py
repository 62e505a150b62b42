"""Copies of the mixer in JAX with one cause planted; all compute the same function."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from mixer_jax import Mixer, Parameters, scaled, variant


def _checking(mixer: Mixer, parameters: Parameters, images: Array) -> Callable[[], object]:
    embed, block, logits = jax.jit(mixer.embed), jax.jit(mixer.block), jax.jit(mixer.logits)

    def run() -> object:
        x = embed(parameters, images)
        for weights in parameters["blocks"]:
            host = np.array(block(weights, x))
            if not np.isfinite(host).all() or np.abs(host).max() > 1e6:
                raise ValueError("a number is not finite, or too large")
            x = jnp.array(host)
        return logits(parameters, x)

    return run


def _gelu(x: np.ndarray) -> np.ndarray:
    x = np.asarray(x)
    return (0.5 * x * (1.0 + np.tanh((2.0 / np.pi) ** 0.5 * (x + 0.044715 * x * x * x)))).astype(x.dtype)


class HostGelu(Mixer):
    def activate(self, x: Array) -> Array:
        return jax.pure_callback(_gelu, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def _anew(mixer: Mixer, parameters: Parameters, images: Array) -> Callable[[], object]:
    forward = jax.jit(mixer.__call__)

    def run() -> object:
        prepare = jax.jit(lambda images: scaled(images))
        return forward(parameters, prepare(images))

    return run


def _eagerly(mixer: Mixer, parameters: Parameters, images: Array) -> Callable[[], object]:
    return lambda: mixer(parameters, images)


# --------------------------------------------------------------------------------------------------------- the copies

#: A program per layer, and between them the numbers go to NumPy, are checked there, and come back.
numpy_between = variant(runs=_checking)
#: Half of the GELUs are a function of NumPy that the program calls back.
gelu_in_numpy = variant(mixer=HostGelu)
#: Each step jits the function that prepares the images, which is compiled each time.
jitted_anew = variant(runs=_anew)
#: `jax.jit` was forgotten.
not_jitted = variant(runs=_eagerly)
