"""Traces of serving engines: their steps and phases; of those recorded by others how much of their time is known."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import roofline
from roofline.analysis.analysis import analyze
from roofline.analysis.generation import generation
from roofline.content import wording
from roofline.content.facts import measured
from roofline.core.schema import EngineSteps
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


def served(make_kineto, *batches):
    """An engine's trace: for each (name, µs of its kernel) a step every 100 µs, with an op in its range, one behind."""
    made = make_kineto.Trace()
    for number, (name, length) in enumerate(batches):
        zero = 100 * number
        made.annotation(name, zero, zero + 40)
        made.op("aten::relu", zero + 5, zero + 20, make_kineto.H)
        made.launch("relu", zero + 6, zero + 10, zero + 10 + length)
        made.op("aten::exp", zero + 50, zero + 60, make_kineto.H)  # what picks the new tokens runs behind the range
        made.launch("exp", zero + 51, zero + 80, zero + 90)
    return made.write()


def decode(number, keys):
    return f"execute_{number}_context_0(sq0sk0sqsq0sqsk0)_generation_{number}(sq{number}sk{keys}sqsq{number}sqsk{keys})"


PREFILL = "execute_8_context_2(sq8sk8sqsq32sqsk32)_generation_0(sq0sk0sqsq0sqsk0)"
MIXED = "execute_9_context_2(sq8sk8sqsq32sqsk32)_generation_1(sq1sk9sqsq1sqsk9)"


def test_ranges_of_an_engine_mark_its_steps(make_kineto):
    kinds = [PREFILL, MIXED, decode(3, 20), decode(3, 23), decode(3, 26)]
    step = gpu.read(reader.read(served(make_kineto, *[(name, 30) for name in kinds])), Costs())
    assert (len(step.steps), step.steps.rule) == (5, "from one step of the engine to the next")
    # The first is left out. All others run the same kernels; the last of equally long ones is counted.
    assert (step.chosen.selected, step.chosen.counted) == ((1, 2, 3, 4), 4)
    assert step.batch is not None
    assert (step.batch.phase, step.batch.decode.keys) == ("decode", 26)
    assert [step.counted.phase.tolist(), step.counted.names_of_ops] == [[4, 4], ("aten::relu", "aten::exp")]
    # A step goes from the last kernel of the one before to its own: 100 µs.
    assert step.engine == (
        EngineSteps(phase="decode", steps=3, seconds=pytest.approx(300e-6), sequences=9, tokens=9),
        EngineSteps(phase="mixed", steps=1, seconds=pytest.approx(100e-6), sequences=3, tokens=9),
    )


def test_a_lone_range_tells_the_phase_of_the_whole_trace(make_kineto):
    step = gpu.read(reader.read(served(make_kineto, (PREFILL, 30))), Costs())
    assert step.steps.rule == "the whole trace"
    assert set(step.counted.phase.tolist()) == {3}
    assert [(steps.phase, steps.steps, steps.tokens) for steps in step.engine] == [("prefill", 1, 8)]


def test_rates_of_decoding(make_kineto, tmp_path):
    path = tmp_path / "t.json"
    path.write_bytes(served(make_kineto, *[(decode(3, 20 + 3 * number), 30) for number in range(4)]))
    profile = roofline.import_trace(path, device="h100-sxm")
    assert (profile.samples, profile.tokens, profile.new_tokens) == (3, 3, 1)
    phases = generation(analyze(profile))
    assert phases is not None
    assert (phases.passes, phases.decode) == (1, pytest.approx(100e-6))  # with the host before its ops
    (line,) = (line for line in wording.imported(analyze(profile)) if "decode" in line)
    assert {"30,000", "100"} <= set(line.split())  # tokens a second, and µs per token of a sequence


def test_drafted_tokens_are_not_called_new(make_kineto, tmp_path):
    # 3 sequences of 4 queries each, one and 3 drafted ones.
    path = tmp_path / "t.json"
    name = "decode[bs=3 tok=12 d=3 sqsq=48 sqsk=240 sk=60]"
    path.write_bytes(served(make_kineto, *[(name, 30)] * 4))
    profile = roofline.import_trace(path, device="h100-sxm")
    assert (profile.samples, profile.tokens, profile.new_tokens) == (3, 12, None)
    assert [unit for _, unit in measured.rates(analyze(profile))] == ["samples", "tokens processed"]
    (line,) = (line for line in wording.imported(analyze(profile)) if "decode" in line)
    assert "120,000 tokens processed/s" in line
    assert "per token" not in line
