"""Copies and transposes between the same ops. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

import pytest
from explained import COPY, before, found, near, only, xla
from msgspec.structs import replace
from synthetic import (
    GELU,
    LAYER,
    LINEAR,
    Row,
    instead,
    step,
)


def test_transposes_that_one_run_makes() -> None:
    copy = Row("aten::copy_", "movement", 120, bytes=0.4e6, block="FFN")
    found = only(step((*LAYER, copy) * 4), step())
    assert found.rule == "layout"
    assert found.seconds == near(4 * (120 + 10))


def test_copies_are_another_layout() -> None:
    told = found(step(before(GELU.name, COPY, COPY)), step())
    assert {rule: finding.seconds for rule, finding in told.items()} == {"layout": near(4 * 2 * 110)}


@pytest.mark.parametrize(
    ("framework", "advised"),
    [("torch", ".contiguous()"), ("tensorflow", "data_format"), ("another", "order of axes")],
)
def test_copies_are_left_out_in_the_words_of_the_framework(framework: str, advised: str) -> None:
    told = found(step(before(GELU.name, COPY, COPY), framework=framework), step(framework=framework))
    assert advised in told["layout"].advice
    assert (".contiguous()" in told["layout"].advice) == (framework == "torch")


@pytest.mark.parametrize(("programs", "rule"), [(1.0, "layout"), (9.0, "host-bound"), (60.0, "jit-not-in-effect")])
def test_small_copies_between_programs_are_there_for_them(programs: float, rule: str) -> None:
    """Ten copies of 2 µs in each of four layers, 10 µs of the host before each; of 68 ops 60 may be programs."""
    copies = (change(COPY, own=2, bytes=0.02e6),) * 10
    told = found(xla(programs, before(GELU.name, *copies)), xla(1.0))
    assert {rule: finding.seconds for rule, finding in told.items()} == {rule: near(4 * 10 * 12)}


def test_a_cast_is_no_layout() -> None:
    # To fp64 a copy writes twice what it reads: 0.1 and 0.2 MB
    cast = Row("aten::_to_copy", "movement", 100, bytes=0.3e6, block="FFN")
    profile = step(before(GELU.name, cast))
    wider = tuple(
        replace(one, cost=replace(one.cost, bytes_read=0.1e6, bytes_written=0.2e6)) if one.name == cast.name else one
        for one in profile.signatures
    )
    assert "layout" in found(profile, step())
    assert "layout" not in found(replace(profile, signatures=wider), step())


def test_what_a_kernel_that_casts_moves_is_no_layout() -> None:
    """As much as it reads, inside of work that the other run does not do: there and back, or beside a wider type."""
    moves = Row("movement", "movement", 0, bytes=0.9e6, block="FFN")
    adds = Row("pointwise", "pointwise", 0, bytes=0.3e6, block="FFN")
    kernel = Row("transpose_add_fusion", "pointwise", 200, bytes=0.4e6, block="FFN", parts=(moves, adds))
    assert "layout" in found(step(before(GELU.name, kernel)), step())
    wide = change(kernel, dtype="fp64", parts=(moves, change(adds, dtype="fp64")))
    for cast in (change(kernel, name="convert_add_fusion"), wide):
        assert "layout" not in found(step(before(GELU.name, cast)), step())


def test_another_memory_format_is_a_layout_with_its_name() -> None:
    """The same linear ops, 300 µs on contiguous tensors and 200 on tensors that are channels_last: 12 of them."""
    fast = step(tuple(change(row, own=200) if row.name == LINEAR.name else row for row in LAYER * 4))
    laid = tuple(replace(one, layout="channels_last") if one.name == LINEAR.name else one for one in fast.signatures)
    told = only(step(), replace(fast, signatures=laid))
    assert (told.rule, told.seconds) == ("layout", near(12 * 100))
    assert "contiguous (NCHW) tensors" in told.text
    assert "memory_format=torch.channels_last" in told.advice
    assert "layout" not in found(step(), fast)


def test_a_loop_that_is_put_together_by_copies_is_one_finding() -> None:
    """A GELU of 0.2 MB in 16 slices of which each is copied, 0.4 MB in all, which are no launches' floor."""
    slices = (change(GELU, own=30, bytes=0.0125e6), change(COPY, own=30, bytes=0.0125e6)) * 16
    told = found(step(instead(LAYER * 4, GELU.name, slices)), step())
    assert {rule: one.seconds for rule, one in told.items()} == {"tiny-ops": near(4 * (32 * 40 - 60))}
