"""One object for equal contents, whatever field of a cost two of them differ in."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from roofline.core.cost import Cost
from roofline.costs.counted import Costed, Interner

COSTED = Costed(Cost(flops=8.0, functions={"exp": 2.0}), "mm", "contraction", "[2, 2]", "fp32", "fp32")
CHANGES = {
    "cost": Cost(flops=8.0, functions={"exp": 3.0}),
    "kind": "bmm",
    "op_class": "attention",
    "shapes": "[4]",
    "dtype": "bf16",
    "output": "bf16",
    "reads": ((True, 0, 16.0),),
    "writes": ((False, 0, 16.0),),
    "inplace": True,
    "view": True,
    "parts": (COSTED,),
    "executor": "cuda-graph",
    "arithmetic": "ieee",
    "layout": "channels_last",
}


def test_equal_costs_are_one_object() -> None:
    same = Interner()
    first = same(COSTED)
    assert same(replace(COSTED, cost=Cost(flops=8.0, functions={"exp": 2.0}))) is first


@pytest.mark.parametrize("name", [field.name for field in fields(Costed)])
def test_costs_that_differ_in_any_field_are_two(name: str) -> None:
    same = Interner()
    changed = replace(COSTED, **{name: CHANGES[name]})
    assert same(COSTED) is COSTED
    assert same(changed) is changed
