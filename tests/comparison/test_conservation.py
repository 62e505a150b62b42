"""Work is neither lost nor made: what products were asked for, where it was joined to the wrong ones."""

from __future__ import annotations

from dataclasses import replace as change
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import SDPA, Row, step

from roofline.analysis.analysis import analyze
from roofline.comparison.conservation import conserved
from roofline.comparison.segments import Segments, segments
from roofline.core.schema import Profile, load
from roofline.core.vocabulary import PRODUCTS

H100 = Path(__file__).parents[2] / "profiles" / "h100"


def asked(*rows: Row) -> list[float]:
    """What each op was asked for by the rule [MFLOP]."""
    return (conserved(segments(analyze(step(rows)))).model_flops / 1e6).tolist()


def product(flops: float, model: float, block: str = "FFN", phase: str = "backward") -> Row:
    """A product that executes and was asked for so much [MFLOP]."""
    return Row("aten::mm", "contraction", 300, flops=flops * 1e6, model_flops=model * 1e6, block=block, phase=phase)


def test_two_gradients_of_which_one_has_the_name_of_both() -> None:
    """XLA: dX is asked for twice what it executes, dW, which took in a transpose, for nothing."""
    assert asked(product(20, 40), product(20, 0), product(20, 40), product(20, 0)) == [20] * 4


def test_merged_products_of_which_two_names_went_elsewhere() -> None:
    """Query, key and value as one product with the name of one; what the other two ask for lies on the first FFN."""
    merged = product(60, 20, "attention")
    assert asked(product(80, 160), merged, product(20, 20), merged) == [80, 60, 20, 60]


def test_equal_amounts_of_the_block_come_before_others() -> None:
    """The second lacks 20 and is nearer, the third lacks 10 in the same block, the last one 20."""
    rows = product(20, 40), product(20, 0, "attention"), product(30, 20), product(20, 0)
    assert asked(*rows) == [20, 0, 20, 20]


def test_no_phase_takes_from_another() -> None:
    rows = product(20, 40, phase="forward"), product(20, 0)
    assert asked(*rows) == [40, 0]


def test_what_is_executed_besides_stays() -> None:
    """60 of 100 MFLOP were not asked for; of 20 that nobody executes, 20 are found, and 40 are done again or padded."""
    rows = product(20, 40), product(60, 20), product(20, 0)
    assert asked(*rows) == [20, 20, 20]


def test_kernels_of_attention_multiply_more_often_and_products_may_become_vector_work() -> None:
    """The kernel executes 25 for 20; the second one was made a multiplication and keeps what it was asked for."""
    kernel = change(SDPA, flops=25e6, model_flops=20e6, phase="backward")
    assert asked(kernel, product(0, 10), product(20, 0)) == [20, 10, 0]
    # 20 that nobody executes are those of the product, and 5 more stay where they are
    assert asked(kernel, product(20, 45), product(20, 0)) == [20, 25, 20]


WORK = st.sampled_from([0.0, 5e6, 10e6, 15e6, 20e6, 40e6, 60e6])


@st.composite
def products(draw: st.DrawFn) -> Profile:
    rows = st.builds(
        Row,
        name=st.just("aten::mm"),
        op_class=st.sampled_from(["contraction", "contraction", "attention", "pointwise"]),
        own=st.just(300.0),
        flops=WORK,
        model_flops=WORK,
        block=st.sampled_from(["attention", "FFN"]),
        phase=st.sampled_from(["forward", "backward"]),
    )
    return step(draw(st.lists(rows, min_size=1, max_size=14)))


@settings(deadline=None, max_examples=150)
@given(products())
def test_the_rule(profile: Profile) -> None:
    before = segments(analyze(profile))
    after = conserved(before)
    for phase in ("forward", "backward"):
        mine = np.asarray([place.phase == phase and place.op_class in PRODUCTS for place in before.places], bool)
        assert after.model_flops[mine].sum() == before.model_flops[mine].sum(), "nothing is lost or made"
        rest = mine & (before.flops > 0)
        rest &= ~np.asarray([place.op_class == "attention" for place in before.places], bool)
        if not (mine & ~rest).any():
            more = after.flops[rest] - after.model_flops[rest]
            assert np.maximum(more, 0).sum() == max(more.sum(), 0.0)
    others = ~np.isin(np.arange(len(before)), np.flatnonzero([p.op_class in PRODUCTS for p in before.places]))
    assert (after.model_flops[others] == before.model_flops[others]).all()


@pytest.mark.parametrize("mode", ["infer", "train"])
def test_products_of_an_h100_are_asked_for_what_they_execute(mode: str) -> None:
    """Saved before the join was mended: a merged product has the name of one of three, dX what dW was asked for."""

    def apart(some: Segments) -> float:
        return float(np.abs(some.flops - some.model_flops).sum())

    before = segments(analyze(load(H100 / f"bert-jax-buffers-on-{mode}-b32-tf32.json")))
    # Query, key and value of 4096 x 768 x 768 in 12 layers: two of three lie on another product.
    assert apart(before) >= 2 * 12 * 2 * (2 * 4096 * 768 * 768)
    assert apart(conserved(before)) == 0
