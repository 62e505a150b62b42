"""Segments of a large step: what is equal is worked out once."""

from __future__ import annotations

import handmade
import numpy as np
import pytest
from msgspec.structs import replace

from roofline.analysis.analysis import Analysis, analyze
from roofline.comparison import segments as module
from roofline.comparison.segments import segments
from roofline.core.schema import Op


@pytest.mark.parametrize("divide", [True, False])
def test_equal_ops_are_divided_once(monkeypatch: pytest.MonkeyPatch, divide: bool) -> None:
    ops = list(handmade.OPS)
    ops[4] = replace(ops[4], constituents=(0, 5), places=((0, 0, 0), (4, 0, 3)))
    once = segments(analyze(handmade.profile(ops=tuple(ops))), divide)
    asked: list[Op] = []
    parts = module._parts

    def counted(analysis: Analysis, op: Op, divide: bool) -> object:
        asked.append(op)
        return parts(analysis, op, divide)

    monkeypatch.setattr(module, "_parts", counted)
    many = segments(analyze(handmade.profile(ops=tuple(ops) * 50)), divide)
    assert len(asked) <= len(ops)
    assert (many.places, many.ceiling, many.signature) == (once.places * 50, once.ceiling * 50, once.signature * 50)
    for name in ("weight", "own", "quantity", "launches", "bytes"):
        np.testing.assert_array_equal(getattr(many, name), np.concatenate([getattr(once, name)] * 50))
