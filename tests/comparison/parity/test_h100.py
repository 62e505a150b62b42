"""Sentences about real GPU profiles (profiles/h100) that were false once, each held to what was recorded."""

from __future__ import annotations

from functools import cache

import pytest

from roofline.analysis.analysis import Analysis, analyze
from roofline.comparison.account.account import account
from roofline.comparison.account.row import Row
from roofline.comparison.parity.parity import Difference, parity
from roofline.comparison.terms import compare
from roofline.core.schema import load
from roofline.core.shipped import paths

JAX = "bert-jax-buffers-on-{}-b32-tf32"
COMPILED = "bert-torch-compile-{}-b32-bf16"
TORCH = "bert-torch-{}-b32-{}"


@cache
def run(name: str) -> Analysis:
    return analyze(load(paths()[f"h100/{name}"]))


def differences(a: str, b: str) -> dict[str, Difference]:
    return {each.what: each for each in parity(run(a), run(b)).differences}


@cache
def rows(a: str, b: str) -> tuple[Row, ...]:
    return account(compare(run(a).profile, run(b).profile), ("a", "b")).rows


@pytest.mark.parametrize(
    ("precision", "form"),
    [
        ("tf32", "memory-efficient"),
        ("fp32", "memory-efficient"),
        ("bf16", "cuDNN"),
    ],
)
def test_cutlass_kernels_of_attention_are_not_called_cudnn(precision: str, form: str) -> None:
    names = {kernel.partition("_")[0] for kernel in run(TORCH.format("infer", precision)).profile.kernels}
    assert ("cudnn" in names) == (precision == "bf16")
    assert (
        differences(JAX.format("infer"), TORCH.format("infer", precision))["attention"].b == f"a fused kernel ({form})"
    )


def test_a_run_that_drops_is_not_said_to_draw_nothing() -> None:
    dropouts = [
        op
        for op in run(TORCH.format("train", "tf32")).profile.ops
        if run(TORCH.format("train", "tf32")).op_class(op) == "random"
    ]
    assert len(dropouts) > 50
    for other in (TORCH.format("train", "tf32"), "bert-torch-compile-default-train-b32-bf16"):
        # Bits and seeds of a generator are no numbers of their own, nor is what inductor calls its generator.
        assert {"dropout", "random numbers"}.isdisjoint(differences(JAX.format("train"), other))


def test_a_tf32_run_is_not_said_to_compute_in_fp32() -> None:
    assert "tf32" not in differences(JAX.format("train"), TORCH.format("train", "tf32"))
    compared = rows(JAX.format("train"), TORCH.format("train", "bf16"))
    (products,) = [row for row in compared if row.kind == "rate" and row.op_class == "contraction"]
    assert {change.type for change in products.ops if change.a} == {"tf32"}
    assert {change.type for change in products.ops if change.b} == {"bf16"}
    assert products.annotations == ("another-type",)
    assert "in fp32" not in products.text


def test_no_clock_is_said_to_be_held_back_that_was_seen_at_its_highest() -> None:
    jax = run(JAX.format("infer"))
    assert "throttled: power cap" in jax.profile.flags
    assert jax.profile.device.conditions["highest clock"] == "1980 MHz"
    assert jax.profile.conditions["sm_clock_least"] == 1.98e9
    assert not any("throttled" in flag for flag in jax.flags)
    assert "throttling" not in differences(JAX.format("infer"), TORCH.format("infer", "tf32"))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (JAX.format("infer"), TORCH.format("infer", "tf32")),
        (TORCH.format("infer", "fp32"), TORCH.format("infer", "tf32")),
        (COMPILED.format("default-infer"), COMPILED.format("reduce-overhead-infer")),
    ],
)
def test_a_row_is_what_its_runs_differ_by(a: str, b: str) -> None:
    """6.20 ms "of which 6.17" cannot be: a row has one number, of which its runs' are the parts."""
    for row in rows(a, b):
        if row.kind != "setting":
            assert row.seconds == pytest.approx(row.a.seconds - row.b.seconds, abs=1e-12)


def test_two_compiled_runs_are_not_told_to_compile() -> None:
    names = {
        name
        for row in rows(
            "bert-torch-compile-default-infer-b32-bf16", "bert-torch-compile-reduce-overhead-infer-b32-bf16"
        )
        for name in row.annotations
    }
    assert "graph-replay" in names
    assert "op-by-op" not in names


def test_presence_by_name_says_nothing_between_frameworks() -> None:
    """JAX drops inside of kernels that are called otherwise."""
    assert not any("dropout" in row.annotations for row in rows(JAX.format("train"), TORCH.format("train", "tf32")))
