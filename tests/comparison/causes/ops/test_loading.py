"""Ops that a loader runs inside of a step. Steps made by hand."""

from __future__ import annotations

from explained import found, near
from msgspec.structs import replace
from synthetic import LAYER, Row, step

from roofline.core.schema import Profile

STACK = Row("aten::stack", "movement", 100, bytes=1e5, block="head", host=(2.0, 8.0))


def loaded(block: str) -> Profile:
    """A step in which 3 batches are stacked, 10 us after the op before; the head is called `block`."""
    profile = step((STACK,) * 3 + LAYER * 4)
    return replace(profile, blocks=tuple(block if name == "head" else name for name in profile.blocks))


def test_what_a_loader_runs_is_input_with_the_time_between() -> None:
    told = found(loaded("DataLoader"), step())
    assert set(told) == {"data-input"}
    # 3 stacks of 100 us, 10 us before each
    assert told["data-input"].seconds == near(3 * (100 + 10))
    assert told["data-input"].text.endswith(
        "spends 330 µs more on reading its input: 3 launches (aten::stack) that its "
        "loader runs in the step, 30.0 µs of it while none of them runs."
    )


def test_the_same_elsewhere_is_no_input() -> None:
    assert "data-input" not in found(loaded("head"), step())


def test_what_takes_longer_in_the_place_of_a_loaders_ops_is_no_loaders() -> None:
    other = step((Row("aten::cumsum", "reduction", 800, bytes=1e6, block="attention", host=(2.0, 8.0)),) + LAYER * 4)
    told = found(other, loaded("DataLoader"))
    assert {rule for rule, finding in told.items() if "cumsum" in finding.text}
    assert not {rule for rule, finding in told.items() if "cumsum" in finding.text} & {"data-input"}
