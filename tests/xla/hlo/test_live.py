"""What a result depends on: of a branch, a call or a loop those of its results that somebody takes."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib")
from hlo_oracle import hlo_library as _hlo

from roofline.xla.hlo import module as hlo
from roofline.xla.hlo.live import live

# Each part returns two products, of which the program takes the second one.
TEXT = """
HloModule m

both {
  given = (f32[8,8], f32[8,8]) parameter(0)
  a = f32[8,8] get-tuple-element(given), index=0
  b = f32[8,8] get-tuple-element(given), index=1
  unread = f32[8,8] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  read = f32[8,8] dot(b, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT results = (f32[8,8], f32[8,8]) tuple(unread, read)
}

neither {
  ROOT whole = (f32[8,8], f32[8,8]) parameter(0)
}

again {
  state = (f32[8,8], f32[8,8]) parameter(0)
  number = f32[8,8] get-tuple-element(state), index=CONDITION
  one = f32[1,1] slice(number), slice={[0:1], [0:1]}
  first = f32[] reshape(one)
  zero = f32[] constant(0)
  ROOT more = pred[] compare(first, zero), direction=LT
}

ENTRY main {
  x = f32[8,8] parameter(0)
  yes = pred[] parameter(1)
  first_given = f32[8,8] negate(x)
  second_given = f32[8,8] exponential(x)
  pair = (f32[8,8], f32[8,8]) tuple(first_given, second_given)
  done = (f32[8,8], f32[8,8]) CALL
  ROOT result = f32[8,8] get-tuple-element(done), index=1
}
"""
CALLS = {
    "call": "call(pair), to_apply=both",
    "conditional": "conditional(yes, pair, pair), true_computation=both, false_computation=neither",
    "while": "while(pair), body=both, condition=again",
}


def needed(call: str, condition: int = 1, text: str = TEXT) -> set[str]:
    text = text.replace("CALL", CALLS[call]).replace("CONDITION", str(condition))
    module = hlo.read(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())
    named = {"unread", "read", "first_given", "second_given", "done", "yes"}
    return {instruction.name for instruction in live(module)} & named


@pytest.mark.parametrize("call", CALLS)
def test_of_two_results_only_one_is_needed(call: str) -> None:
    assert needed(call) - {"yes"} == {"read", "second_given", "done"}


def test_what_ends_a_loop_is_needed() -> None:
    assert needed("while", condition=0) == {"read", "second_given", "unread", "first_given", "done"}


@pytest.mark.parametrize(
    ("call", "decides"), [("call", set()), ("conditional", {"yes"}), ("while", {"read", "second_given"})]
)
def test_what_an_effect_takes_is_needed_and_so_is_what_runs_it(call: str, decides: set[str]) -> None:
    """The program takes no result of the call, in which the first product is handed to the host."""
    told = 'told = () custom-call(unread), custom_call_target="tell", custom_call_has_side_effect=true'
    text = TEXT.replace("  read =", f"  {told}\n  read =").replace("get-tuple-element(done), index=1", "negate(x)")
    assert needed(call, text=text) == {"unread", "first_given", "done"} | decides
