"""Attention in one fused kernel and written out. Steps made by hand."""

from __future__ import annotations

import pytest
from explained import found, near, only
from msgspec.structs import replace
from synthetic import (
    EAGER_ATTENTION,
    LAYER,
    Row,
    instead,
    step,
)

from roofline.analysis.analysis import analyze
from roofline.comparison.parity.parity import parity
from roofline.core.cost import not_fused
from roofline.core.schema import Profile


def called(why: str) -> Profile:
    """Attention written out by PyTorch itself, in a call of its fused attention that no kernel took."""
    plain = step(instead(LAYER * 4, "aten::sdpa", EAGER_ATTENTION))
    noted = [
        replace(one, cost=replace(one.cost, note=not_fused(why))) if one.name == "aten::bmm" else one
        for one in plain.signatures
    ]
    return replace(plain, signatures=tuple(noted))


@pytest.mark.parametrize(
    ("why", "told", "advice"),
    [
        (
            "the strided last dimension of key and value",
            "the strided last dimension of key and value:",
            ".contiguous()",
        ),
        ("its dropout, which the kernel of a CPU lacks", "its dropout, which", "dropout_p=0.0"),
        ("a mask of 3 dimensions", "a mask of 3", "two or four"),
        ("tensors of 3 dimensions instead of 4", "tensors of 3", "batch, heads"),
        ("the other width of value's heads", "the other width", "equally wide"),
        ("", "something that was not recorded (its arguments, or kernels", "look for sdpa_kernel, enable_flash_sdp"),
    ],
)
def test_a_call_of_fused_attention_that_no_kernel_takes(why: str, told: str, advice: str) -> None:
    """To use the fused kernel is what the program does already: what helps is other arguments."""
    finding = only(called(why), step())
    assert finding.rule == "attention"
    assert f"calls of fused attention that no fused kernel carries out, because of {told}" in finding.text
    assert advice in finding.advice
    assert "use the fused kernel" not in finding.advice


def test_the_form_of_such_attention_is_known() -> None:
    (difference,) = parity(analyze(called("")), analyze(step())).of("named")
    assert difference.a == "a call of fused attention that no fused kernel carries out"
    assert "not known" not in difference.text


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
