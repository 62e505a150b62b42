"""Scopes and model FLOPs carried over from an eager step, on steps made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofline.core.cost import BY_INDEX, Cost, unknown
from roofline.costs.counted import NOTHING, PHASES, Costed, Counted, CountedOp
from roofline.pytorch.eager_twin import with_model_flops, with_scopes


class Op(NamedTuple):
    """One op of a step: what it is, where it stands, and the buffers it touches."""

    kind: str
    op_class: str
    scope: str = ""
    phase: str = "forward"
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    flops: float | None = 0.0
    model: float | None = None  # None: as executed
    note: str = ""
    shapes: str = ""
    vector: float = 0.0
    parts: tuple[Op, ...] = ()


def mm(scope: str = "", flops: float | None = 8.0, phase: str = "forward", **more) -> Op:
    return Op("matmul", "contraction", scope, phase, flops=flops, **more)


def _costed(op: Op) -> Costed:
    if op.flops is None:
        cost = unknown("a test")
    else:
        model = op.flops if op.model is None else op.model
        cost = Cost(flops=op.flops, model_flops=model, vector_flops=op.vector, note=op.note)
    parts = tuple(_costed(part) for part in op.parts)
    return Costed(cost, op.kind, op.op_class, op.shapes, "fp32", "fp32", parts=parts)


def step(ops: Sequence[Op]) -> Counted:
    scopes: dict[str, int] = {"": 0}

    def number(op: Op) -> int:
        return scopes.setdefault(op.scope, len(scopes))

    made, where = [], []
    for node, op in enumerate(ops):
        places = tuple((number(part), PHASES.index(part.phase)) for part in op.parts)
        made.append(CountedOp(node, _costed(op), op.reads, op.writes, places=places))
        where.append(number(op))
    rows = np.arange(len(ops))
    return Counted(
        names=tuple(op.kind for op in ops),
        thread=np.zeros(len(ops), np.int64),
        parent=np.full(len(ops), -1),
        op_of=rows,
        view_of=np.zeros(len(ops), bool),
        ops=tuple(made),
        names_of_ops=tuple(op.kind for op in ops),
        scopes=tuple(scopes),
        scope=np.asarray(where, np.int64),
        phase=np.asarray([PHASES.index(op.phase) for op in ops], np.int64),
    )


def scopes_of(counted: Counted) -> list[str]:
    return [counted.scopes[scope] for scope in counted.scope.tolist()]


def model_of(counted: Counted) -> list[float | None]:
    return [op.costed.cost.model_flops for op in counted.ops]


# ------------------------------------------------------------------------------------------------ scopes

#: Buffers: 1 is the input, 11 to 13 are the weights of q, k and v.
EAGER = step(
    [mm(name, reads=(1, weight), writes=(20 + weight,)) for name, weight in zip("qkv", (11, 12, 13), strict=True)]
)


def test_equal_products_in_another_order_are_told_apart_by_their_weights():
    compiled = step([mm(reads=(1, weight), writes=(30 + weight,)) for weight in (13, 12, 11)])
    assert scopes_of(with_scopes(compiled, EAGER, shared=True)) == ["v", "k", "q"]
    # Recorded apart, the numbers of buffers mean nothing, and order is what is left.
    assert scopes_of(with_scopes(compiled, EAGER)) == ["q", "k", "v"]


def test_a_weight_that_autocast_copies_still_tells():
    cast = [Op("to_copy", "movement", reads=(weight,), writes=(40 + weight,)) for weight in (11, 12, 13)]
    products = [mm(reads=(1, 40 + weight), writes=(30 + weight,)) for weight in (13, 12, 11)]
    assert scopes_of(with_scopes(step([*cast, *products]), EAGER, shared=True)) == ["q", "k", "v", "v", "k", "q"]


def test_a_constant_that_a_frozen_graph_keeps_once_tells_nothing():
    """Both biases are zeros: eager reads buffers 21 and 22, the frozen graph 21 twice."""
    eager = step([mm("a", reads=(1, 21), writes=(30,)), mm("b", reads=(30, 22), writes=(31,))])
    frozen = step([mm(reads=(1, 21), writes=(30,)), mm(reads=(30, 21), writes=(31,))])
    assert scopes_of(with_scopes(frozen, eager, shared=True)) == ["a", "b"]


def test_what_stands_in_another_order_is_matched_although_others_were_matched_in_order():
    eager = step([Op(kind, "pointwise", scope) for kind, scope in (("add", "a"), ("mul", "b"), ("exp", "c"))])
    compiled = step([Op(kind, "pointwise") for kind in ("exp", "add", "mul")])
    # add and mul have one order in both; exp is left, and no product stands between its two places.
    assert scopes_of(with_scopes(compiled, eager)) == ["c", "a", "b"]


def test_a_weight_shared_by_a_lookup_and_a_product_is_told_apart_by_class():
    eager = step([Op("embedding", "embedding", "words", reads=(9, 1)), mm("head", reads=(9, 2))])
    compiled = step([mm(reads=(2, 9)), Op("embedding", "embedding", reads=(9, 1))])
    assert scopes_of(with_scopes(compiled, eager, shared=True)) == ["head", "words"]


def test_both_gradients_of_a_layer_are_of_that_layer():
    """The layer's input gradient reads its weight; that of its weight reads the same gradient, or a copy of it."""
    forward = [mm(name, reads=(1, weight), writes=(20 + weight,)) for name, weight in zip("qk", (11, 12), strict=True)]

    def backward(weight: int, gradient: int, scope: str = "") -> list[Op]:
        copy = Op("clone", "movement", scope, "backward", reads=(gradient,), writes=(gradient + 100,))
        made = Op("mul", "pointwise", scope, "backward", writes=(gradient,), shapes=str(weight))
        return [
            made,
            copy,
            Op("sum", "reduction", scope, "backward", reads=(gradient,), writes=(gradient + 200,)),
            mm(scope, phase="backward", reads=(gradient, weight), writes=(gradient + 300,)),
            mm(scope, phase="backward", reads=(gradient + 100, 1), writes=(gradient + 400,)),
        ]

    eager = step([*forward, *backward(12, 50, "k"), *backward(11, 60, "q")])
    plain = [op._replace(scope="") for op in forward]
    compiled = step([*plain, *backward(11, 70), *backward(12, 80)])  # the other way round
    found = scopes_of(with_scopes(compiled, eager, shared=True))
    assert found[:2] == ["q", "k"]
    assert found[4:7] == ["q"] * 3
    assert found[9:] == ["k"] * 3


def test_ops_between_anchors_follow_their_kind_and_a_mask_goes_where_it_is_read():
    eager = step(
        [
            Op("native_layer_norm", "normalisation", "norm", writes=(2,)),
            mm("up", reads=(2,), writes=(3,)),
            Op("gelu", "pointwise", "act", reads=(3,), writes=(4,)),
            mm("down", flops=16, reads=(4,), writes=(5,)),
            Op("bernoulli", "random", "drop", reads=(), writes=(6,)),
            Op("mul", "pointwise", "drop", reads=(5, 6), writes=(7,)),
        ]
    )
    compiled = step(
        [
            Op("arange", "pointwise", writes=(1,)),
            Op("ge", "pointwise", reads=(1,), writes=(2,)),
            Op("layer_norm", "normalisation", writes=(3,)),
            mm(reads=(3,), writes=(4,)),
            Op("add", "pointwise", reads=(4,), writes=(5,)),  # the bias of a product that was addmm
            Op("gelu", "pointwise", reads=(5, 2), writes=(6,)),
            mm(flops=16, reads=(6,), writes=(7,)),
            Op("native_dropout", "random", reads=(7,), writes=(8,)),
        ]
    )
    expected = ["act", "act", "norm", "up", "up", "act", "down", "drop"]
    assert scopes_of(with_scopes(compiled, eager)) == expected


def test_between_two_anchors_order_may_differ():
    eager = step([mm("a"), Op("mul", "pointwise", "x"), Op("tril", "pointwise", "y"), mm("b", flops=2)])
    compiled = step([mm(), Op("tril", "pointwise"), Op("mul", "pointwise"), mm(flops=2)])
    assert scopes_of(with_scopes(compiled, eager)) == ["a", "y", "x", "b"]


def test_what_is_known_stands_and_the_optimizer_keeps_its_scope():
    eager = step([mm("a"), Op("add", "optimizer", "optimizer", "optimizer")])
    compiled = step([mm("mine"), Op("add", "optimizer", "optimizer", "optimizer")])
    assert scopes_of(with_scopes(compiled, eager)) == ["mine", "optimizer"]
    assert scopes_of(with_scopes(compiled, eager, np.zeros(2, bool))) == ["a", "optimizer"]


def test_without_a_twin_the_known_layers_place_the_rest():
    """A module that came as TorchScript: the forward pass is known, the backward pass reads the same weights."""
    compiled = step(
        [
            mm("a", reads=(1, 11), writes=(2,)),
            mm("b", reads=(2, 12), writes=(3,)),
            mm(phase="backward", reads=(4, 12), writes=(5,)),
            Op("mul", "pointwise", phase="backward", reads=(5,), writes=(6,)),
            mm(phase="backward", reads=(6, 11), writes=(7,)),
            Op("random", "random", phase="backward"),  # nothing says where it is from: as the one before
        ]
    )
    assert scopes_of(with_scopes(compiled, NOTHING)) == ["a", "b", "b", "b", "a", "a"]


def test_a_step_of_which_nothing_is_known_is_the_outermost_scope():
    assert scopes_of(with_scopes(step([mm(), mm()]), NOTHING)) == ["", ""]


# ------------------------------------------------------------------------------------------------ model FLOPs


def test_where_the_sums_agree_nothing_changes():
    """Attention backward executes 5 products of 4 asked for; its own figures stand, though another op is beside it."""
    attention = Op("attention_backward", "attention", "core", "backward", flops=50, model=40)
    eager = step([mm("a"), attention, mm("core", flops=8, phase="backward")])
    assert with_model_flops(eager, eager).ops == eager.ops


def test_a_repeated_product_executes_more_than_is_asked_for():
    found = with_model_flops(step([mm("a"), mm("a"), mm("b", flops=3)]), step([mm("a"), mm("b", flops=3)]))
    assert model_of(found) == [4, 4, 3]  # 8 asked for under a, over two that execute 8
    assert [op.costed.cost.flops for op in found.ops] == [8, 8, 3]


def test_shares_of_counts_are_counts():
    found = with_model_flops(step([mm("a", flops=3)] * 3), step([mm("a", flops=10)]))
    assert model_of(found) == [3, 3, 4]


def test_a_product_that_an_index_would_do_is_asked_for_nothing():
    """One place asks for a product of 8 FLOP and picks rows by one of 16; the twin runs both."""
    picks = mm("a", 16, model=0, note=BY_INDEX)
    counted = with_model_flops(step([mm("a", 16), mm("a", 8)]), step([picks, mm("a", 8)]))
    assert [(op.costed.cost.model_flops, op.costed.cost.note) for op in counted.ops] == [(0, BY_INDEX), (8, "")]
    # Of two that execute the same, nobody knows which: what is asked for is divided.
    counted = with_model_flops(step([mm("a", 8), mm("a", 8)]), step([picks._replace(flops=8), mm("a", 8)]))
    assert [(op.costed.cost.model_flops, op.costed.cost.note) for op in counted.ops] == [(4, ""), (4, "")]


def test_merged_products_carry_what_each_asked_for():
    """One product of 24 under q does those of q, k and v, although an op without products runs under k."""
    compiled = step([mm("s/q", flops=24), Op("add", "pointwise", "s/k", vector=4)])
    assert model_of(with_model_flops(compiled, step([mm("s/q"), mm("s/k"), mm("s/v")]))) == [24, 0]


def test_a_product_that_became_a_multiplication_keeps_what_was_asked_for():
    compiled = step([mm("a"), Op("mul", "pointwise", "b", vector=8), Op("neg", "pointwise", "b", vector=1)])
    assert model_of(with_model_flops(compiled, step([mm("a"), mm("b", flops=2)]))) == [8, 2, 0]


def test_a_product_inside_a_fused_kernel_is_asked_for_where_the_part_is_from():
    part = mm("b", flops=0)
    fused = Op("fused", "pointwise", "a", vector=100, parts=(Op("add", "pointwise", "a"), part))
    compiled = step([mm("a"), fused, Op("mul", "pointwise", "b", vector=1)])
    assert model_of(with_model_flops(compiled, step([mm("a"), mm("b", flops=5)]))) == [8, 5, 0]


def test_a_kernel_that_does_products_of_two_layers_carries_both():
    fused = Op("fused", "contraction", "a", flops=14, parts=(mm("a", flops=8), mm("b", flops=6)))
    found = with_model_flops(step([fused, mm("b", flops=6)]), step([mm("a"), mm("b", flops=6)]))
    assert model_of(found) == [8 + 3, 3]


def test_the_only_op_of_unknown_work_in_a_layer_is_its_product():
    found = with_model_flops(step([mm("a"), mm("b", flops=None)]), step([mm("a"), mm("b", flops=5)]))
    assert model_of(found) == [8, 5]
    assert found.ops[1].costed.cost.flops is None


def test_unknown_stays_unknown_where_the_layer_is_accounted_for():
    found = with_model_flops(step([mm("a"), mm("a", flops=None)]), step([mm("a")]))
    assert model_of(found) == [8, None]


def test_where_the_eager_step_does_not_know_the_ops_keep_their_own():
    found = with_model_flops(step([mm("a", flops=6), mm("b")]), step([mm("a", flops=None), mm("b", flops=4)]))
    assert model_of(found) == [6, 4]


def test_what_runs_in_another_phase_is_not_taken_for_it():
    """A product done again for the backward pass: 8 are asked for forward and 16 backward, 24 run backward."""
    eager = step([mm("a"), mm("a", flops=16, phase="backward")])
    compiled = step([mm("a"), mm("a", phase="backward"), mm("a", flops=16, phase="backward")])
    assert model_of(with_model_flops(compiled, eager)) == [8, 5, 11]


_PLACED = st.tuples(st.sampled_from(["", "a", "a/b", "a/c", "d"]), st.sampled_from(["forward", "backward"]))
_PRODUCT = st.tuples(_PLACED, st.integers(1, 10**12))
_OTHER = st.tuples(_PLACED, st.sampled_from(["product", "unknown", "pointwise"]), st.integers(1, 10**12))


@given(st.lists(_PRODUCT, max_size=8), st.lists(_OTHER, min_size=1, max_size=8))
def test_the_sum_over_the_step_is_what_is_asked_for(asked, running):
    eager = step([mm(scope, flops=float(flops), phase=phase) for (scope, phase), flops in asked])
    ops = []
    for (scope, phase), what, flops in running:
        if what == "pointwise":
            ops.append(Op("mul", "pointwise", scope, phase, vector=float(flops)))
        else:
            ops.append(mm(scope, flops=None if what == "unknown" else float(flops), phase=phase))
    compiled = step(ops)
    found = with_model_flops(compiled, eager)
    known = [value for value in model_of(found) if value is not None]
    if all(op.flops is None for op in ops):
        return  # nobody can say which of the unknown ones it was
    assert sum(known) == sum(flops for _, flops in asked)
    assert all(value >= 0 for value in known)
    assert [op.costed.cost.flops for op in found.ops] == [op.costed.cost.flops for op in compiled.ops]


@pytest.mark.parametrize("transform", [with_scopes, with_model_flops])
def test_nothing_counted_stays_nothing(transform):
    assert transform(NOTHING, NOTHING).ops == ()
