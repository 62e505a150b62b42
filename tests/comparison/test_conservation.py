"""Work is neither lost nor made: what products were asked for, where it was joined to the wrong ones."""

from __future__ import annotations

from dataclasses import replace as change
from pathlib import Path

import numpy as np
import pytest
import randomly
from explained import found
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import LAYER, LINEAR, SDPA, Row, step

from roofline.analysis.analysis import analyze
from roofline.comparison.conservation import asked_and_done, conserved, other_work
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


@settings(deadline=None, max_examples=40)
@given(randomly.profiles(), randomly.profiles())
def test_other_work_flips_with_the_runs_and_a_run_has_none_beside_itself(a: Profile, b: Profile) -> None:
    one, other = (conserved(segments(analyze(profile))) for profile in (a, b))
    for phase in {place.phase for place in (*one.places, *other.places)}:
        assert other_work(one, other, phase) == -other_work(other, one, phase)
        assert other_work(one, one, phase) == 0


def test_what_was_asked_for_and_what_a_compiler_left_out() -> None:
    """Of products that execute 20, 30 and none, for 40, 20 and 10 asked for, 20, 20 and 10 were asked for and done."""
    some = segments(analyze(step((product(20, 40), product(30, 20), product(0, 10), change(LINEAR, op_class="other")))))
    assert (asked_and_done(some) / 1e6).tolist() == [20, 20, 10, 0]


# Said of two runs


def renamed(rows: tuple[Row, ...], name: str = "dot") -> tuple[Row, ...]:
    return tuple(change(row, name=f"{name}.{row.name}") for row in rows)


BACKWARD = tuple(change(row, phase="backward") for row in LAYER)


def test_gradients_under_one_name_are_neither_computed_again_nor_other_work() -> None:
    """One run executes as the other one does, with what a layer's second product asks for on its first."""
    wrong = tuple(
        change(row, model_flops=(2 * row.flops, 0.0)[number // 2]) if number in (0, 2) else row
        for number, row in enumerate(BACKWARD)
    )
    told = found(step(LAYER * 4 + renamed(wrong) * 4, backend="jax"), step(LAYER * 4 + BACKWARD * 4))
    assert not told.keys() & {"recomputation", "padding", "more-work", "tiny-ops"}


def test_of_places_that_differ_both_ways_no_more_is_told_than_the_phase_leaves() -> None:
    """A puts three products of 20 MFLOP into the head, B two of 40 into attention: B does 20 more, and no run 60."""
    head = [change(LINEAR, name="aten::mm", block="head", own=400)] * 3
    other = [change(LINEAR, name="dot", flops=40e6, own=1600)] * 2
    told = found(step((*LAYER * 4, *head)), step(renamed(LAYER * 4) + tuple(other), backend="jax"))
    assert told["more-work"].text.startswith("jax spends 2.00 ms more on products")
    assert "80.0 MFLOP against 60.0 MFLOP in their place" in told["more-work"].text


def test_what_one_compiler_left_out_is_asked_for_by_both() -> None:
    """B merged two equal products: one executes 20 MFLOP for the 40 that were asked for."""
    less = (change(LINEAR, name="dot", model_flops=40e6), *renamed(LAYER * 4)[1:])
    told = found(step((change(LINEAR, own=600), *LAYER * 4)), step(less, backend="jax"))
    assert told["more-work"].advice.startswith("both programs ask for these products")


def test_both_runs_compute_the_same_again_as_other_products_of_other_blocks() -> None:
    """40 MFLOP four times: one run has two products for what the other one has in one, and counts them to the FFN."""
    again = [change(LINEAR, name="dot", flops=40e6, own=900, phase="backward", model_flops=0.0)] * 4
    elsewhere = [change(LINEAR, name="aten::mm", block="FFN", phase="backward", model_flops=0.0)] * 8
    told = found(step((*LAYER * 4, *elsewhere)), step((*renamed(LAYER * 4), *again), backend="jax"))
    assert not told.keys() & {"recomputation", "more-work"}


def test_a_padded_product_beside_two_is_no_other_work() -> None:
    """Both are asked for 40 MFLOP; as one product that is padded to 60, and as two."""
    padded = change(LINEAR, name="dot", flops=60e6, model_flops=40e6, own=2000)
    told = found(step((LINEAR, LINEAR, *LAYER * 4)), step((padded, *renamed(LAYER * 4)), backend="jax"))
    assert "more-work" not in told


def test_the_bias_of_a_product_in_a_kernel_of_its_own_is_no_product() -> None:
    """It has the class of the product, and executes none: it does not count among them."""
    bias = Row("matmul", "contraction", 100, bytes=0.5e6)
    told = found(step(tuple(one for row in LAYER * 4 for one in (row, bias))), step(renamed(LAYER * 4), backend="jax"))
    assert not told.keys() & {"tiny-ops", "more-work"}


def comparable() -> list[tuple[str, str]]:
    """Saved runs of an H100 that say the same of what was run, in which precision."""
    runs: dict[object, list[str]] = {}
    for file in sorted(H100.glob("bert-*.json")):
        profile = load(file)
        key = profile.model, profile.mode, profile.size, profile.batch, profile.seq, profile.precision
        runs.setdefault(key, []).append(file.stem)
    return [(a, b) for names in runs.values() for number, a in enumerate(names) for b in names[number + 1 :]]


@pytest.mark.parametrize(("a", "b"), comparable())
def test_equal_runs_on_an_h100_do_no_other_work(a: str, b: str) -> None:
    """All execute what they were asked for, in each phase, and were asked for the same."""
    told = found(load(H100 / f"{a}.json"), load(H100 / f"{b}.json"))
    assert not told.keys() & {"recomputation", "padding", "more-work"}


@pytest.mark.parametrize("mode", ["infer", "train"])
def test_products_of_an_h100_are_asked_for_what_they_execute(mode: str) -> None:
    """Saved before the join was mended: a merged product has the name of one of three, dX what dW was asked for."""

    def apart(some: Segments) -> float:
        return float(np.abs(some.flops - some.model_flops).sum())

    before = segments(analyze(load(H100 / f"bert-jax-buffers-on-{mode}-b32-tf32.json")))
    # Query, key and value of 4096 x 768 x 768 in 12 layers: two of three lie on another product.
    assert apart(before) >= 2 * 12 * 2 * (2 * 4096 * 768 * 768)
    assert apart(conserved(before)) == 0
