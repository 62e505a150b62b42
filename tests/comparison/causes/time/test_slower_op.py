"""One op that takes longer beside others that do not. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

import pytest
from explained import findings, near, only
from msgspec.structs import replace
from synthetic import LAYER, LINEAR, NORM, Row, step

#: Four kinds of products, 4 x 300 µs of each, and three kinds of vector ops, 4 x (20 + 30 + 50) µs.
PRODUCTS = tuple(change(LINEAR, name=f"aten::mm{number}") for number in range(4))
STEP = (*PRODUCTS, *(row for row in LAYER if not row.flops)) * 4


def slow(factors: dict[str, float]) -> tuple[Row, ...]:
    return tuple(change(row, own=factors.get(row.name, 1.0) * row.own) for row in STEP)


@pytest.mark.parametrize(("name", "factor", "more"), [("aten::mm2", 1.3, 0.3 * 300), (NORM.name, 3, 2 * 30)])
def test_it_is_named_though_its_kind_is_not_slower_beyond_noise(name: str, factor: float, more: float) -> None:
    """Products 0.3 x 300 of 1290 µs, less than a quarter; vector ops 60 of 160 µs, less than two fifths."""
    told = only(step(slow({name: factor})), step(STEP))
    assert (told.rule, told.seconds) == ("efficiency", near(4 * more))
    assert told.label.startswith(f"efficiency of {name} (")
    assert f"more on {name}" in told.text
    assert "did not get slower alike" in told.text
    (other,) = findings(step(STEP), step(slow({name: factor})))
    assert other.seconds == near(-4 * more)


def test_ops_that_get_slower_alike_are_noise() -> None:
    """The others are 30, 28, 27 and 29 % slower: any other process may be."""
    factors = {f"aten::mm{number}": factor for number, factor in enumerate((1.3, 1.28, 1.27, 1.29))}
    assert findings(step(slow(factors)), step(STEP)) == ()


def test_how_far_the_others_lie_apart_says_what_stands_out() -> None:
    """Of mm0 to mm2 the logarithms of 1.0, 1.1 and 0.9 have a deviation of 0.10. Student's t of two degrees of freedom
    at 0.025 / 4 is 8.9, so that mm3 stands out from 8.9 x 0.10 x sqrt(1 + 1 / 3) = 1.03 on: by a factor of 2.8."""
    others = {"aten::mm0": 1.0, "aten::mm1": 1.1, "aten::mm2": 0.9}

    def named(factor: float) -> bool:
        told = findings(step(slow({**others, "aten::mm3": factor})), step(STEP))
        return any("aten::mm3" in each.label for each in told)

    assert not named(2.4)
    assert named(3.3)


def test_two_kinds_tell_nothing_of_each_other() -> None:
    """Of LAYER there are linear and sdpa: 4 x 0.2 x 200 µs."""
    rows = tuple(change(row, own=1.2 * row.own) if row.name == "aten::sdpa" else row for row in LAYER * 4)
    assert findings(step(rows), step()) == ()


def test_a_disturbed_run_and_another_device_tell_nothing_of_one_op() -> None:
    a, b = step(slow({"aten::mm2": 1.3})), step(STEP)
    assert findings(replace(a, flags=("contended: others ran",)), b) == ()
    other = replace(b, device=replace(b.device, name="Another"))
    assert all("aten::mm2" not in each.label for each in findings(a, other))


def test_an_op_that_writes_more_does_more() -> None:
    """A gradient that leaves out one of its results is another work under the same name."""
    a, b = step(slow({"aten::mm2": 1.3})), step(STEP)
    table = tuple(replace(one, writes=(5e6,)) if one.name == "aten::mm2" else one for one in a.signatures)
    assert all("aten::mm2" not in each.label for each in findings(replace(a, signatures=table), b))
