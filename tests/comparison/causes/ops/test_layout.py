"""Copies and transposes between the same ops. Steps made by hand."""

from __future__ import annotations

from explained import COPY, before, found, near, only
from msgspec.structs import replace
from synthetic import (
    GELU,
    LAYER,
    Row,
    step,
)


def test_transposes_that_one_run_makes() -> None:
    copy = Row("aten::copy_", "movement", 120, bytes=0.4e6, block="FFN")
    found = only(step((*LAYER, copy) * 4), step())
    assert found.rule == "layout"
    assert found.seconds == near(4 * (120 + 10))


def test_copies_are_another_layout() -> None:
    told = found(step(before(GELU.name, COPY, COPY)), step())
    assert {rule: finding.seconds for rule, finding in told.items()} == {"layout": near(4 * 2 * 110)}


def test_a_cast_is_no_layout() -> None:
    # To fp64 a copy writes twice what it reads: 0.1 and 0.2 MB
    cast = Row("aten::_to_copy", "movement", 100, bytes=0.3e6, block="FFN")
    profile = step(before(GELU.name, cast))
    wider = tuple(
        replace(one, cost=replace(one.cost, bytes_read=0.1e6, bytes_written=0.2e6)) if one.name == cast.name else one
        for one in profile.signatures
    )
    assert "layout" in found(profile, step())
    assert "layout" not in found(replace(profile, signatures=wider), step())
