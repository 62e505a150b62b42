"""Products with a one-hot matrix, as JAX hands them to XLA: they stand for rows picked by their index.

12 indices of 11 rows of 4: one product of 2 * 12 * 11 * 4 = 1,056 FLOP forward, and one for the gradient of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp

from roofline.xla import model_flops
from roofline.xla.hlo import module as hlo

PRODUCT = 2 * 12 * 11 * 4
INDICES, TABLE = np.arange(12, dtype=np.int32).reshape(2, 6) % 11, np.ones((11, 4), np.float32)


def asked(make: Callable[[Any], Any], dtype: Any = np.float32) -> tuple[float, int]:
    """FLOPs asked for by the product with what `make` gives, and its gradient; and how many products ask for none."""

    def step(indices: Any, table: Any) -> Any:
        return jax.grad(lambda weights: jnp.sum(jnp.einsum("bsv,vh->bsh", make(indices), weights) ** 2))(table)

    lowered = jax.jit(step).lower(INDICES, TABLE.astype(dtype))
    found = model_flops.asked(hlo.read(lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()))
    assert sum(flops for _, flops in found.once) == 2 * PRODUCT, "what runs is known again"
    return sum(found.fixed.values()), len(found.by_index)


PICKS = {
    "one_hot": lambda indices: jax.nn.one_hot(indices, 11),
    "another axis": lambda indices: jax.nn.one_hot(indices, 11, axis=1).transpose(0, 2, 1),
    "compared": lambda indices: (indices[..., None] == jnp.arange(11)).astype(jnp.float32),
    "compared the other way": lambda indices: (jnp.arange(11) == indices[..., None]).astype(jnp.float32),
    "chosen": lambda indices: jnp.where(indices[..., None] == jnp.arange(11), 1.0, 0.0),
    "identity": lambda indices: jnp.eye(11)[indices],
}
ASKS = {
    "any other": lambda indices: jnp.sin(jnp.ones((2, 6, 11))),
    "scaled": lambda indices: 2 * jax.nn.one_hot(indices, 11),
    "smoothed": lambda indices: jnp.where(indices[..., None] == jnp.arange(11), 0.9, 0.01),
    "less": lambda indices: (indices[..., None] < jnp.arange(11)).astype(jnp.float32),
    "no single one": lambda indices: (indices[..., None] == jnp.arange(132).reshape(2, 6, 11)).astype(jnp.float32),
    "counts along the indices": lambda indices: (
        jnp.arange(6)[:, None] == jnp.ones((2, 6, 11), jnp.int32) * indices[..., None]
    ).astype(jnp.float32),
}


@pytest.mark.parametrize("make", PICKS.values(), ids=PICKS)
def test_rows_picked_by_a_product_are_not_asked_for(make: Callable[[Any], Any]) -> None:
    assert asked(make) == (0, 2)


def test_in_bfloat16() -> None:
    """Whose 1 and 0 a program holds in another form."""
    chosen = jnp.asarray(1, jnp.bfloat16), jnp.asarray(0, jnp.bfloat16)
    assert asked(lambda indices: jnp.where(indices[..., None] == jnp.arange(11), *chosen), jnp.bfloat16) == (0, 2)
    assert asked(lambda indices: jnp.where(indices[..., None] == jnp.arange(11), *chosen[::-1]), jnp.bfloat16)[1] == 0


@pytest.mark.parametrize("make", ASKS.values(), ids=ASKS)
def test_what_is_not_one_hot_is_a_product(make: Callable[[Any], Any]) -> None:
    assert asked(make) == (2 * PRODUCT, 0)


def test_in_a_loop() -> None:
    """Three turns ask for none either."""

    def loop(indices: Any, table: Any) -> Any:
        def turn(sums: Any, row: Any) -> Any:
            return sums + jax.nn.one_hot(row, 11) @ table, None

        return jax.lax.scan(turn, jnp.zeros((6, 4)), indices)[0]

    proto = jax.jit(loop).lower(INDICES, TABLE).compiler_ir("hlo").as_serialized_hlo_module_proto()
    found = model_flops.asked(hlo.read(proto))
    assert not any(found.fixed.values())
    assert len(found.by_index) == 1


IMAGE = np.ones((2, 6, 5, 3), np.float32)
LAST = ("NHWC", "HWIO", "NHWC")


def convolved(image: Any, kernel: Any, groups: int = 1) -> Any:
    return jax.lax.conv_general_dilated(
        image, kernel, (1, 1), "VALID", dimension_numbers=LAST, feature_group_count=groups
    )


def of_image(function: Callable[[Any], Any]) -> tuple[float, int]:
    """FLOPs asked for by a convolution of the image and by its gradient, and how many products ask for none."""

    def step(image: Any) -> Any:
        return jax.grad(lambda image: jnp.sum(function(jnp.sin(image)) ** 2))(image)

    data = jax.jit(step).lower(IMAGE).compiler_ir("hlo").as_serialized_hlo_module_proto()
    found = model_flops.asked(hlo.read(data))
    return sum(found.fixed.values()), len(found.by_index)


@pytest.mark.parametrize("first", [True, False])
def test_patches_that_a_convolution_picks_are_not_asked_for(first: bool) -> None:
    """With an identity of the 4 places of a patch for each channel, or, as Keras has it, of its 12 numbers."""

    def patches(image: Any) -> Any:
        if first:
            return jax.lax.conv_general_dilated_patches(image, (2, 2), (1, 1), "VALID", dimension_numbers=LAST)
        return convolved(image, jnp.eye(12).reshape(2, 2, 3, 12))

    assert of_image(patches) == (0, 2)


def test_a_kernel_of_more_ones_than_results_adds_up_and_is_asked_for() -> None:
    """4 sums of the 3 channels of one place each: 12 taps for each of 2 images' 5 x 4 places, and their gradient."""

    def sums(image: Any) -> Any:
        return convolved(image, jnp.broadcast_to(jnp.eye(4).reshape(2, 2, 1, 4), (2, 2, 3, 4)))

    assert of_image(sums) == (2 * 2 * 2 * 20 * 12 * 4, 0)
