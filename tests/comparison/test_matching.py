"""Which segments of two runs are the same work."""

from __future__ import annotations

import itertools
from dataclasses import replace as change

import numpy as np
import pytest
import randomly
import synthetic
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from synthetic import EAGER_ATTENTION, LAYER, UNFUSED_NORM, instead, step

from roofline.comparison.matching import Matching, _in_order, _of_lone_stretches, match
from roofline.comparison.segments import Segments
from roofline.comparison.terms import compare


def matched(a: object, b: object) -> tuple[Matching, Segments, Segments]:
    comparison = compare(a, b)  # type: ignore[arg-type]
    one, other = comparison.work.a.segments, comparison.work.b.segments
    return match(one, other), one, other


def test_a_replaced_op_is_one_hunk_per_layer() -> None:
    found, a, b = matched(step(instead(LAYER * 4, "aten::native_layer_norm", UNFUSED_NORM)), step())
    assert found.alike
    assert len(found.pairs_a) == 4 * 6  # all of a layer but the norm
    assert len(found.unmatched) == 4
    for stretch in found.unmatched:
        assert [a.signature[row].name for row in stretch.a] == [row.name for row in UNFUSED_NORM]
        assert [b.signature[row].name for row in stretch.b] == ["aten::native_layer_norm"]


def test_ops_of_one_name_are_matched_inside_their_stretch() -> None:
    # One more `add` in the first layer, the same as those that every layer has: it is found there, not in the last
    extra = (*LAYER[:4], synthetic.ADD, *LAYER[4:], *LAYER * 3)
    found, a, _ = matched(step(extra), step())
    (stretch,) = found.unmatched
    assert len(stretch.a) == 1
    assert not len(stretch.b)
    assert a.op[stretch.a[0]] in (3, 4)


def test_equal_ops_on_the_other_side_of_a_product_are_matched() -> None:
    # A turns the results of two products after both, B each after its own
    turn = [change(synthetic.ADD, name=f"aten::{name}") for name in ("mul", "neg", "cat")]
    one, other = synthetic.LINEAR, change(synthetic.LINEAR, flops=40e6)
    found, a, b = matched(step((one, other, *turn, *turn) * 3), step((one, *turn, other, *turn) * 3))
    assert len(found.pairs_a) == len(a) == len(b)
    assert not found.unmatched
    longer = (*UNFUSED_NORM, change(UNFUSED_NORM[0], bytes=0.9e6))
    found, _, _ = matched(step((one, *UNFUSED_NORM, other, *longer)), step((one, *longer, other, turn[1])))
    # In the first stretch B alone has something left, a mean of 0.9 MB. A has one where B has another op in its place:
    # these 7 ops and that one are two ways to do the same
    assert len(found.pairs_a) == 2 + 6
    assert [(len(stretch.a), len(stretch.b)) for stretch in found.unmatched] == [(0, 1), (7, 1)]


def test_many_equal_ops_in_other_phases_are_looked_at_once() -> None:
    class Phase(str):
        """Count how often it is held against another phase."""

        __slots__ = ()
        __hash__ = str.__hash__
        asked = 0

        def __ne__(self, other: object) -> bool:
            Phase.asked += 1
            return str.__ne__(self, other)

    backward, update = [[(Phase(name), 0, "")] * 300 for name in ("backward", "optimizer")]
    keys = [["mul"] * 300] * 2
    assert _of_lone_stretches([backward, update], keys) == [(row, row) for row in range(300)]
    assert Phase.asked <= 600


def test_products_of_one_shape_match_at_the_place_that_both_runs_have() -> None:
    # A has query, key and output of one shape, B has merged the first two: its output is no other one's partner
    def placed(rows: list[synthetic.Row], *scopes: str) -> object:
        scopes = tuple(f"layers.{number}/{scope}" for number in range(4) for scope in scopes)
        profile = step(rows * 4)
        ops = tuple(replace(op, scope=number) for number, op in enumerate(profile.ops))
        return replace(profile, scopes=scopes, ops=ops)

    one, merged, norm = synthetic.LINEAR, change(synthetic.LINEAR, flops=40e6), synthetic.NORM
    found, a, b = matched(
        placed([one, one, norm, one], "query", "key", "norm", "output"),
        placed([merged, norm, one], "self", "norm", "output"),
    )
    assert [
        (a.scope[i], b.scope[j]) for i, j in zip(found.pairs_a, found.pairs_b, strict=True) if "norm" not in a.scope[i]
    ] == [("layers.*/output", "layers.*/output")] * 4
    assert [(len(stretch.a), len(stretch.b)) for stretch in found.unmatched] == [(2, 1)] * 4


@pytest.mark.parametrize(
    "names", [("FFN", "head", "attention"), ("a", "b", "c"), ("attention", "b", "c")], ids=["turned", "all", "some"]
)
def test_other_names_of_blocks_make_no_op_one_of_one_run_alone(names: tuple[str, ...]) -> None:
    rows = (*LAYER, change(synthetic.GELU, block="head")) * 4
    found, a, b = matched(step(rows), step(rows, blocks=names))
    assert found.pairs_a.tolist() == found.pairs_b.tolist()
    assert len(found.pairs_a) == len(a) == len(b)


def test_products_of_equal_flops_match_across_frameworks() -> None:
    renamed = tuple(change(row, name=f"dot.{number}") for number, row in enumerate(LAYER * 4))
    found, a, b = matched(step(), step(renamed, backend="jax"))
    assert not found.alike
    classes = [a.places[row].op_class for row in found.pairs_a]
    assert sorted(classes) == ["attention"] * 4 + ["contraction"] * 12
    assert all(
        a.signature[i].cost.flops == b.signature[j].cost.flops
        for i, j in zip(found.pairs_a, found.pairs_b, strict=True)
    )
    # What is left is one stretch per phase and block
    assert {(stretch.phase, len(stretch.a), len(stretch.b)) for stretch in found.unmatched} == {
        ("forward", 8, 8),
        ("forward", 4, 4),
    }


def test_blocks_that_only_one_author_named_do_not_keep_products_apart() -> None:
    # One run is of a function without modules, all of it at the top; the other one calls its parts attention and FFN
    flat = tuple(change(row, name=f"dot.{number}", block="head") for number, row in enumerate(LAYER * 4))
    found, a, _ = matched(step(flat), step(backend="torch-compile"))
    assert not found.alike
    assert sorted(a.places[row].op_class for row in found.pairs_a) == ["attention"] * 4 + ["contraction"] * 12
    assert {(stretch.phase, len(stretch.a), len(stretch.b)) for stretch in found.unmatched} == {("forward", 12, 12)}


def test_written_out_attention_stands_between_the_products_around_it() -> None:
    found, a, b = matched(step(instead(LAYER * 4, "aten::sdpa", EAGER_ATTENTION)), step())
    assert [[a.signature[r].name for r in h.a] for h in found.unmatched] == [
        ["aten::bmm", "aten::softmax", "aten::bmm"]
    ] * 4
    assert [[b.signature[r].name for r in h.b] for h in found.unmatched] == [["aten::sdpa"]] * 4


def test_the_longest_common_subsequence() -> None:
    # a b c a b b a and c b a b a c share at most four (Myers' own example), and None matches nothing
    pairs = _in_order(["a", "b", None, "c", "a", "b", "b", "a"], ["c", "b", "a", "b", None, "a", "c"])
    assert len(pairs) == 4
    assert pairs == sorted(pairs)
    assert _in_order([], []) == []
    assert _in_order(["a"], []) == []
    assert _in_order([None], [None]) == []


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_no_common_subsequence_is_longer(a: list[str], b: list[str]) -> None:
    pairs = _in_order(a, b)
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(p[0] < q[0] and p[1] < q[1] for p, q in itertools.pairwise(pairs))
    lengths = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, j in itertools.product(range(len(a)), range(len(b))):
        same = lengths[i][j] + 1 if a[i] == b[j] else 0
        lengths[i + 1][j + 1] = max(same, lengths[i][j + 1], lengths[i + 1][j])
    assert len(pairs) == lengths[-1][-1]


def test_runs_with_little_in_common_end_soon() -> None:
    a, b = [f"a{n}" for n in range(3000)], [f"b{n}" for n in range(3000)]
    assert _in_order([*a, "x"], ["x", *b]) == [(3000, 0)]


def test_an_op_inside_a_fused_kernel_is_not_the_op_alone() -> None:
    kernel = synthetic.Row("fused", "normalisation", 50, bytes=0.5e6, parts=(synthetic.ADD, synthetic.NORM))
    found, a, b = matched(
        step(instead(instead(LAYER, "aten::add", ()), "aten::native_layer_norm", (kernel,))), step(LAYER)
    )
    (stretch,) = found.unmatched
    assert [a.op_signature[row].name for row in stretch.a] == ["fused", "fused"]
    assert [b.signature[row].name for row in stretch.b] == ["aten::add", "aten::native_layer_norm"]


@settings(deadline=None, max_examples=60)
@given(randomly.profiles(), randomly.profiles())
def test_every_piece_is_matched_once_or_in_one_hunk(a: object, b: object) -> None:
    found, one, other = matched(a, b)
    for number, segments in ((0, one), (1, other)):
        rows = [(found.pairs_a, found.pairs_b)[number], *((h.a, h.b)[number] for h in found.unmatched)]
        assert sorted(np.concatenate(rows)) == list(range(len(segments)))


@settings(deadline=None, max_examples=60)
@given(randomly.profiles())
def test_a_run_matches_itself(profile: object) -> None:
    found, one, _ = matched(profile, profile)
    if found.alike:
        assert not found.unmatched
        assert list(found.pairs_a) == list(found.pairs_b) or len(found.pairs_a) == len(one)
