"""The same work at another rate. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

import pytest
from explained import by, facts, findings, found, near, only, work
from handmade import device, without_launch
from msgspec.structs import replace
from synthetic import LAYER, LINEAR, Row, step

from roofline.analysis.analysis import analyze
from roofline.comparison.causes.time import efficiency
from roofline.core.schema import Imported, Profile


def test_kernels_of_another_library() -> None:
    slow = tuple(change(row, own=1.5 * row.own) if row.flops else row for row in LAYER * 4)
    found = only(step(slow), step())
    assert found.rule == "efficiency"
    assert found.seconds == near(4 * 0.5 * 1100)
    assert found.advice.startswith("see whether it stays")  # nothing says that other kernels ran


def test_two_kernels_are_named_and_no_slower_machine() -> None:
    # products half again, vector ops a fifth slower, which a slower machine would be: but for the products' kernels
    rows = tuple(change(row, own=(1.5 if row.flops else 1.2) * row.own) for row in LAYER * 4)
    settings = {"threads": "1"}
    slow, fast = step(rows, environment=settings), step(environment=settings)
    assert all("Most of it" not in each.text for each in findings(slow, fast))
    found = findings(by("slow_conv_3", slow), by("library_conv", fast))[0]
    assert found.rule == "efficiency"
    assert found.seconds == near(4 * 0.5 * 1100)
    assert "Most of it is in slow_conv, in " in found.text
    assert found.text.endswith(" in library_conv.")
    assert found.advice.startswith("look at the kernels of both")


@pytest.mark.parametrize(("pieces", "rule"), [(2, "efficiency"), (8, "tiny-ops")])
def test_between_frameworks_products_in_far_more_pieces_are_small_ops(pieces: int, rule: str) -> None:
    """Each of four products is done in pieces by PyTorch, which take 600 µs where XLA's one takes 300: 4 x 300.

    Products that a framework takes together by itself are few: two are none.
    """
    whole = change(LINEAR, name="dot", own=300, flops=16e6)
    parts = (change(whole, name="aten::mm", own=600 / pieces, flops=16e6 / pieces),) * pieces
    a = step(tuple(parts) * 4, host=0)
    b = step((whole,) * 4, backend="jax", host=0)
    told = found(a, b)
    assert {rule: finding.seconds for rule, finding in told.items()} == {rule: near(4 * 300)}


def test_kernels_of_a_part_of_the_products_are_not_most_of_it() -> None:
    # One product of the step is in a kernel that was recorded, and all others are not
    slow = step(tuple(change(row, own=1.5 * row.own) if row.flops else row for row in LAYER * 4))

    def in_part(kernel: str, run: Profile) -> Profile:
        whole = by(kernel, run)
        first = next(number for number, op in enumerate(whole.ops) if op.kernels)
        ops = tuple(op if number == first else replace(op, kernels=()) for number, op in enumerate(whole.ops))
        return replace(whole, ops=ops)

    found = only(in_part("conv", slow), in_part("gemm", step()))
    assert "Most of it" not in found.text
    assert found.advice.startswith("see whether it stays")


def test_other_kernels_need_be_no_slower_than_noise_makes_them() -> None:
    # a tenth slower, which is no finding of one kernel (above), is one of two
    slow = step(tuple(change(row, own=1.1 * row.own) if row.flops else row for row in LAYER * 4))
    assert findings(by("conv", slow), by("conv", step())) == ()
    assert only(by("conv", slow), by("gemm", step())).seconds == near(4 * 0.1 * 1100)


def test_the_same_kernels_a_little_slower_are_no_finding_after_one_process() -> None:
    slow = tuple(change(row, own=1.08 * row.own) if row.flops else row for row in LAYER * 4)
    assert findings(step(slow), step()) == ()
    rounds = [
        replace(run, wall=replace(run.wall, processes=(run.wall.steps, run.wall.steps))) for run in (step(slow), step())
    ]
    assert only(*rounds).rule == "efficiency"


@pytest.mark.parametrize(("factor", "rules"), [(1.3, []), (1.6, []), (1.7, ["efficiency"])])
def test_vector_ops_of_one_process_must_be_far_slower(factor: float, rules: list[str]) -> None:
    """Two fifths of the longer time: 0.6 / 1.6 is less, 0.7 / 1.7 more."""
    slow = step(tuple(row if row.flops else change(row, own=factor * row.own) for row in LAYER * 4))
    assert [finding.rule for finding in findings(slow, step())] == rules


def test_more_than_the_roof_is_not_told_as_if_it_could_be() -> None:
    """Vector ops that take a fifth of their time, which is less than their floors, are above their roof."""
    fast = step(tuple(row if row.flops else change(row, own=0.2 * row.own) for row in LAYER * 4))
    found = only(step(), fast)
    assert found.rule == "efficiency"
    assert "More than the roof is a defect of a count or a ceiling" in found.text
    slow = tuple(change(row, own=1.5 * row.own) if row.flops else row for row in LAYER * 4)
    assert "More than the roof" not in only(step(slow), step()).text


WORK = change(work(10), own=400e-6, seconds=400e-6, floor=100e-6, reach=100e-6)


@pytest.mark.parametrize(
    ("less", "holds"),
    [
        ({"own": 300e-6, "seconds": 300e-6}, True),  # 100 us less for the same floor: 33 % and not 25 %
        ({"own": 300e-6, "seconds": 300e-6, "floor": 60e-6, "reach": 60e-6}, False),  # 20 %: other products, no rate
        ({"own": 400e-6, "seconds": 300e-6}, True),  # as long, 100 us of it beside others: that is told
        ({"own": 380e-6, "seconds": 380e-6}, False),  # 20 of 100 us: what it would be is elsewhere
    ],
)
def test_a_run_that_attains_more_does_not_spend_more_on_the_same_products(less: dict[str, float], holds: bool) -> None:
    told = facts(does_more=WORK, does_less=change(WORK, **less))
    assert efficiency.CAUSE.holds is not None
    assert efficiency.CAUSE.holds(told) == holds


def test_above_the_roof_by_a_scale_is_no_rate() -> None:
    """Its profiled steps took three times as long as its plain ones; one factor makes 400 us of a floor of 500 us."""
    above = change(WORK, floor=500e-6, reach=500e-6)
    less = change(above, own=300e-6, seconds=300e-6)
    plain = step()
    walls = replace(plain.profiled, corrected=tuple(3 * wall for wall in plain.profiled.corrected))
    slowed = analyze(replace(plain, profiled=walls))
    assert slowed.scale == pytest.approx(1 / 3, rel=0.01)
    for run_less, holds in ((analyze(plain), True), (slowed, False)):
        assert efficiency.CAUSE.holds(facts(does_more=above, does_less=less, run_less=run_less)) == holds


@pytest.mark.parametrize(("memory", "told"), [(12e9, True), (15e9, False)])
def test_ranges_are_told_and_where_their_ends_disagree_nothing_is(memory: float, told: bool) -> None:
    """Of 100 µs 0.6 MB take 15 from a cache at 40 GB/s, or 86 from memory at 7: 15 to 86 % attained.

    Another device takes 50 µs: 30 from a cache at 20 GB/s, 60 %, or from memory 50 at 12 GB/s, 100 %, or 40 at 15 GB/s,
    80 %, which is less than 86. By which device is faster the ends disagree too, so that `hardware` has nothing.
    """

    a, b = (
        step(
            [Row("aten::add", "pointwise", time, bytes=0.6e6)],
            imported=Imported(),
            device=without_launch(device(dram_copy=bandwidth, cache_llc=cache), name=name),
        )
        for time, bandwidth, cache, name in ((100, 7e9, 40e9, "One"), (50, memory, 20e9, "Another"))
    )
    efficient = found(a, b).get("efficiency")
    assert (efficient is not None) == told
    if efficient is not None:
        assert efficient.seconds == near(50)
        assert efficient.label == "efficiency of vector ops (15–86 % of the roof against 60–100 %)"
