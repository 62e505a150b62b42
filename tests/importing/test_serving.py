"""Traces of serving engines, recorded by others: how much of their time is known, and figures worked out by hand."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from roofline.importing import gpu
from roofline.importing.work.costs import Costs
from roofline.traces.kineto import reader


@pytest.fixture(scope="module")
def imported(recorded):
    """The step of a recorded trace, with its capture where it has one; read once."""
    steps = {}

    def step(name, captured=False):
        if name not in steps:
            captures = [reader.read(recorded(f"{name}_capture.json.gz"))] if captured else []
            steps[name] = gpu.read(reader.read(recorded(f"{name}.json.gz")), Costs(), captures)
        return steps[name]

    return step


def share(step, is_known):
    """The share of kernel time of the ops whose cost `is_known`."""
    own = step.timed.own.mean(axis=1)
    return sum(time for op, time in zip(step.counted.ops, own, strict=True) if is_known(op.costed.cost)) / own.sum()


@pytest.mark.parametrize(
    ("name", "captured", "known_bytes", "known_flops"),
    [
        ("mi300x_sglang_prefill", False, 0.999, 0.999),
        ("mi300x_vllm_decode_graph", True, 0.93, 0.93),
        ("mi300x_flux_graph", True, 0.999, 0.98),
        ("mi300x_attention_fused", False, 1.0, 1.0),
    ],
)
def test_known_work(imported, name, captured, known_bytes, known_flops):
    step = imported(name, captured)
    assert share(step, lambda cost: cost.bytes is not None) >= known_bytes
    assert share(step, lambda cost: cost.flops_known) >= known_flops


def of(step, name):
    """The distinct costs of the ops of a name."""
    pairs = zip(step.counted.names_of_ops, step.counted.ops, strict=True)
    return {
        (op.costed.cost.flops, op.costed.cost.useful_flops, op.costed.cost.bytes)
        for called, op in pairs
        if called == name and op.costed.cost.quality != "unknown"
    }


def test_a_prefill_from_pages(imported):
    # 15 sequences of 1024, 32 query heads, 8 of keys, width 128, bf16.
    pairs, causal = 15 * 1024**2 * 32, 15 * 1024 * 1025 // 2 * 32
    moved = 2 * 15360 * 128 * (2 * 32 + 2 * 8)
    assert of(imported("mi300x_sglang_prefill"), "aiter::mha_batch_prefill") == {
        (4 * 128 * pairs, 4 * 128 * causal, moved)
    }


def test_decoding_in_a_graph(imported):
    # 32 sequences of 55,086 keys together, 64 query heads, 8 of keys, width 64, bf16; half of the layers have a window.
    moved = 2 * (2 * 32 * 64 * 64 + 2 * 55086 * 8 * 64)
    step = imported("mi300x_vllm_decode_graph", True)
    pairs = 4 * 64 * 55086 * 64
    assert of(step, "vllm::unified_attention_with_output") == {(pairs, pairs, moved)}


def test_experts_in_a_graph(imported):
    # 32 tokens, each with 4 of 32 experts: 128 rows through 3072 x 5888 and 2944 x 3072 numbers of mxfp4.
    ((flops, _, moved),) = of(imported("mi300x_vllm_decode_graph", True), "vllm::moe_forward")
    weights = 3072 * 5888 + 2944 * 3072
    assert flops == 2 * 128 * weights
    touched = 32 * (1 - (28 / 32) ** 32)
    assert moved == pytest.approx(touched * weights * 17 / 32 + 2 * 2 * 32 * 3072 + 2 * 32 * 32)
