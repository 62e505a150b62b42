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


def work(step, name, shapes):
    """The distinct (FLOPs, vector FLOPs, bytes) of the ops of a name whose shapes begin so."""
    pairs = zip(step.counted.names_of_ops, step.counted.ops, strict=True)
    costs = (op.costed.cost for called, op in pairs if called == name and op.costed.shapes.startswith(shapes))
    return {(cost.flops, cost.vector_flops, cost.bytes) for cost in costs}


def test_small_kernels_of_sglang(imported):
    """bf16: TraceLens' tables of this trace (b4f1094, da25733) have these figures, but for what a comment says."""
    step, tokens = imported("mi300x_sglang_prefill"), 15360
    rows, hidden = tokens * 32, tokens * 4096
    # Square and add, times 1 / rms and the weight; eps once per row, where the table has two additions.
    norm = (0, 4 * hidden + rows, 2 * (2 * hidden + 128))
    assert work(step, "aiter::rmsnorm", f"[{rows},128]") == {norm}
    added = (0, 5 * hidden + tokens, 2 * (4 * hidden + 4096))
    assert work(step, "aiter::add_rmsnorm", f"[{tokens},4096]") == {added}
    # The sigmoid has a column of its own here; the table takes the gate for 5 FLOP.
    gate = (0, 2 * tokens * 12288, 2 * 3 * tokens * 12288)
    assert work(step, "sgl_kernel::silu_and_mul", f"[{tokens},12288]") == {gate}
    # Each token's position and its row of cosines and sines, which the table leaves out: 1.3 %.
    turned = tokens * (4096 + 1024)
    rotary = (0, 3 * turned, 2 * 2 * turned + 8 * tokens + 2 * tokens * 128)
    assert work(step, "sgl_kernel::rotary_embedding", f"[{tokens}]") == {rotary}
    # And the index of each token's place.
    assert work(step, "sglang::store_cache", f"[{tokens},1024]") == {(0, 0, 2 * 2 * 2 * tokens * 1024 + 8 * tokens)}


def test_matmuls_attention_and_convolutions_of_a_captured_graph(imported):
    """bf16: TraceLens' tables of this trace (5b84f65, 94536db) have these figures, but for what a comment says."""
    step, tokens, hidden = imported("mi300x_flux_graph", True), 4608, 3072
    moved = 2 * (2 * tokens * hidden + hidden**2)
    assert work(step, "aten::mm", f"[{tokens},{hidden}] x [{hidden},{hidden}]") == {(2 * tokens * hidden**2, 0, moved)}
    # The table adds the bias to the FLOPs of the matmul.
    assert work(step, "aten::addmm", f"[{hidden}] x [{tokens},{hidden}]") == {
        (2 * tokens * hidden**2, tokens * hidden, moved + 2 * hidden)
    }
    # The table leaves the log-sum-exp out, which is returned: the call's return_lse is true.
    ((flops, _, bytes_moved),) = work(step, "aiter::fmha_v3_fwd", f"[1,{tokens},24,128]")
    assert (flops, bytes_moved) == (4 * tokens**2 * hidden, 2 * 4 * tokens * hidden + 4 * tokens * 24)
    # 3 x 3: 3 * 128 - 2 taps of a row lie inside. The table multiplies the border of zeros as well, 1 % more.
    ((flops, _, bytes_moved),) = work(step, "aten::convolution", "[1,512,128,128] x [512,512,3,3]")
    assert flops == 2 * 512**2 * (3 * 128 - 2) ** 2
    assert bytes_moved == 2 * (2 * 512 * 128**2 + 9 * 512**2 + 512)


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


def test_what_is_said_of_a_lone_range(make_kineto, tmp_path):
    path = tmp_path / "t.json"
    path.write_bytes(served(make_kineto, (PREFILL, 30)))
    profile = roofline.import_trace(path, device="h100-sxm")
    assert wording.step_rule(profile) == "a step: the whole trace, which holds the range of one prefill step"
    path.write_bytes(served(make_kineto, ("other", 30)))
    assert wording.step_rule(roofline.import_trace(path)) == "a step: the whole trace; nothing in it marks steps"


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
