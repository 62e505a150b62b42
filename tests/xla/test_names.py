"""Nameless products find the names that the unoptimised program has and the optimised one lost."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib")
from hlo_oracle import hlo_library as _hlo

from roofline.xla import model_flops, names
from roofline.xla.hlo import module as hlo
from roofline.xla.scopes import place

# Two layers; the product of each lost its name, as those do that XLA rewrites. %back comes from the backward pass.
OPTIMISED = """
HloModule m, is_scheduled=true

ENTRY main {
  x = f32[8,8] parameter(0)
  a = f32[8,8] add(x, x), metadata={op_name="jit(f)/jvp(layer.0)/attention/query/add"}
  first = f32[8,8] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[8,8] multiply(first, x), metadata={op_name="jit(f)/jvp(layer.1)/attention/query/mul"}
  second = f32[8,8] dot(b, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  back = f32[8,8] negate(second), metadata={op_name="jit(f)/transpose(jvp(layer.1))/attention/out/neg"}
  third = f32[8,8] dot(back, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  named = f32[8,8] dot(third, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/z/dot"}
  ROOT other = f32[8,4] slice(named), slice={[0:8], [0:4]}
}
"""
FLOPS = 2.0 * 8 * 8 * 8
ASKED = {
    "jit(f)/transpose(jvp(layer.1))/attention/core/dot_general": FLOPS,
    "jit(f)/jvp(layer.1)/attention/core/dot_general": FLOPS,
    "jit(f)/jvp(layer.0)/attention/core/dot_general": FLOPS,
    "jit(f)/jvp(layer.0)/attention/too_large/dot_general": 2 * FLOPS,
    "jit(f)/z/dot": FLOPS,
}


def module() -> hlo.Module:
    return hlo.read(_hlo.hlo_module_from_text(OPTIMISED).as_serialized_hlo_module_proto())


def named(asked: dict[str, float]) -> dict[str, str]:
    made = module()
    names.find(made, made.instructions.values(), list(asked.items()), place, dict.fromkeys(asked.items(), (None,)), ())
    return {name: op_name for name, one in made.instructions.items() for _, op_name, _, _ in names.products(made, one)}


def test_phase_size_and_neighbourhood_decide() -> None:
    assert named(ASKED) == {
        "first": "jit(f)/jvp(layer.0)/attention/core/dot_general",
        "second": "jit(f)/jvp(layer.1)/attention/core/dot_general",
        "third": "jit(f)/transpose(jvp(layer.1))/attention/core/dot_general",
        "named": "jit(f)/z/dot",
    }


def test_what_has_no_likely_name_stays_nameless() -> None:
    only_large = {"jit(f)/jvp(layer.0)/attention/too_large/dot_general": 2 * FLOPS}
    assert {name for name, op_name in named(only_large).items() if not op_name} == {"first", "second", "third"}


def test_a_name_is_given_once() -> None:
    one = {"jit(f)/jvp(layer.0)/attention/core/dot_general": FLOPS}
    assert sorted(filter(None, named(one).values())) == sorted([*one, "jit(f)/z/dot"])


def test_neighbours_are_the_nearest_with_a_name_through_what_has_none() -> None:
    made = module()
    near = names.neighbours(made, made.instructions["third"], place)
    assert {one.scope for one in near.above} == {"layer.1/attention/out", "layer.1/attention/query"}
    assert max(one.phase for one in near.above) == 1
    assert {one.scope for one in near.below} == {"z"}


def test_neighbours_are_looked_for_inside_of_a_fusion_without_a_name() -> None:
    """The second product takes what a fusion makes of the first: the fusion has no name, and its instruction one."""
    text = """
HloModule m, is_scheduled=true

fused {
  given = f32[8,8] parameter(0)
  ROOT back = f32[8,8] negate(given), metadata={op_name="jit(f)/transpose(jvp(layer.1))/neg"}
}

ENTRY main {
  x = f32[8,8] parameter(0)
  first = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/z/dot"}
  fusion = f32[8,8] fusion(first), kind=kLoop, calls=fused
  ROOT second = f32[8,8] dot(fusion, fusion), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
    made = hlo.read(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())
    assert [(one.phase, one.scope) for one in names.neighbours(made, made.instructions["second"], place).above] == [
        (1, "layer.1")
    ]


def test_what_no_result_depends_on_is_not_asked_for() -> None:
    """Of two products of 2 x 8^3 FLOPs one goes nowhere; a third lies in a loop of ten trips that leads nowhere."""
    text = """
HloModule m

body {
  state = (s32[], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  y = f32[8,8] get-tuple-element(state), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  inner = f32[8,8] dot(y, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/loop/dot"}
  ROOT both = (s32[], f32[8,8]) tuple(next, inner)
}

condition {
  state = (s32[], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  ten = s32[] constant(10)
  ROOT less = pred[] compare(i, ten), direction=LT
}

ENTRY main {
  x = f32[8,8] parameter(0)
  zero = s32[] constant(0)
  begin = (s32[], f32[8,8]) tuple(zero, x)
  loop = (s32[], f32[8,8]) while(begin), condition=condition, body=body
  dead = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/dead/dot"}
  ROOT kept = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/a/dot"}
}
"""

    def asked(source: str) -> dict[str, float]:
        data = _hlo.hlo_module_from_text(source).as_serialized_hlo_module_proto()
        return model_flops.asked(hlo.read(data)).fixed

    assert asked(text) == {"jit(f)/a/dot": FLOPS}
    alive = text.replace(
        "ROOT kept = f32[8,8] dot(x, x)",
        "got = f32[8,8] get-tuple-element(loop), index=1\n  ROOT kept = f32[8,8] dot(got, x)",
    )
    assert asked(alive) == {"jit(f)/a/dot": FLOPS, "jit(f)/loop/dot": 10 * FLOPS}
