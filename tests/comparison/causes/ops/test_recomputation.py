"""What is computed again, and for the first time. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

from explained import findings, found, near, only
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import (
    GELU,
    LAYER,
    LINEAR,
    NORM,
    SDPA,
    Row,
    step,
)

from roofline.comparison.causes.findings import explain
from roofline.comparison.terms import compare


def test_checkpointed_activations() -> None:
    backward = tuple(change(row, phase="backward") for row in LAYER * 4)
    again = tuple(change(row, phase="backward", model_flops=0.0) for row in LAYER)
    once = (*LAYER * 4, *backward)
    found = findings(step((*LAYER * 4, *((*again, *backward[:7]) * 4))), step(once))
    assert found[0].rule == "recomputation"
    assert found[0].seconds == near(4 * (1200 + 7 * 10))


def test_what_is_computed_again_takes_longer_at_first_and_again_without_products() -> None:
    """Per layer: what is done first takes a fifth longer, for hooks; and a lone norm is done again backward."""
    backward = tuple(change(row, phase="backward", flops=2 * row.flops) for row in LAYER)
    again = tuple(change(row, phase="backward", model_flops=0.0) for row in LAYER)
    norm = change(NORM, phase="backward", name="aten::rms_norm")
    first = tuple(change(row, own=1.2 * row.own) for row in LAYER)
    found = only(
        step((*first * 4, *((*again, *backward[:3], norm, *backward[3:]) * 4))), step((*LAYER * 4, *(backward * 4)))
    )
    assert found.rule == "recomputation"
    assert found.seconds == near(4 * (1200 + 7 * 10 + 0.2 * 1200 + 30 + 10))
    assert found.text.endswith("; 960 µs of it is what the ops that do them first or follow them take longer.")


def test_of_equal_layers_of_which_one_is_computed_again_nobody_knows_which() -> None:
    """All forward ops take a fifth longer; one layer of four is done again, and the others were not set up for it."""
    backward = tuple(change(row, phase="backward", flops=2 * row.flops) for row in LAYER)
    again = tuple(change(row, phase="backward", model_flops=0.0) for row in LAYER)
    slower = tuple(change(row, own=1.2 * row.own) for row in LAYER)
    found = findings(step((*slower * 4, *again, *backward * 4)), step((*LAYER * 4, *backward * 4)))
    assert {finding.rule: finding.seconds for finding in found}["recomputation"] == near(1200 + 7 * 10)


def test_what_both_runs_compute_again_belongs_to_neither_of_them() -> None:
    """A does two products again, B one and attention; a GELU that both do again took 50 at first in A and 65 in B."""
    again = [change(row, phase="backward", model_flops=0.0) for row in (LINEAR, SDPA)]
    gelu = change(GELU, phase="backward")
    a = step((GELU, LINEAR, LINEAR, again[0], again[0], gelu))
    # in another type there, so that it is no GELU of A's on the other side of a product
    b = step((change(GELU, own=65), LINEAR, LINEAR, again[1], change(gelu, dtype="bf16"), again[0]))
    there, back = explain(compare(a, b)), explain(compare(b, a))
    assert sorted(round(each.seconds * 1e8) for each in there) == sorted(round(-each.seconds * 1e8) for each in back)
    # One product is paired. A alone has the other and a GELU, 300 + 50; B alone attention and a GELU, 200 + 50; with
    # 10 of the host's time for each op.
    assert {round(each.seconds * 1e8) for each in there} == {37000, -27000}


def test_a_product_that_is_computed_again_is_no_partner_of_one_that_was_asked_for() -> None:
    backward = tuple(change(row, name=f"dot.{row.name}", phase="backward") for row in LAYER)
    again = tuple(change(LINEAR, phase="backward", model_flops=0.0) for _ in range(3))
    once = (*LAYER * 4, *backward * 4)
    a, b = step((*LAYER * 4, *(*again, *backward) * 4)), step(once, backend="jax")
    told = found(a, b)
    assert told["recomputation"].seconds == near(4 * 3 * 300)
    assert "more-work" not in told


AGAIN = [change(row, phase="backward", model_flops=0.0) for row in (LINEAR, NORM, SDPA)]
BACKWARD = [change(row, phase="backward", flops=2 * row.flops) for row in (LINEAR, NORM, SDPA, GELU)]
LATE = [change(row, own=1.3 * row.own, host=(5.0, host)) for row in (LINEAR, GELU) for host in (5.0, 490.0, 510.0)]


@settings(deadline=None, max_examples=60)
@given(
    *[st.lists(st.sampled_from([*AGAIN, *BACKWARD]), min_size=3, max_size=16) for _ in range(2)],
    *[st.lists(st.sampled_from([LINEAR, NORM, SDPA, GELU, *LATE]), min_size=3, max_size=8) for _ in range(2)],
)
def test_what_is_computed_again_flips_with_the_runs(
    a: list[Row], b: list[Row], first: list[Row], other: list[Row]
) -> None:
    conditions = {"away_seconds_per_step": 0.0}
    recorded = [[change(row, host=row.host or (2.0, 8.0)) for row in rows] for rows in ((*first, *a), (*other, *b))]
    one, two = (step(rows, conditions=conditions) for rows in recorded)
    there, back = explain(compare(one, two)), explain(compare(two, one))
    assert sorted((finding.rule, round(finding.seconds * 1e8)) for finding in there) == sorted(
        (finding.rule, round(-finding.seconds * 1e8)) for finding in back
    )
