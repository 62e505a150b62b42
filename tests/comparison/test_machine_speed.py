"""Whether the machine was as fast in both measurements, by hand: 4 layers of 4 products and 3 other ops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace as change

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from synthetic import LAYER, LINEAR, NORM, SDPA, UNFUSED_NORM, Row, instead, step

from roofline.analysis.analysis import analyze
from roofline.comparison.headline import headline
from roofline.comparison.machine_speed import EVEN, PROCESSES, MachineSpeed, machine_speed
from roofline.comparison.parity.parity import parity
from roofline.comparison.terms import compare
from roofline.core.executor import QUEUED, QUEUED_WORKER
from roofline.core.schema import Memory, Profile
from roofline.core.vocabulary import PRODUCTS
from roofline.errors import MeasurementError
from roofline.regression.check import check
from roofline.regression.limits import Limits

HOST = 10.0
SETTINGS = {"threads": "1"}


def slowed(products: float = 1.0, others: float = 1.0, host: float = 1.0, rows: Sequence[Row] = LAYER * 4) -> Profile:
    """The step, in which each op takes so many times as long."""
    return step(
        tuple(change(row, own=row.own * (products if row.op_class in PRODUCTS else others)) for row in rows),
        host=HOST * host,
        environment=SETTINGS,
    )


def between(a: Profile, b: Profile) -> MachineSpeed:
    return machine_speed(analyze(a), analyze(b))


def test_it_is_how_much_longer_the_ops_took_that_both_runs_have() -> None:
    found = between(slowed(1.2, 1.5, 2.0), slowed())
    assert (found.products, found.other_ops) == (pytest.approx(1.2), pytest.approx(1.5))
    products = sum(row.own for row in LAYER * 4 if row.op_class in PRODUCTS)
    others = sum(row.own for row in LAYER * 4) - products
    # and a third of the host's 20 us before each of 28 ops, as the other ops took 1.5 times as long
    assert found.seconds == pytest.approx((0.2 * products + 0.5 * others + 28 * 20 / 3) * 1e-6, rel=5e-3)
    assert found.uneven


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    ("waited", "of_worker"), [(0.0, 0.0), (100e-6, 0.0), (1.0, 0.0), (100e-6, 3e-3), (0.0, 3e-3), (0.0, 1.0)]
)
def test_what_a_slower_machine_may_have_added_is_in_the_interval_of_the_headline(
    swapped: bool, waited: float, of_worker: float
) -> None:
    """All of A takes twice as long, host and ops, by which the interval reaches further and holds 0.

    What a thread waits between ops is added to that; a wait of 1 s or of a worker is inside of ops and no longer gap.
    """
    slow = replace(slowed(2, 2, 2), conditions={QUEUED: waited, QUEUED_WORKER: of_worker})
    comparison = compare(*(slow, slowed())[:: -1 if swapped else 1])
    walls, difference = (comparison.a.wall, comparison.b.wall), comparison.difference
    assert abs(difference) == pytest.approx(min(walls))
    found = machine_speed(comparison.a, comparison.b)
    dispatch = HOST * 2 * 1e-6 * 28
    gap = min(waited, dispatch)
    assert abs(found.seconds) == pytest.approx(min(walls) - gap / 2)
    head = headline(comparison, ("A", "B"))
    assert head.slower is None
    assert comparison.ci95 is not None
    assert head.ci95 is not None
    apart = [math.hypot(end - difference, *(PROCESSES * wall for wall in walls)) for end in comparison.ci95]
    added = max(abs(found.seconds) + gap, waited, of_worker)
    low, high = (0.0, added) if swapped else (added, 0.0)
    assert head.ci95 == pytest.approx((difference - apart[0] - low, difference + apart[1] + high))
    assert head.text.endswith(" may be due to a machine that was slower meanwhile.")


@pytest.mark.parametrize(
    ("products", "others", "uneven"),
    [
        (1.2, 1.5, True),
        (0.8, 0.7, True),
        (1.0, 1.0, False),
        (1.05, 1.5, False),  # products of equal steps lie as far apart
        (1.2, 1.05, False),  # another library multiplies
        (1.2, 0.7, False),
    ],
)
def test_a_machine_slows_down_products_and_all_else(products: float, others: float, uneven: bool) -> None:
    assert between(slowed(products, others), slowed()).uneven is uneven
    assert between(slowed(), slowed(products, others)).uneven is uneven


def test_ops_of_one_run_only_do_not_count() -> None:
    found = between(slowed(rows=instead(LAYER * 4, NORM.name, UNFUSED_NORM)), slowed())
    assert (found.products, found.other_ops, found.seconds) == (pytest.approx(1), pytest.approx(1), pytest.approx(0))


def with_kernels(profile: Profile, name: str) -> Profile:
    """The run, in which products of 20 MFLOP run as one kernel."""
    wanted = {n for n, one in enumerate(profile.signatures) if one.name == LINEAR.name}
    ops = tuple(replace(op, kernels=((0, 1),)) if op.signature in wanted else op for op in profile.ops)
    return replace(profile, ops=ops, kernels=(name,))


def test_products_of_other_kernels_say_nothing_of_the_machine() -> None:
    # 12 of the 16 products and all else take longer; the 4 that run alike are as fast
    rows = tuple(change(row, own=row.own * (1.0 if row is SDPA else 1.5)) for row in LAYER * 4)
    a, b = step(rows, environment=SETTINGS), slowed()
    assert between(with_kernels(a, "gemm_7"), with_kernels(b, "gemm_8")).uneven  # a compiler's number is no kernel
    found = between(with_kernels(a, "im2col"), with_kernels(b, "winograd"))
    assert (found.products, found.other_ops) == (pytest.approx(1.0), pytest.approx(1.5))
    assert not found.uneven


@pytest.mark.parametrize(
    "settings",
    [
        {"environment": {"threads": "4"}},
        {"environment": {}},
        {"versions": {"torch": "2.0"}},
        {"switches": {"deterministic": "on"}},
        {"backend": "jax"},
    ],
)
def test_another_setting_may_be_why(settings: dict[str, object]) -> None:
    assert between(replace(slowed(1.3, 1.5), **settings), slowed()) == EVEN


def test_without_ops_of_both_kinds_nothing_is_said() -> None:
    rows = [row for row in LAYER if row.op_class in PRODUCTS]
    one, other = (slowed(factor, factor, rows=rows) for factor in (1.5, 1.0))
    assert between(one, other) == EVEN


def in_rounds(profile: Profile) -> Profile:
    steps = profile.wall.steps
    return replace(profile, wall=replace(profile.wall, processes=(steps, steps)))


def test_parity_warns_of_it() -> None:
    found = parity(analyze(slowed(1.2, 1.5)), analyze(slowed()))
    (warning,) = [each for each in found.differences if each.what == "pace"]
    assert (warning.severity, warning.a, warning.b) == ("warning", "slower", "faster")
    assert "took longer in the first run, as on a slower machine" in warning.text
    assert "matmuls 1.20 times as long as in the second run, other ops 1.50 times" in warning.text
    (back,) = [each for each in parity(analyze(slowed()), analyze(slowed(1.2, 1.5))).differences if each.what == "pace"]
    assert (back.a, back.b, back.seconds) == ("faster", "slower", warning.seconds)


@given(st.lists(st.floats(0.3, 3.0), min_size=28, max_size=28))
def test_it_is_inverse_when_the_runs_are_swapped(factors: list[float]) -> None:
    rows = tuple(change(row, own=row.own * factor) for row, factor in zip(LAYER * 4, factors, strict=True))
    one, other = step(rows, environment=SETTINGS), slowed()
    there, back = between(one, other), between(other, one)
    assert there.products * back.products == pytest.approx(1)
    assert there.other_ops * back.other_ops == pytest.approx(1)
    assert there.seconds == pytest.approx(-back.seconds)
    assert there.uneven == back.uneven


def test_a_gate_does_not_call_a_slower_machine_a_regression() -> None:
    """Ops take 1.3 times as long, and a host at the same speed: by default a twentieth is allowed."""
    with pytest.raises(MeasurementError, match=r"slower machine \(matmuls 1.30 times as long, other ops 1.30 times\)"):
        check(slowed(), slowed(1.3, 1.3), Limits())
    assert not check(slowed(), slowed(1.3, 1.3), Limits(), counts_only=True).failed
    assert not check(slowed(1.3, 1.3), slowed(), Limits()).failed


def test_a_gate_of_memory_fails_whatever_the_pace() -> None:
    small, large = (
        replace(slowed(factor, factor), memory=Memory(peak=peak, source="RSS"))
        for factor, peak in ((1, 1e9), (1.3, 2e9))
    )
    assert "memory" in {gate.measure for gate in check(small, large, Limits()).failed}


def test_what_is_slower_still_fails_the_gate() -> None:
    """The step is 5.08 ms; its ops take 1.3 times as long, 1.44 ms, and the host 20 times, 5.3 ms: no machine did."""
    assert [gate.measure for gate in check(slowed(), slowed(1.3, 1.3, 20.0), Limits()).failed][:1] == ["time"]
    more = slowed(1.3, 1.3, rows=(*LAYER * 4, NORM))
    assert {gate.measure for gate in check(slowed(), more, Limits()).failed} >= {"time", "bytes", "kernels"}
