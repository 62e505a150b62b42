"""What becomes a finding and what does not, whatever its cause. Steps made by hand, and random ones."""

from __future__ import annotations

from dataclasses import replace as change

import numpy as np
import pytest
import randomly
from explained import findings, near, slower
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from synthetic import (
    ADD,
    EAGER_ATTENTION,
    GELU,
    LAYER,
    LINEAR,
    NORM,
    SDPA,
    UNFUSED_NORM,
    Row,
    instead,
    step,
)

from roofline.comparison.causes.claim import Claim
from roofline.comparison.causes.findings import claimed, explain, rest
from roofline.comparison.terms import compare
from roofline.core.schema import Profile


def test_nothing_is_found_where_nothing_differs() -> None:
    assert findings(step(), step()) == ()


def test_two_causes_are_both_found_in_their_order() -> None:
    both = instead(instead(LAYER * 4, "aten::native_layer_norm", UNFUSED_NORM), "aten::sdpa", EAGER_ATTENTION)
    found = findings(step(both), step())
    assert [f.rule for f in found] == ["attention", "fusion"]
    assert [f.seconds for f in found] == [near(880), near(800)]


def rounds(profile: Profile, *factors: float) -> Profile:
    """The run with further processes, so many times as slow as this one."""
    steps = profile.wall.steps
    others = tuple(tuple(factor * each for each in steps) for factor in factors)
    return replace(profile, wall=replace(profile.wall, processes=others))


def test_one_slow_process_of_three_is_no_finding() -> None:
    slow = step(slower(1.3), host=13)
    comparison = compare(rounds(slow, 1 / 1.3, 1 / 1.3), rounds(step(), 1.0, 1.0))
    assert not comparison.resolved
    assert explain(comparison) == ()


def test_nulls_with_rounds_have_findings_as_rarely_as_their_intervals_say() -> None:
    rng = np.random.default_rng(7)
    wrong = 0
    for _ in range(40):
        runs = []
        for _ in range(2):
            # Processes 5 % apart, ops of one process 2 % apart from their own
            own, *others = np.exp(0.05 * rng.standard_normal(3))
            rows = tuple(change(row, own=row.own * own * (1 + 0.02 * rng.standard_normal())) for row in LAYER * 4)
            run = step(rows, host=10 * own)
            runs.append(rounds(run, *(other / own for other in others)))
        wrong += bool(explain(compare(*runs)))
    assert wrong <= 5  # 5 % of 40 are 2; more than 5 have a chance of 1.4 %


def test_too_few_steps_are_no_finding() -> None:
    short = step(instead(LAYER * 4, "aten::native_layer_norm", UNFUSED_NORM))
    short = replace(short, wall=replace(short.wall, steps=short.wall.steps[:2]))
    assert explain(compare(short, step())) == ()


@settings(deadline=None, max_examples=80)
@given(randomly.profiles(), randomly.profiles())
def test_claims_give_out_the_difference_once(a: Profile, b: Profile) -> None:
    comparison = compare(a, b)
    attribution = claimed(comparison)
    left = attribution.rows(lambda some: some.weight > -1)
    attribution.claim(Claim("nothing", *left))
    whole = attribution.unseen + sum(attribution.seconds(entry) for entry in attribution.entries)
    scale = comparison.a.wall + comparison.b.wall + comparison.a.total.own_seconds + comparison.b.total.own_seconds
    assert whole == pytest.approx(comparison.difference, abs=1e-9 * scale)
    found = explain(comparison)
    assert sum(f.seconds for f in found) + rest(comparison, found) == pytest.approx(
        comparison.difference, abs=1e-9 * scale
    )
    for finding in found:
        assert finding.ci95 is None or finding.ci95[0] > 0 or finding.ci95[1] < 0
        assert sum(p.seconds for p in finding.terms) == pytest.approx(finding.seconds, abs=1e-9 * scale)
        assert finding.text.isprintable()


ROWS = st.sampled_from(
    [LINEAR, ADD, NORM, GELU, SDPA, *UNFUSED_NORM, *EAGER_ATTENTION, change(GELU, own=5, bytes=0.01e6)]
)


@settings(deadline=None, max_examples=60)
@given(st.lists(ROWS, min_size=3, max_size=16), st.lists(ROWS, min_size=3, max_size=16), st.booleans())
def test_what_is_found_flips_with_the_runs(a: list[Row], b: list[Row], same: bool) -> None:
    one, other = step(a * 2), step(b * 2, backend="torch" if same else "jax")
    there, back = explain(compare(one, other)), explain(compare(other, one))
    assert sorted((finding.rule, round(finding.seconds * 1e8)) for finding in there) == sorted(
        (finding.rule, round(-finding.seconds * 1e8)) for finding in back
    )
