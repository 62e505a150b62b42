"""Segments of a large step: what is equal is worked out once."""

from __future__ import annotations

import handmade
import numpy as np
import pytest
from msgspec.structs import replace

from roofline.analysis.analysis import Analysis, analyze, analyze_timed
from roofline.comparison import segments as module
from roofline.comparison import terms
from roofline.comparison.parity import known_work, random
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


@pytest.mark.parametrize(("fused", "divisions"), [(False, 2), (True, 4)])
def test_runs_without_fused_ops_are_divided_once_for_both_views(
    fused: bool, divisions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ops = [replace(op, constituents=(), places=()) for op in handmade.OPS]
    if fused:
        ops[4] = replace(ops[4], constituents=(0, 5), places=((0, 0, 0), (4, 0, 3)))
    run = handmade.profile(ops=tuple(ops))
    divided: list[bool] = []

    def counting(analysis: Analysis, divide: bool = True) -> module.Segments:
        divided.append(divide)
        return segments(analysis, divide)

    monkeypatch.setattr(terms, "segments", counting)
    comparison = terms.compare(run, replace(run, wall=replace(run.wall, steps=(0.013,) * 10)))
    assert len(divided) == divisions
    assert (comparison.kernel is comparison.work) is not fused


def test_parity_looks_into_ops_that_are_alike_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Model FLOPs of 40 steps are 40 times those of one; no op is looked into for random numbers, as none draws."""
    ops = list(handmade.OPS)
    ops[4] = replace(ops[4], constituents=(0, 5), places=((0, 0, 0), (4, 0, 3)))
    once, many = (analyze_timed(handmade.profile(ops=tuple(ops) * times)) for times in (1, 40))
    flops = known_work.model_flops(once)
    looked = []
    constituents = Analysis.constituents

    def counting(analysis: Analysis, op: Op) -> object:
        looked.append(op)
        return constituents(analysis, op)

    monkeypatch.setattr(Analysis, "constituents", counting)
    assert known_work.model_flops(many) == pytest.approx({phase: 40 * work for phase, work in flops.items()})
    assert len(looked) <= len(ops)
    looked.clear()
    assert random._drawing(many) == (0, 0)
    assert not looked
