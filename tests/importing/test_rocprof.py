"""Profiles of traces of rocprofv3: a recorded one, and steps written by hand (tests/data/make_rocprof.py).

A step of 100 µs: 38 of a copy and gemms one after another (relu runs inside of these), 10 of a graph, 5 of a copy back.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from roofline import importing
from roofline.errors import InputError
from roofline.importing import gpu
from roofline.importing.selection import Selection
from roofline.importing.work.costs import Costs
from roofline.traces.rocprof import reader

RECORDED = Path(__file__).parents[1] / "data" / "rocprofv3" / "vcopy_results.json"


@pytest.fixture
def imported(tmp_path):
    def imported(text, **options):
        path = tmp_path / "4242_results.json"
        path.write_bytes(text)
        return importing.read([path], **options)[0]

    return imported


def test_the_recorded_one():
    """Three kernels of 8292 + 5528 + 5488 ns, from 5868304 to 5936443 [ns]; no call and no mark was recorded."""
    said = []
    profile = importing.read([RECORDED], say=said.append)[0]
    assert (profile.backend, profile.device.kind, profile.device.name) == ("hip", "rocm", "AMD Instinct MI300X")
    assert "matrix.bf16" in profile.device.ceilings
    assert profile.wall.steps == (68139e-9,)
    facts = profile.imported
    assert (facts.busy, facts.rule, facts.launched) == (pytest.approx(19308e-9), "the whole trace", 0.0)
    assert profile.kernels == ("vecCopy(double*, double*, double*, int, int)",)
    assert (len(profile.ops), profile.scopes[profile.ops[0].scope]) == (1, "")
    assert "no-shapes" in profile.flags
    assert any("rocprofv3 records kernels and calls, no ops" in text for text in said)


@pytest.mark.parametrize("older", [False, True])
def test_steps_in_ranges(make_rocprof, older):
    """Of four steps the first fills the queue."""
    found = gpu.read(reader.read(make_rocprof.stepped(4, older).write()), Costs())
    assert (len(found.steps), found.steps.source, found.chosen.selected) == (4, "train_step", (1, 2, 3))
    assert found.timed.walls == pytest.approx([100e-6] * 3)
    assert found.timed.idle == pytest.approx([47e-6] * 3)
    # Each op's own time, and what it shares: the relus of stream 2 run beside gemms for 3 µs each.
    own = found.timed.own.mean(axis=1) * 1e6
    rows = [
        (name, op.costed.op_class, round(float(own[row]), 3))
        for row, (name, op) in enumerate(zip(found.counted.names_of_ops, found.counted.ops, strict=True))
        if own[row]
    ]
    assert sorted(rows) == sorted(
        [("Memcpy HtoD", "transfer", 10.0), ("Memcpy DtoH", "transfer", 5.0), ("norm(float*)", "normalisation", 5.0)]
        + [("gemm(float*)", "contraction", 7.0)] * 4
        + [("relu(float*, int)", "other", 3.0)] * 4
        + [("relu(float*, int)", "other", 5.0)]
    )
    assert found.timed.overlap.sum() == pytest.approx(4 * 3e-6)
    assert (found.timed.graph_launches, found.timed.graph_kernels, found.timed.unattributed) == (1, 2, 2)
    costs = {name: op.costed.cost for name, op in zip(found.counted.names_of_ops, found.counted.ops, strict=True)}
    assert (costs["Memcpy HtoD"].bytes_written, costs["Memcpy DtoH"].bytes_read) == (500_000, 4096)
    assert (costs["gemm(float*)"].flops, costs["gemm(float*)"].quality) == (None, "unknown")
    assert (found.figures.launched, found.warnings, found.shapes) == (1.0, (), False)


def test_what_the_host_did_while_the_gpu_was_idle(make_rocprof):
    """From 70 to 105 the GPU waits for a copy to it, from 43 to 50 for the graph, from 60 to 65 for the copy back."""
    causes = gpu.read(reader.read(make_rocprof.stepped().write()), Costs()).timed.causes
    assert causes == {"data input": pytest.approx(35e-6), "host dispatch": pytest.approx(12e-6)}


def test_steps_without_ranges_are_found_by_what_repeats(make_rocprof, imported):
    trace = make_rocprof.stepped(4)
    trace.buffers.pop("marker_api")
    profile = imported(trace.write())
    assert (profile.imported.rule, profile.imported.steps) == ("a block of kernels that repeats", 4)
    assert "steps-inferred: a block of kernels that repeats" in profile.flags
    assert profile.wall.steps == pytest.approx((100e-6,) * 3)


def test_steps_chosen_by_hand(make_rocprof, imported):
    """Four ranges make three steps from one to the next; number 2 is the last."""
    text = make_rocprof.stepped(4).write()
    profile = imported(text, selection=Selection(between="train_st", numbers=(2, 2)))
    assert profile.wall.steps == pytest.approx((100e-6,))
    assert profile.imported.rule == "from one train_st to the next, number 2 by hand"
    with pytest.raises(InputError, match="no two annotations or ops 'epoch'"):
        imported(text, selection=Selection(between="epoch"))


def test_ranges_are_scopes(make_rocprof, imported):
    """A range around a launch is where its kernel is."""
    trace = make_rocprof.Trace()
    for turn, name in enumerate(("attention", "ffn")):
        zero = 10_000 * turn
        trace.range(name, zero, zero + 5_000)
        trace.kernel("gemm", zero + 6_000, zero + 9_000, trace.call("hipLaunchKernel", zero + 1_000, zero + 2_000))
    profile = imported(trace.write())
    assert [profile.scopes[op.scope] for op in profile.ops] == ["attention", "ffn"]


def test_rccl_is_communication(make_rocprof):
    """6 µs, of which a kernel on another stream hides 2."""
    trace = make_rocprof.Trace()
    trace.kernel("ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)", 0, 6_000, stream=3)
    trace.kernel("gemm", 0, 2_000)
    found = gpu.read(reader.read(trace.write()), Costs())
    assert (found.communication, found.exposed) == (pytest.approx(6e-6), pytest.approx(4e-6))


def test_a_product_that_is_not_known_has_no_ceilings(make_rocprof, imported):
    trace = make_rocprof.Trace(product="AMD Instinct MI9000X")
    trace.kernel("a", 0, 1_000)
    profile = imported(trace.write())
    assert (profile.device.name, profile.device.ceilings, profile.device.kind) == ("AMD Instinct MI9000X", {}, "rocm")
    with pytest.raises(InputError, match=r"is the trace of an AMD GPU, and .* is an NVIDIA GPU"):
        imported(trace.write(), device="h100-sxm")


def test_two_gpus_of_a_process_count_as_one(make_rocprof, imported):
    trace = make_rocprof.Trace()
    trace.kernel("a", 0, 1_000)
    trace.kernel("a", 500, 2_000, agent=make_rocprof.OTHER_GPU)
    profile = imported(trace.write())
    assert profile.imported.busy == pytest.approx(2e-6)
    assert any(text.startswith("kernels and copies of 2 devices (0, 1)") for text in profile.imported.warnings)


def test_several_files_are_no_ranks(make_rocprof, tmp_path):
    """Nothing in them says which rank each is of."""
    paths = [tmp_path / "1_results.json", tmp_path / "2_results.json"]
    for path in paths:
        path.write_bytes(make_rocprof.stepped(2).write())
    with pytest.raises(InputError, match=r"1_results\.json does not name its rank: import it by itself"):
        importing.read(paths)
