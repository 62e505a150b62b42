"""Phases and scopes from the name stacks of JAX, as jitted programs really write them."""

from __future__ import annotations

import pytest

from roofline.xla.scopes import BACKWARD, FORWARD, OPTIMIZER, Place, commonest, is_recomputed, place, segments

# As found in optimised HLO of jax 0.10: named_scope("bert/encoder") around a checkpointed block and a scan.
NAMES = {
    "jit(train)/jvp(bert/encoder)/layer.0/ffn/dot_general": Place(FORWARD, "bert/encoder/layer.0/ffn"),
    "jit(train)/jvp()/dot_general": Place(FORWARD, ""),
    "jit(train)/transpose(jvp(attn))/bhqk,bhkd->bhqd/dot_general": Place(BACKWARD, "attn"),
    "jit(train)/transpose(jvp(jit(log_softmax)))/neg": Place(BACKWARD, ""),
    # A transformed function inside a transformed one names the scope around it a second time.
    "jit(train)/transpose(jvp(bert/encoder))/jvp(bert/encoder)/checkpoint/layer.0/inner/mul": Place(
        BACKWARD, "bert/encoder/layer.0/inner"
    ),
    "jit(train)/jvp(bert/encoder)/while/body/closed_call/body_scope/tanh": Place(FORWARD, "bert/encoder/body_scope"),
    "jit(train)/jvp(bert)/while/body/eval_jaxpr/eval_jaxpr/while/body/tanh": Place(FORWARD, "bert"),  # of JAX 0.12
    "jit(train)/jvp(a)/cond/branch_1_fun/b/mul": Place(FORWARD, "a/b"),
    # What a user calls `body`, `cond` or `scan` is a module, but where JAX says what part of a loop or a branch it is.
    "jit(f)/net/body/head/dot_general": Place(FORWARD, "net/body/head"),
    "jit(f)/net/while/body/body/tanh": Place(FORWARD, "net/body"),
    "jit(f)/vmap(net)/while/body_pred/lt": Place(FORWARD, "net"),
    "jit(f)/transpose(jvp(net))/cond/scan/mul": Place(BACKWARD, "net/cond/scan"),
    "jit(f)/net/while/cond/lt": Place(FORWARD, "net"),
    "jit(f)/vmap(transpose(jvp(a/b)))/c/mul": Place(BACKWARD, "a/b/c"),
    "jit(f)/encoder/attention/self/vmap()/div": Place(FORWARD, "encoder/attention/self"),
    "jit(f)/encoder/attention/self/vmap(BNTS,BSNH->BTNH)/dot_general": Place(FORWARD, "encoder/attention/self"),
    "jit(f)/jvp(encoder)/dropout/RngStream.__call__/random_bits": Place(FORWARD, "encoder/dropout"),
    "jit(train)/optimizer/mul": Place(OPTIMIZER, "optimizer"),
    "jit(train)/optimizer_1/mul": Place(OPTIMIZER, "optimizer_1"),
    "jit(train)/optimizers_of_mine/mul": Place(FORWARD, "optimizers_of_mine"),
    "jit(train)/layer/optimizer/mul": Place(FORWARD, "layer/optimizer"),
    "p['layers'][0]['b1']": Place(FORWARD, None),
    "": Place(FORWARD, None),
}


@pytest.mark.parametrize(("op_name", "expected"), NAMES.items())
def test_the_place_of_a_name(op_name: str, expected: Place) -> None:
    assert place(op_name) == expected


def test_the_optimizers_scope_is_the_callers_to_name() -> None:
    assert place("jit(train_step)/adamw/mul", ("adamw",)) == Place(OPTIMIZER, "adamw")
    assert place("jit(train_step)/adamw/mul") == Place(FORWARD, "adamw")


def test_slashes_in_parentheses_part_nothing() -> None:
    assert segments("jit(f)/jvp(a/b)/c/mul") == ["jit(f)", "jvp(a/b)", "c", "mul"]
    assert segments("a)b/c") == ["a)b", "c"]  # more closed than opened: damage, and no reason to fail


def test_what_a_checkpoint_does_again_is_recomputed() -> None:
    assert is_recomputed("jit(f)/transpose(jvp(a))/jvp(a)/checkpoint/rematted_computation/b/mul")
    assert not is_recomputed("jit(f)/transpose(jvp(a))/jvp(a)/checkpoint/b/mul")


def test_the_commonest_place_is_one_with_a_name() -> None:
    nowhere, here, there = Place(FORWARD, None), Place(FORWARD, "a"), Place(FORWARD, "a/b")
    assert commonest([nowhere, nowhere, here]) == here
    assert commonest([here, there]) == there  # of equals the more exact
    assert commonest([]) == nowhere
