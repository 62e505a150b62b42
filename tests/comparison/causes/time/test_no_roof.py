"""The same ops where no roof is known above them. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

import pytest
from explained import by, findings, found, near, only
from msgspec.structs import replace
from synthetic import ADD, LAYER, Row, step

from roofline.core.schema import Profile

DARK = Row("lib::scan", "other", 100, known=False)


def slower(factor: float) -> Profile:
    return step(tuple(change(row, own=factor * row.own) for row in LAYER * 4))


def test_of_a_device_without_ceilings_nobody_knows_what_is_the_hardware() -> None:
    """Three times 4 x 1200 µs against 4 x 1200 µs: 9600 µs, and no word on a roof."""
    slow = slower(3)
    unknown = replace(slow, device=replace(slow.device, name="Somebody's GPU", ceilings={}))
    told = only(unknown, step())
    assert (told.rule, told.seconds) == ("unknown-device", near(4 * 2 * 1200))
    assert told.label == "hardware or kernels"
    assert "No ceilings are known of Somebody's GPU, so that hardware and kernels cannot be told apart" in told.text
    assert "roof" not in told.text
    # the same device twice is no other hardware
    fast = replace(step(), device=unknown.device)
    assert {each.rule for each in findings(unknown, fast)} == {"efficiency"}


def test_what_a_cache_of_unknown_speed_served_has_no_roof_to_compare_by() -> None:
    """Additions of 0.3 MB: main memory needs 30 µs at 10 GB/s. They take 20 on a device with a cache of 1 MB of unknown
    speed, and 400 on another one, 4 x 380 µs more: neither efficiency nor the device alone."""
    rows = (change(ADD, own=400), *(row for row in LAYER if row != ADD))
    slow, fast = step(rows * 4), step((ADD, *rows[1:]) * 4)
    known = {name: one for name, one in fast.device.ceilings.items() if name != "cache.llc"}
    fast = replace(fast, device=replace(fast.device, name="another", ceilings=known))
    (told,) = (each for each in findings(slow, fast) if each.rule == "unknown-roof")
    assert told.seconds == near(4 * 380)
    assert "a cache of unknown speed served them on one device" in told.text


def test_an_op_of_unknown_work_is_named() -> None:
    """4 x 600 against 4 x 100 µs; and another one 4 x 100 against 4 x 700 µs: two findings, whatever adds up to 0."""
    other = change(DARK, name="lib::sort")
    slow = step((*LAYER, change(DARK, own=600), other) * 4)
    told = only(slow, step((*LAYER, DARK, other) * 4))
    assert (told.rule, told.seconds, told.label) == ("unknown-op", near(4 * 500), "lib::scan, of unknown work")
    assert "lib::scan: 4 launches in 2.40 ms, in torch (B) 4 launches in 400 µs. Their work is unknown" in told.text
    assert told.advice == "register a formula for lib::scan (docs/counting.md)"
    both = findings(slow, step((*LAYER, DARK, change(other, own=700)) * 4))
    assert {each.label.partition(",")[0]: each.seconds for each in both} == {
        "lib::scan": near(4 * 500),
        "lib::sort": near(-4 * 600),
    }


def test_vector_ops_of_known_work_are_no_part_of_it() -> None:
    slow = step((*LAYER, change(DARK, own=600), change(ADD, own=400)) * 4)
    told = found(slow, step((*LAYER, DARK, ADD) * 4))
    assert {rule: each.seconds for rule, each in told.items()} == {
        "unknown-op": near(4 * 500),
        "efficiency": near(4 * 380),
    }


def unproven(run: Profile) -> Profile:
    """The run, in whose products nobody knows the arithmetic."""
    table = tuple(
        one if one.precision is None else replace(one, precision=replace(one.precision, arithmetic=None))
        for one in run.signatures
    )
    return replace(run, signatures=table)


@pytest.mark.parametrize("both", [True, False])
def test_products_of_unknown_arithmetic_have_no_efficiency(both: bool) -> None:
    """Products of 4 x 1100 µs and half of that, by two kernels: 200 MFLOP... 4 x 70 MFLOP at 64 and 127 GFLOP/s."""
    fast = step(tuple(change(row, own=row.own / 2) if row.flops else row for row in LAYER * 4))
    slow = by("sgemm", unproven(step()) if both else step())
    told = only(slow, by("nvjet", unproven(fast)))
    assert (told.rule, told.seconds) == ("unknown-arithmetic", near(4 * 1100 / 2))
    assert told.label == "precision or kernels of products"
    assert "280 MFLOP at 63.6 GFLOP/s, in torch (B) at 127 GFLOP/s" in told.text
    assert "in torch (B) they are faster than fp32 can be" in told.text  # which is 100 GFLOP/s
    assert "Most of it is in sgemm, in torch (B) in nvjet." in told.text


def test_one_kernel_has_one_arithmetic_and_no_share_of_a_roof_that_is_not_known() -> None:
    fast = step(tuple(change(row, own=row.own / 2) if row.flops else row for row in LAYER * 4))
    told = only(by("sgemm", unproven(step())), by("sgemm", unproven(fast)))
    assert (told.rule, told.label) == ("efficiency", "efficiency of products")
    assert "at an unknown share of the roof" in told.text
