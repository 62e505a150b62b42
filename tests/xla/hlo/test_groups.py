"""Products of rows that are dealt to groups, as JAX hands them to XLA: each row is asked to meet one group's matrix.

64 rows of 32 numbers, 8 groups, matrices of 32 x 48: 2 x 64 x 32 x 48 FLOP, whatever the sizes of the groups.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp

from roofline.xla import model_flops
from roofline.xla.hlo import module as hlo

PRODUCT = 2 * 64 * 32 * 48
X, W, SIZES = np.ones((64, 32), np.float32), np.ones((8, 32, 48), np.float32), np.full(8, 8, np.int32)


def asked(function: Any, *given: Any) -> float:
    lowered = jax.jit(function).lower(*given)
    found = model_flops.asked(hlo.read(lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()))
    assert not found.as_executed
    return sum(found.fixed.values())


def mixture(x: Any, w: Any, sizes: Any) -> Any:
    return jnp.tanh(jax.lax.ragged_dot(x, w, sizes))


@pytest.mark.parametrize("sizes", [SIZES, np.asarray([60, 4, 0, 0, 0, 0, 0, 0], np.int32)])
def test_each_row_meets_one_matrix(sizes: Any) -> None:
    assert asked(mixture, X, W, sizes) == PRODUCT


def test_so_it_does_in_the_gradients_of_both() -> None:
    def gradients(x: Any, w: Any, sizes: Any) -> Any:
        return jax.grad(lambda x, w: (mixture(x, w, sizes) ** 2).sum(), (0, 1))(x, w)

    assert asked(gradients, X, W, SIZES) == 3 * PRODUCT


def test_two_layers_of_a_mixture() -> None:
    def both(x: Any, w: Any, v: Any, sizes: Any) -> Any:
        return jax.lax.ragged_dot(mixture(x, w, sizes), v, sizes)

    assert asked(both, X, W, W.swapaxes(1, 2), SIZES) == 2 * PRODUCT


def test_rows_that_are_masked_otherwise_are_asked_for() -> None:
    """Causal rows, each in as many copies as its place: no limits of groups that follow each other."""

    def masked(x: Any, w: Any) -> Any:
        copies = jnp.broadcast_to(x, (8, 64, 32))
        groups = jnp.arange(8)[:, None, None]
        rows = jnp.arange(64)[None, :, None]
        return jnp.einsum("gmk,gkn->mn", jnp.where((groups <= rows) & (rows < 3 * groups), copies, 0.0), w)

    assert asked(masked, X, W) == 8 * PRODUCT


@pytest.mark.parametrize("method", ["bilinear", "cubic", "lanczos3"])
def test_a_resized_image_asks_for_no_product(method: str) -> None:
    def resized(image: Any, w: Any) -> Any:
        return jax.image.resize(image, (2, 16, 20, 3), method) @ w

    image, w = np.ones((2, 8, 10, 3), np.float32), np.ones((3, 4), np.float32)
    assert asked(resized, image, w) == 2 * (2 * 16 * 20) * 3 * 4
