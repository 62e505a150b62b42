"""Attention in one fused kernel and written out. Steps made by hand."""

from __future__ import annotations

from explained import found, near, only
from synthetic import (
    EAGER_ATTENTION,
    LAYER,
    Row,
    instead,
    step,
)


def test_attention_written_out() -> None:
    found = only(step(instead(LAYER * 4, "aten::sdpa", EAGER_ATTENTION)), step())
    assert found.rule == "attention"
    assert found.seconds == near(4 * (400 - 200 + 2 * 10))
    assert "attention written out" in found.text


def test_seven_products_for_five_in_attention_are_no_padding() -> None:
    def backward(executed: float, own: float) -> tuple[Row, ...]:
        row = Row(
            "aten::sdpa_backward", "attention", own, flops=executed, model_flops=20e6, bytes=1e6, phase="backward"
        )
        return (*LAYER * 4, *(row,) * 4)

    told = found(step(backward(35e6, 700)), step(backward(25e6, 500)))
    assert set(told) == {"attention"}
    assert told["attention"].seconds == near(800)


def test_a_sum_with_an_unknown_part_is_at_least_that() -> None:
    mask = Row("mylib::mask", "pointwise", 10, known=False)
    told = found(step(instead(LAYER * 4, "aten::sdpa", (*EAGER_ATTENTION, mask))), step())
    # 4 * 3 * 0.4 MB are known of 16 launches
    assert "16 launches that move at least 4.80 MB" in told["attention"].text
    assert "4 launches that move 1.60 MB" in told["attention"].text


def test_an_option_of_the_model_changes_no_dispatch() -> None:
    eager = instead(LAYER * 4, "aten::sdpa", EAGER_ATTENTION)
    told = found(step(eager, options={"attention": "eager"}), step(options={"attention": "sdpa"}))
    assert told["attention"].seconds == near(4 * (400 - 200 + 2 * 10))
    assert set(told) == {"attention"}
