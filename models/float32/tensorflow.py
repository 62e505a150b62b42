"""TensorFlow's float32 switch: whether contractions on a GPU may take TF32, which is its default."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow as tf

from roofline.models._precision import Arithmetic
from roofline.models.float32 import missing


def set_arithmetic(arithmetic: Arithmetic) -> None:
    """Has every float32 contraction computed so. Raises InputError where the GPU has no TF32."""
    if arithmetic == "tf32" and not has_tf32():
        raise missing()
    tf.config.experimental.enable_tensor_float_32_execution(arithmetic == "tf32")


def allows_tf32() -> bool:
    """Whether TF32 is switched on; a device that has none computes in IEEE float32 all the same."""
    return bool(tf.config.experimental.tensor_float_32_execution_enabled())


def has_tf32() -> bool:
    """Whether the first GPU is of Ampere or later."""
    found = tf.config.experimental.get_device_details(tf.config.list_physical_devices("GPU")[0])
    return bool(found.get("compute_capability", (0, 0)) >= (8, 0))


@contextmanager
def kept() -> Iterator[None]:
    """Puts the switch back on leaving."""
    before = allows_tf32()
    try:
        yield
    finally:
        tf.config.experimental.enable_tensor_float_32_execution(before)
