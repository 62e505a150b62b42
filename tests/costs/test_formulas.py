"""Closed forms against counting on the fingers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.core.cost import Cost
from roofline.costs import formulas


def test_matmul() -> None:
    m, n, k, batch = 4, 5, 6, 3
    assert formulas.matmul(m, n, k, batch).flops == 2 * batch * m * n * k  # 720
    assert formulas.matmul(m, n, k).model_flops == 240


@settings(max_examples=500)
@given(st.integers(1, 12), st.integers(1, 5), st.integers(1, 4), st.integers(0, 5), st.integers(1, 3))
def test_valid_taps(size: int, kernel: int, stride: int, padding: int, dilation: int) -> None:
    outputs = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    if outputs < 1:
        return
    places = [o * stride - padding + tap * dilation for o in range(outputs) for tap in range(kernel)]
    brute = sum(0 <= place < size for place in places)
    assert formulas.valid_taps(size, kernel, stride, padding, dilation, outputs) == brute


def test_convolution_counts_valid_positions_only() -> None:
    # 3x3, padding 1, on 16x16: in each dimension 16 * 3 - 2 = 46 (output, tap) pairs are inside, one tap of the first
    # and one of the last output being padding. 2 * 8 out * 8 in * 46 * 46 = 270 848; with padding 2 * 8 * 8 * 48 * 48
    # = 294 912.
    cost = formulas.convolution(1, 8, 8, 1, (16, 16), (3, 3), (1, 1), (1, 1), (1, 1), (16, 16))
    assert cost.flops == 270_848
    # In two groups each output channel sees 4 of the 8 input channels.
    grouped = formulas.convolution(1, 8, 8, 2, (16, 16), (3, 3), (1, 1), (1, 1), (1, 1), (16, 16))
    assert grouped.flops == 270_848 / 2


def test_attention_is_two_products() -> None:
    b, h, q, k, d, v = 2, 3, 5, 7, 11, 13
    scores, values = formulas.matmul(q, k, d, b * h), formulas.matmul(q, v, k, b * h)
    cost = formulas.attention(b, h, q, k, d, v)
    assert cost.model_flops == (scores + values).model_flops
    assert cost.flops == cost.useful_flops == cost.model_flops
    # per score: scale, subtract the maximum, divide, and the two reductions; one exp
    assert cost.vector_flops == 5 * b * h * q * k
    assert cost.functions == {"exp": b * h * q * k}


def test_causal_attention_runs_all_and_uses_half() -> None:
    n = 4
    cost = formulas.attention(1, 1, n, n, 8, 8, causal=True)
    assert cost.flops == 2 * 2 * n * n * 8
    assert cost.useful_flops == 2 * 2 * (n * (n + 1) // 2) * 8  # 10 of 16 pairs
    assert cost.model_flops == cost.flops  # the full mask, so that every backend's count agrees


@given(st.integers(1, 20), st.integers(1, 20))
def test_causal_pairs(queries: int, keys: int) -> None:
    assert formulas.causal_pairs(queries, keys) == sum(k <= q for q in range(queries) for k in range(keys))


@pytest.mark.parametrize("causal", [False, True])
def test_attention_backward_asks_for_four_products(causal: bool) -> None:
    shape = (2, 3, 16, 16, 8, 8)
    forward = formulas.attention(*shape, causal=causal)
    fused = formulas.attention_backward(*shape, causal=causal)
    apart = formulas.attention_backward(*shape, causal=causal, products=7)
    # with width = width_v every product costs the same: 2 forward, 4 asked for backward
    assert fused.model_flops == apart.model_flops == 4 / 2 * forward.model_flops
    assert fused.flops == 5 / 4 * fused.model_flops  # the scores again
    assert apart.flops == 7 / 4 * apart.model_flops  # and, a second time, with dP
    assert fused.useful_flops == 5 / 2 * forward.useful_flops


def test_attention_backward_with_two_widths() -> None:
    d, v, pairs = 8, 32, 16 * 16
    cost = formulas.attention_backward(1, 1, 16, 16, d, v)
    # dV and dP over v; dQ and dK over d; the scores again over d
    assert cost.model_flops == 2 * pairs * (2 * v + 2 * d)
    assert cost.flops == 2 * pairs * (2 * v + 3 * d)
    assert formulas.attention_backward(1, 1, 16, 16, d, v, products=7).flops == 2 * pairs * (3 * v + 4 * d)


def test_elementwise() -> None:
    n = 100
    assert formulas.elementwise("add", n) == Cost(vector_flops=100.0)
    assert formulas.elementwise("addcmul", n).vector_flops == 200
    assert formulas.elementwise("lerp", n).vector_flops == 300  # a + w * (b - a)
    assert formulas.elementwise("erf", n) == Cost(functions={"erf": 100.0})
    assert formulas.elementwise("where", n) == Cost()
    with pytest.raises(KeyError):
        formulas.elementwise("frobnicate", n)


def test_kinds_are_in_one_table_each() -> None:
    tables = [set(formulas.ARITHMETIC), set(formulas.FUNCTIONS), set(formulas.WORKLESS)]
    assert sum(len(table) for table in tables) == len(set.union(*tables))


def test_reductions() -> None:
    assert formulas.reduction(1000, 10).vector_flops == 990  # 10 sums of 100 numbers take 99 additions each
    assert formulas.reduction(1000, 10, mean=True).vector_flops == 1000
    assert formulas.reduction(0, 10).vector_flops == 0
    # two passes: (sum 990, divide 10), (subtract 1000, square 1000), (sum 990, divide 10)
    assert formulas.variance(1000, 10).vector_flops == 4000
    # square 1000, sum 990, 10 roots
    assert formulas.norm(1000, 10) == Cost(vector_flops=1990.0, functions={"sqrt": 10.0})


def test_optimizers() -> None:
    n = 1000
    assert formulas.optimizer_update("adam", n) == Cost(vector_flops=12_000.0, functions={"sqrt": 1000.0})
    # decoupled weight decay multiplies each parameter once more
    assert formulas.optimizer_update("adamw", n) == Cost(vector_flops=13_000.0, functions={"sqrt": 1000.0})
    assert formulas.optimizer_update("sgd", n) == Cost(vector_flops=2_000.0)
    with pytest.raises(KeyError):
        formulas.optimizer_update("lion", n)


def test_random_numbers_are_draws() -> None:
    assert formulas.random(7) == Cost(functions={"random": 7.0})
