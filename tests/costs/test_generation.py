"""Prefill and decode are told by the scopes of these names, wherever they stand in a path's beginning."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from roofline.core.cost import Cost
from roofline.costs.counted import NOTHING, PHASES, Costed, Counted, CountedOp
from roofline.costs.generation import told_apart

SCOPES = ("", "prefill", "prefill/h.0", "prefill/decode/h.0", "decode/h.0", "model/decode", "optimizer")
COST = Cost(
    model_flops=0.0, flops=0.0, useful_flops=0.0, vector_flops=0.0, functions={}, int_ops=0.0,
    bytes_read=0.0, bytes_written=0.0, quality="exact", note="",
)  # fmt: skip
FORWARD, BACKWARD, OPTIMIZER, PREFILL, DECODE = range(5)


def counted(*places: tuple[tuple[int, int], ...], phase: int = FORWARD) -> Counted:
    """One op in each scope, the parts of the first ones at `places`."""
    costed = Costed(kind="any", op_class="pointwise", cost=COST, shapes="", dtype=None, output=None)
    each = [*places, *[()] * (len(SCOPES) - len(places))]
    ops = tuple(CountedOp(node, costed, (), (), places=at) for node, at in enumerate(each))
    scope = np.arange(len(SCOPES))
    return replace(NOTHING, ops=ops, scopes=SCOPES, scope=scope, phase=np.full(len(SCOPES), phase))


def test_the_phases_are_those_that_profiles_name() -> None:
    assert PHASES == ("forward", "backward", "optimizer", "prefill", "decode", "mixed")


def test_an_op_is_in_the_innermost_phase_and_its_scope_begins_below() -> None:
    found = told_apart(counted())
    assert found.phase.tolist() == [FORWARD, PREFILL, PREFILL, DECODE, DECODE, FORWARD, FORWARD]
    assert [found.scopes[at] for at in found.scope] == ["", "", "h.0", "h.0", "h.0", "model/decode", "optimizer"]


def test_what_has_another_phase_keeps_it() -> None:
    found = told_apart(counted(phase=BACKWARD))
    assert set(found.phase.tolist()) == {BACKWARD}
    assert [found.scopes[at] for at in found.scope[2:5]] == ["h.0"] * 3


def test_parts_of_a_fused_op_are_told_apart_as_well() -> None:
    found = told_apart(counted(((2, FORWARD), (4, FORWARD), (4, OPTIMIZER))))
    places = [(found.scopes[at], phase) for at, phase in found.ops[0].places]
    assert places == [("h.0", PREFILL), ("h.0", DECODE), ("h.0", OPTIMIZER)]
