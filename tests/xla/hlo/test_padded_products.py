"""Products of rows that are filled up with zeros and cut off again, as JAX hands them to XLA.

30 rows filled up to 32, by a matrix of 14 x 8, whose 14 are filled up to 16 where both factors are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp

from roofline.xla import model_flops
from roofline.xla.hlo import module as hlo

ROW = 2 * 14 * 8
X, W = np.ones((30, 14), np.float32), np.ones((14, 8), np.float32)
ROWS, SUMMED = ((0, 2), (0, 0)), ((0, 0), (0, 2))


def asked(function: Any, *given: Any) -> float:
    lowered = jax.jit(function).lower(*given)
    found = model_flops.asked(hlo.read(lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()))
    return sum(found.fixed.values())


def filled(x: Any, w: Any) -> Any:
    return (jnp.pad(x, ROWS) @ w)[:30]


def test_rows_that_are_filled_up_and_cut_off_are_not_asked_for() -> None:
    assert asked(filled, X, W) == 30 * ROW
    assert asked(jax.grad(lambda x, w: (filled(x, w) ** 2).sum(), (0, 1)), X, W) == 3 * 30 * ROW
    many = np.ones((3, 30, 14), np.float32)
    assert asked(jax.vmap(filled, (0, None)), many, W) == 3 * 30 * ROW


def test_gradients_of_rows_and_columns_that_are_filled_up_and_cut_off() -> None:
    """30 rows filled up to 32, 14 that are summed to 16 and 8 columns to 11: the gradient of W is turned, then cut."""

    def taken(x: Any, w: Any) -> Any:
        return (jnp.pad(x, ((0, 2), (0, 2))) @ jnp.pad(w, ((0, 2), (0, 3))))[:30, :8]

    assert asked(taken, X, W) == 30 * ROW
    assert asked(jax.grad(lambda x, w: (taken(x, w) ** 2).sum(), (0, 1)), X, W) == 3 * 30 * ROW


def test_rows_that_are_cut_off_behind_a_bias_of_each_sample_are_not_asked_for() -> None:
    """3 samples, in each of which 30 rows are filled up to 32: `vmap` puts the samples in front of the columns."""

    def taken(x: Any, w: Any, bias: Any) -> Any:
        return (jnp.pad(x, ROWS) @ w + bias)[:30]

    many, biases, tables = (
        np.ones((3, 30, 14), np.float32),
        np.ones((3, 8), np.float32),
        np.ones((3, 32, 8), np.float32),
    )
    assert asked(jax.vmap(taken, (0, None, 0)), many, W, biases) == 3 * 30 * ROW
    # A number of its own for each row and column is no bias.
    assert asked(jax.vmap(taken, (0, None, 0)), many, W, tables) == 3 * 32 * ROW
    assert asked(jax.vmap(taken, (0, None, None)), many, W, tables[0]) == 3 * 32 * ROW


def test_what_both_factors_are_filled_up_with_is_not_asked_for() -> None:
    assert asked(lambda x, w: jnp.pad(x, SUMMED) @ jnp.pad(w, ((0, 2), (0, 0))), X, W) == 30 * ROW


def test_rows_that_somebody_reads_or_that_hold_numbers_are_asked_for() -> None:
    assert asked(lambda x, w: jnp.pad(x, ROWS) @ w, X, W) == 32 * ROW
    assert asked(lambda x, w: (jnp.pad(x, ROWS, constant_values=1) @ w)[:30], X, W) == 32 * ROW
    assert asked(lambda x, w: (x @ w)[:20], X, W) == 30 * ROW
    # The first two rows are cut off, and the last two were filled up.
    assert asked(lambda x, w: (jnp.pad(x, ROWS) @ w)[2:], X, W) == 32 * ROW
    assert asked(lambda x, w: jnp.pad(x, SUMMED) @ w, X, np.ones((16, 8), np.float32)) == 30 * 2 * 16 * 8
