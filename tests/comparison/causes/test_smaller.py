"""What is small beside findings that explain the difference. Steps made by hand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from synthetic import LAYER, UNFUSED_NORM, instead, step

from roofline.comparison.causes.findings import explained, rest
from roofline.comparison.causes.smaller import is_smaller
from roofline.comparison.terms import compare
from roofline.core.schema import Profile


def test_an_eighth_beside_four_fifths() -> None:
    """Of 100 ms 80 are explained: 12 are small, 13 are not; beside 79 nothing is small."""
    assert is_smaller(100.0, 80.0, 12.0)
    assert is_smaller(100.0, 80.0, -12.0)
    assert not is_smaller(100.0, 80.0, 13.0)
    assert not is_smaller(100.0, 79.0, 12.0)
    assert is_smaller(-100.0, -80.0, -12.0)
    assert not is_smaller(-100.0, 80.0, 12.0), "larger findings of the other sign explain nothing"


@given(st.floats(-1, 1), st.floats(-2, 2), st.floats(-1, 1))
def test_swapping_the_runs_changes_nothing(difference: float, larger: float, seconds: float) -> None:
    assert is_smaller(difference, larger, seconds) == is_smaller(-difference, -larger, -seconds)


def test_the_first_finding_is_never_small() -> None:
    assert not is_smaller(1.0, 0.0, 0.01)


def waiting(extra_gap: float) -> Profile:
    """A layer norm from six ops in each of four layers, 4 * (180 - 30) us and 20 launches of 10 us; and a wait [us]."""
    unfused = instead(LAYER * 4, "aten::native_layer_norm", UNFUSED_NORM)
    return step(unfused, extra_gap=extra_gap, causes={"host dispatch": 0.02, "synchronisation": 0.98})


def test_a_small_cause_beside_a_large_one_is_told_and_is_no_finding() -> None:
    """The norms cost 565 us: 1/37 of a difference with 20 ms of waiting, which explains it; 1/7 of one with 3 ms."""
    large, both = (compare(waiting(extra_gap), step()) for extra_gap in (20_000, 3_000))
    told = explained(large)
    assert [one.rule for one in told.findings] == ["synchronisation"]
    assert [one.rule for one in told.smaller] == ["fusion"]
    assert told.tendencies == ()
    assert rest(large, told.findings) == large.difference - told.findings[0].seconds
    assert {one.rule for one in explained(both).findings} == {"synchronisation", "fusion"}
    assert explained(both).smaller == ()
