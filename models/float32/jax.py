"""JAX's float32 switch: one setting for all contractions, which XLA reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import jax

from roofline.models._precision import Arithmetic
from roofline.models.float32 import missing

#: Values of `jax_default_matmul_precision` that mean IEEE float32 in XLA.
_IEEE = frozenset(("highest", "float32"))
#: What sets `jax_default_matmul_precision` to an arithmetic.
_SETTINGS = {"ieee": "highest", "tf32": "tensorfloat32"}


def set_arithmetic(arithmetic: Arithmetic) -> None:
    """Has every float32 contraction computed so. Raises InputError where the GPU has no TF32."""
    if arithmetic == "tf32" and not has_tf32(jax.devices("gpu")[0]):
        raise missing()
    jax.config.update("jax_default_matmul_precision", _SETTINGS[arithmetic])


def arithmetic(device: jax.Device) -> Arithmetic:
    """What XLA makes of a float32 contraction now: TF32 is its default on a GPU that has it."""
    return "tf32" if has_tf32(device) and jax.config.jax_default_matmul_precision not in _IEEE else "ieee"


def has_tf32(device: jax.Device) -> bool:
    """Whether the device is an NVIDIA GPU of Ampere or later."""
    try:
        return device.platform != "cpu" and float(getattr(device, "compute_capability", "")) >= 8.0
    except ValueError:  # an AMD GPU says "gfx90a"
        return False


@contextmanager
def kept() -> Iterator[None]:
    """Puts the switch back on leaving."""
    before = jax.config.jax_default_matmul_precision
    try:
        yield
    finally:
        jax.config.update("jax_default_matmul_precision", before)
