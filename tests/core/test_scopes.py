"""Scopes as a tree: repeated layers are folded, and the blocks of an unknown model are found by descending."""

from __future__ import annotations

from collections.abc import Mapping

import handmade
import pytest
from msgspec.structs import replace

from roofline.analysis.scope_tree import to_depth
from roofline.core.scopes import blocks, folded

LAYER = {"attention/query": 10.0, "attention/out": 10.0, "ffn/up": 25.0, "ffn/down": 25.0, "norm": 5.0}


def layers(prefix: str, many: int) -> dict[str, float]:
    return {f"{prefix}{number}/{part}": work for number in range(many) for part, work in LAYER.items()}


def found(work: Mapping[str, float], classes: Mapping[str, str] | None = None) -> set[str]:
    """The blocks of scopes with this work; their classes are those given, else "contraction"."""
    classes = classes or {}
    return set(blocks([*work], [*work.values()], [classes.get(path, "contraction") for path in work]))


@pytest.mark.parametrize("prefix", ["encoder/layer.", "model/encoder/layers/", "Transformer/Block_", ""])
def test_repeated_layers_are_descended_as_one(prefix: str) -> None:
    # FFN 50 of 75, attention 20 of 75: neither is nearly all, so both are blocks
    name = f"{prefix}*"
    assert found({**layers(prefix, 3), "pooler": 1.0}) == {f"{name}/attention", f"{name}/ffn", f"{name}/norm", "pooler"}


def test_layers_beside_a_large_head_are_descended_too() -> None:
    # the layers hold 225 of 1225
    assert found({**layers("body/h.", 3), "head": 1000.0}) == {
        *("body/h.*/attention", "body/h.*/ffn", "body/h.*/norm", "head"),
    }  # fmt: skip


def test_ops_beside_the_parts_of_a_descended_scope_are_a_block_of_its_name() -> None:
    work = {**layers("body/h.", 3), "": 2.0, "body": 3.0, "body/h.1": 1.0}
    assert {"(top)", "body", "body/h.*"} <= found(work)


def test_several_parts_of_which_none_is_nearly_all_are_the_blocks() -> None:
    assert found({"a/x": 40.0, "a/y": 20.0, "b/x": 20.0, "b/y": 20.0}) == {"a", "b"}  # 60 %
    assert found({"a/x": 60.0, "a/y": 20.0, "b/x": 20.0}) == {"a/x", "a/y", "b"}  # 80 %


def test_layers_of_which_others_hold_more_are_parts_like_any() -> None:
    # Keras names all layers side by side: of what lies deeper attention holds 30 and the others 60
    work = {**layers("m/", 0), "m/attention_1/a": 15.0, "m/attention_2/a": 15.0, "m/dense/gelu": 60.0, "m/norm": 5.0}
    assert found(work) == {"m/attention_*", "m/dense", "m/norm"}


def test_blocks_stay_few() -> None:
    parts = {f"model/{letter}": 1.0 for letter in "abcdefghijklmnopq"}
    assert found(parts) == {"model"}  # 17 would be too many to read
    assert len(found(dict(list(parts.items())[:16]))) == 16


def test_an_encoder_is_taken_apart_like_its_decoder() -> None:
    """Of what lies deeper the decoder holds 60 % and the encoder 40: both are layers, under the same name."""
    half = {f"{{}}/block.{number}/{part}": 10.0 for number in range(2) for part in ("attn", "ffn")}
    work = {path.format("encoder"): each for path, each in half.items()}
    work |= {path.format("decoder"): each for path, each in half.items()}
    work |= {f"decoder/block.{number}/cross": 10.0 for number in range(2)}
    assert found(work) == {
        *("encoder/block.*/attn", "encoder/block.*/ffn"),
        *("decoder/block.*/attn", "decoder/block.*/ffn", "decoder/block.*/cross"),
    }
    # A tower that is made otherwise is a part like any.
    other = {path.replace("encoder/block", "tower/stage"): each for path, each in work.items()}
    assert "tower" in found(other)


def test_siblings_that_are_not_the_same_stay_apart() -> None:
    # Sequential(Linear, ReLU, Linear, ReLU, Linear): the numbers say which are which
    paths = [str(number) for number in range(5)]
    classes = {path: "pointwise" if int(path) % 2 else "contraction" for path in paths}
    assert found(dict.fromkeys(paths, 1.0), classes) == {"{0,2,4}", "{1,3}"}
    # however they come: as a fused program names them, by when they ran
    later = {"d_10": 1.0, "d_3": 1.0, "d": 1.0, "d_4": 1.0}
    assert found(later, {"d_3": "pointwise", "d": "pointwise"}) == {"d_{4,10}", "d_{d,3}"}
    # a stage of convolutions beside a layer of another kind
    assert found({"0/conv": 1.0, "1/conv": 1.0, "2": 1.0}) == {"*/conv", "2"}
    # most of what either holds is in both: a compiler took one bias into its neighbour
    assert found({"l_0/a": 1.0, "l_0/b": 1.0, "l_0/c": 1.0, "l_1/a": 1.0, "l_1/b": 1.0}) == {"l_*/a", "l_*/b", "l_*/c"}


def test_what_the_folded_layers_are_called() -> None:
    paths = ["m/dense/x", "m/dense_1/x", "m/dense_1_2/x", "m/conv2d_1", "m/conv2d_2", "ln_f", ""]
    assert folded(paths, [1.0] * 7, ["contraction"] * 7) == [*["m/dense_*/x"] * 3, *["m/conv2d_*"] * 2, "ln_f", ""]


def test_layers_that_are_counted_through_the_whole_model_are_one() -> None:
    # Keras numbers the parts of all blocks in one row: of block_1 the first dense layer is dense_2.
    parts = ["attention", "dense", "dense_1", "attention_1", "dense_2", "dense_3", "attention_2", "dense_4", "dense_5"]
    paths = [f"m/block_{number // 3}/{part}/x" for number, part in enumerate(parts)]
    told = [*["m/block_*/attention*/x"], *["m/block_*/dense_*/x"] * 2] * 3
    assert folded(paths, [1.0] * 9, ["contraction"] * 9) == told
    # Two layers of a block that are not alike stay apart, and what is called the same in all blocks keeps its name.
    paths = [path.replace("/x", "/y") if number % 3 == 2 else path for number, path in enumerate(paths)]
    paths += [f"m/block_{number}/norm" for number in range(3)]
    told = ["m/block_*/attention*/x", "m/block_*/dense*/x", "m/block_*/dense_*/y"] * 3 + ["m/block_*/norm"] * 3
    assert folded(paths, [1.0] * 12, ["contraction"] * 12) == told
    # As where the first of them has a number, too.
    paths = [path.replace("dense", "d_9") for path in paths]
    assert folded(paths, [1.0] * 12, ["contraction"] * 12)[1:3] == ["m/block_*/d_{9,...}/x", "m/block_*/d_{9_1,...}/y"]


def test_a_tree_cut_to_its_upper_levels() -> None:
    profile = handmade.profile()
    scopes = ("", "model/layer.0/attention", "model/layer.1/attention/query", "model/layer.1/norm")
    profile = replace(profile, scopes=(*scopes, *profile.scopes[len(scopes) :]))
    assert to_depth(profile, 2).scopes[: len(scopes)] == ("", "model/layer.*", "model/layer.*", "model/layer.*")
    assert to_depth(profile, 1).scopes[: len(scopes)] == ("", "model", "model", "model")


def test_a_scope_of_any_depth_is_read() -> None:
    deep = "/".join(["a"] * 100_000)
    assert folded([deep, "b"], [1.0, 1.0], ["", ""]) == ["/".join(["a"] * 100), "b"]
