"""Imported traces: steps chosen, ops counted, kernels without an op, graphs, checkpoints; figures of real traces.

The synthetic step of tests/data/make_kineto.py is three steps of 900 µs, one every 1000 µs: on the device 1000 µs from
one to the next, of which 441 are busy. The first step of several is left out.
"""

from __future__ import annotations

import csv
import dataclasses
import json
from functools import cache

import numpy as np
import pytest

pytest.importorskip("torch")

from roofline import importing
from roofline.analysis.analysis import analyze_timed
from roofline.content.facts import doubts
from roofline.errors import InputError, MeasurementError
from roofline.importing import capture as imported_capture
from roofline.importing import collectives, cpu, gpu, unclaimed
from roofline.importing.work.costs import Costs
from roofline.traces.kineto import links, reader


def read(source, *captures):
    return gpu.read(reader.read(source), Costs(), [reader.read(capture) for capture in captures])


#: Of the recorded traces, which tests do not change.
read_once = cache(read)


def rows(found):
    """(name, class, quality, mean own time [µs]) of each row that ran, in order."""
    counted, own = found.counted, found.timed.own.mean(axis=1) * 1e6
    return [
        (name, op.costed.op_class, op.costed.cost.quality, round(float(own[row]), 6))
        for row, (name, op) in enumerate(zip(counted.names_of_ops, counted.ops, strict=True))
        if own[row]
    ]


def closes(found):
    """Busy and idle time of every kept step add up to its window, to rounding."""
    timed = found.timed
    busy = timed.own.mean(axis=1).sum() - timed.overlap.sum()
    assert busy + timed.idle.mean() == pytest.approx(timed.walls.mean(), rel=1e-9)


# Steps


def test_steps_but_the_first(make_kineto):
    found = read(make_kineto.training().write())
    assert (len(found.steps), found.steps.source, found.chosen.selected) == (3, "roofline:step#", (1, 2))
    assert found.timed.walls == pytest.approx([1e-3, 1e-3])
    assert found.timed.idle == pytest.approx([(1000 - 441) * 1e-6] * 2)
    assert found.timed.joined == 1
    assert found.warnings == ()
    closes(found)


def test_of_many_steps_the_first_are_looked_at(make_kineto, monkeypatch):
    monkeypatch.setattr(gpu, "MOST_STEPS", 4)
    found = read(make_kineto.training(6).write())
    assert (len(found.steps), found.chosen.selected) == (6, (1, 2, 3))
    assert found.timed.walls == pytest.approx([1e-3] * 3)
    assert found.warnings == ("2 steps left out: after the first 4",)
    closes(found)


def test_the_whole_trace_is_one_step_from_its_first_device_event_to_its_last(make_kineto):
    # Of one step the device works from 110 to 860.
    found = read(make_kineto.training(1).write())
    assert found.timed.walls == pytest.approx([750e-6])
    assert found.timed.idle == pytest.approx([(750 - 441) * 1e-6])
    assert (found.figures.span, found.figures.busy) == pytest.approx((750e-6, 441e-6))
    closes(found)


def test_a_step_that_does_something_else_is_left_out(make_kineto):
    made = make_kineto.Trace()
    for number, name in enumerate(["aten::relu", "aten::relu", "aten::exp", "aten::relu"]):
        zero = 100 * number
        made.annotation(f"ProfilerStep#{number}", zero, zero + 90)
        for start, op, length in ((5, "aten::tanh", 8), (20, name, 50)):
            made.op(op, zero + start, zero + start + 9, make_kineto.H)
            made.launch(op, zero + start + 1, zero + start + 10, zero + start + 10 + length)
    found = read(made.write())
    assert (found.chosen.selected, found.chosen.counted) == ((1, 3), 3)
    assert found.warnings == ("1 step left out: other ops than in the counted step",)
    assert [row[0] for row in rows(found)] == ["aten::tanh", "aten::relu"]
    closes(found)


def test_the_counted_step_does_what_most_steps_do(make_kineto):
    made = make_kineto.Trace()
    kinds = [("aten::relu", 50), ("aten::relu", 50), ("aten::exp", 51), ("aten::relu", 52)]
    for number, (name, length) in enumerate(kinds):  # the odd one takes the median time
        zero = 100 * number
        made.annotation(f"ProfilerStep#{number}", zero, zero + 90)
        made.op(name, zero + 20, zero + 29, make_kineto.H)
        made.launch(name, zero + 21, zero + 30, zero + 30 + length)
    found = read(made.write())
    assert found.counted.names_of_ops == ("aten::relu",)
    assert found.chosen.selected == (1, 3)


def test_a_step_far_slower_than_the_others_is_left_out(make_kineto):
    made = make_kineto.training(5)
    made.launch("late", 3890, 3990, 4850)  # step 3 ends 990 µs late
    found = read(made.write())
    assert found.chosen.selected == (1, 2)  # of the last one 10 µs are left
    assert found.warnings[0] == "2 steps left out: far longer or shorter than the others"


def test_of_two_steps_far_apart_none_is_an_outlier(make_kineto):
    # The first of three is left out; the others take 100 and 400 µs: there are no others that they are far from.
    made = make_kineto.Trace()
    for number, (start, end) in enumerate([(0, 90), (100, 190), (200, 590)]):
        made.annotation(f"ProfilerStep#{number}", start, end)
        for begin in (start + 10, end - 15):
            made.op("aten::relu", begin - 5, begin - 1, make_kineto.H)
            made.launch("relu", begin - 4, begin, begin + 8)
    found = read(made.write())
    assert (found.chosen.selected, found.chosen.counted, found.chosen.dropped) == ((1, 2), 2, 0)
    closes(found)


def test_steps_that_overlap_on_two_streams_add_up(make_kineto):
    made = make_kineto.Trace()
    for number in range(4):
        zero = 100 * number
        made.annotation(f"ProfilerStep#{number}", zero, zero + 99)
        made.op("aten::relu", zero + 5, zero + 20, make_kineto.H)
        made.launch("first", zero + 6, zero + 30, zero + 130, stream=9)
        made.op("aten::tanh", zero + 22, zero + 40, make_kineto.H)
        made.launch("second", zero + 23, zero + 40, zero + 60)
    found = read(made.write())
    # Windows end at 130, 230, ... Each holds 100 µs of "first" and 20 of "second", of the next step's as well.
    assert found.timed.walls == pytest.approx([100e-6] * 3)
    assert found.timed.idle == pytest.approx([0] * 3)
    closes(found)


def test_steps_without_all_their_launches_are_left_out(make_kineto):
    made = make_kineto.training(4)
    for number in (1, 2):
        made.kernel("from before", 1000 * number + 745, 1000 * number + 748, correlation=7)
    found = read(made.write())
    assert found.chosen.selected == (3,)
    assert found.warnings == ("2 steps left out: not all launches and kernels are in the trace",)


@pytest.mark.parametrize(("lacking", "kept"), [((2,), (1, 3)), ((1, 2, 3), (1, 2, 3))])
def test_steps_whose_kernels_were_lost_are_left_out_and_told(make_kineto, lacking, kept):
    """Some steps launch a kernel that is not in the trace. Where no step is whole all are used."""
    made = make_kineto.training(4)
    for number in lacking:
        made.call("cudaLaunchKernel", 1000 * number + 500, 1000 * number + 502)
    found = read(made.write())
    assert found.chosen.selected == kept
    launches = "1 launch has" if len(lacking) == 1 else "3 launches have"
    lost = f"{launches} no kernel in the trace, which lost them: what ran then looks idle; record fewer steps"
    assert lost in found.warnings
    # Where as many kernels are joined to no launch they may be those.
    for number in lacking:
        made.kernel("of nobody", 1000 * number + 745, 1000 * number + 748, correlation=7)
    assert not any("which lost them" in one for one in read(made.write()).warnings)
    for _ in lacking:
        made.events.pop()
    # Where a graph is captured a launch is recorded and does not run.
    made.call("cudaStreamBeginCapture", 5, 6)
    assert lost not in read(made.write()).warnings


# Ops


def test_ops_have_classes_phases_and_work(make_kineto):
    found = read(make_kineto.training().write())
    told = {name: (op_class, quality) for name, op_class, quality, _ in rows(found)}
    assert told["aten::addmm"] == ("contraction", "exact")
    assert told["aten::_to_copy"][0] == "movement"
    assert told["c10d::allreduce_"][0] == "communication"
    phases = {name: int(phase) for name, phase in zip(found.counted.names_of_ops, found.counted.phase, strict=True)}
    assert (phases["aten::addmm"], phases["aten::mm"], phases["aten::_fused_adamw_"]) == (0, 1, 2)
    # The all-reduce lasts 120 µs, 80 of them beside the gradients of weight and bias.
    assert (found.communication, found.exposed) == pytest.approx((120e-6, 40e-6))


def test_user_annotations_are_scopes_and_phases(make_kineto):
    made = make_kineto.Trace()
    made.annotation("ProfilerStep#0", 0, 100)
    made.annotation("## model/a ##", 1, 40)
    made.annotation("layer", 10, 20)
    for start, name in ((2, "aten::relu"), (12, "aten::tanh")):
        made.op(name, start, start + 5, make_kineto.H)
        made.launch("k", start + 1, start + 10, start + 12)
    made.annotation("## optimizer ##", 50, 70)
    made.launch("apex::multi_tensor_apply_kernel<AdamFunctor>", 55, 60, 65)
    found = read(made.write())
    scopes = [found.counted.scopes[number] for number in found.counted.scope]
    assert scopes == ["model|a", "model|a/layer", "optimizer"]
    assert found.counted.phase.tolist() == [0, 0, 2]


@pytest.mark.parametrize(
    ("node", "op", "phase"),
    [
        ("CudnnConvolutionBackward", "aten::add", 1),  # of an engine without annotations of its own
        ("torch::autograd::AccumulateGrad", "aten::add_", 1),
        ("autograd::engine::evaluate_function: AddBackward0", "aten::add", 1),
        ("", "aten::threshold_backward", 1),  # no node says so, and it is the gradient of relu
        ("", "aten::add", 0),
        ("mylib::Backward", "aten::add", 0),
    ],
)
def test_what_the_engine_runs_and_what_is_a_gradient_is_backward(make_kineto, node, op, phase):
    made = make_kineto.Trace()
    made.op("aten::relu", 5, 15, make_kineto.H)
    made.launch("relu", 6, 20, 25)
    if node:
        made.op(node, 29, 41)
    made.op(op, 30, 40, make_kineto.H, make_kineto.H)
    made.launch("k", 31, 45, 50)
    found = read(made.write())
    assert dict(zip(found.counted.names_of_ops, found.counted.phase.tolist(), strict=True)) == {
        "aten::relu": 0,
        op: phase,
    }


def test_a_kernel_launched_outside_any_op_is_a_row_with_the_class_of_its_name(make_kineto):
    made = make_kineto.training()
    for number in range(3):
        zero = number * make_kineto.PERIOD
        made.launch("my_softmax_kernel", zero + 542, zero + 550, zero + 560)
    found = read(made.write())
    assert ("my_softmax_kernel", "softmax", "unknown", 10) in rows(found)
    assert found.timed.joined == 1  # it has a row in every step
    closes(found)


def test_an_unknown_op_gives_way_to_none_inside_it(make_kineto):
    made = make_kineto.Trace()
    made.annotation("ProfilerStep#0", 0, 100)
    made.op("mylib::fused_rms_norm", 2, 20, make_kineto.H)
    made.launch("rms_norm_kernel", 4, 20, 24)
    found = read(made.write())
    assert rows(found) == [("mylib::fused_rms_norm", "normalisation", "unknown", 4)]


def test_what_a_checkpoint_computes_again_is_not_asked_for(make_kineto):
    made = make_kineto.Trace()
    made.annotation("ProfilerStep#0", 0, 200)
    evaluate = "autograd::engine::evaluate_function: "

    def mm(start, tid):
        made.op("aten::mm", start, start + 5, make_kineto.X, make_kineto.WT, tid=tid)
        made.launch("gemm", start + 1, start + 100, start + 103, tid=tid)

    mm(2, make_kineto.MAIN)
    made.op(f"{evaluate}CheckpointFunctionBackward", 20, 60, tid=make_kineto.AUTOGRAD)
    made.op("CheckpointFunctionBackward", 21, 59, tid=make_kineto.AUTOGRAD)
    mm(25, make_kineto.AUTOGRAD)  # again
    made.op(f"{evaluate}MmBackward0", 35, 50, tid=make_kineto.AUTOGRAD)
    mm(40, make_kineto.AUTOGRAD)
    found = read(made.write())
    work = 2 * 32 * 256 * 512
    costs = [op.costed.cost for op in found.counted.ops]
    assert [cost.flops for cost in costs] == [work] * 3
    assert [cost.model_flops for cost in costs] == [work, 0, work]


def numbered_products(make_kineto, own):
    """A product forward; in its backward node one that has a number of that thread, and the gradient's with `own`."""
    made = make_kineto.Trace()
    made.annotation("ProfilerStep#0", 0, 200)

    def mm(start, tid, sequence):
        numbers = {} if sequence is None else {"Sequence number": sequence}
        made.op("aten::mm", start, start + 5, make_kineto.X, make_kineto.WT, tid=tid, **numbers)
        made.launch("gemm", start + 1, start + 100, start + 103, tid=tid)

    for start in (2, 10):
        made.annotation(f"layer.{start}", start - 1, start + 6)
    mm(2, make_kineto.MAIN, 0)
    mm(10, make_kineto.MAIN, 1)
    node = {"tid": make_kineto.AUTOGRAD, "Sequence number": 1, "Fwd thread id": 1}
    made.op("autograd::engine::evaluate_function: MmBackward0", 20, 60, **node)
    made.op("MmBackward0", 21, 59, **node)
    mm(25, make_kineto.AUTOGRAD, 0)
    mm(40, make_kineto.AUTOGRAD, own)
    found = read(made.write())
    return [(op.costed.cost.model_flops, op.costed.cost.flops) for op in found.counted.ops], [
        found.counted.scopes[scope] for scope in found.counted.scope.tolist()
    ]


def test_a_call_that_makes_a_node_inside_of_one_that_makes_none_is_not_asked_for(make_kineto):
    """Numbers are a thread's own: that of what runs again says nothing of the forward call that has it too."""
    work = 2 * 32 * 256 * 512
    costs, scopes = numbered_products(make_kineto, None)
    assert costs == [(work, work), (work, work), (0, work), (work, work)]
    assert scopes == ["layer.2", "layer.10", "layer.10", "layer.10"]


def test_a_node_that_is_differentiated_again_asks_for_all_of_its_products(make_kineto):
    work = 2 * 32 * 256 * 512
    costs, _ = numbered_products(make_kineto, 1)
    assert costs == [(work, work)] * 4


def test_kernels_with_repeated_ids_are_joined_to_nothing_and_told(make_kineto):
    text = dict(make_kineto.damaged(make_kineto.training().write()))["one correlation for ten"]
    found = read(text)
    damaged = links.link(reader.read(text)).damaged
    assert damaged >= 10
    told = f"{damaged} device events were joined to no launch, because ids are repeated or contradictory"
    assert told in found.warnings
    closes(found)


def test_collectives_that_are_not_kept_are_told(make_kineto, monkeypatch):
    """Three in each of three steps, one of them the model's, of which five are kept, and one before the first step."""
    monkeypatch.setattr(collectives, "MOST", 5)
    made = make_kineto.training()
    for start in (-300, *(made_at + step * make_kineto.PERIOD for step in range(3) for made_at in (840, 850))):
        made.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", start, start + 21, start + 25)
    found = read(made.write())
    assert len(found.collectives.message) == 5
    (told,) = (text for text in found.warnings if "collectives" in text)
    assert "of 9 collectives the first 5" in told


def test_events_joined_by_their_id_alone_are_told(make_kineto):
    trace = json.loads(dict(make_kineto.damaged(make_kineto.training(1).write()))["no correlation"])
    for event in trace["traceEvents"]:
        if event["cat"] == "cuda_runtime":
            event["args"].pop("External id", None)
    found = read(json.dumps(trace).encode())
    assert "10 device events joined to an op by External id alone, without a launch that confirms it" in found.warnings


def test_several_processes_in_one_file_are_told_and_not_mixed(make_kineto):
    trace = json.loads(make_kineto.training(1).write())
    events = trace["traceEvents"]
    other = [
        event | {"pid": 1 if event["cat"] in ("kernel", "gpu_memcpy") else 200, "ts": event["ts"] + 20}
        for event in events
    ]
    found = read(json.dumps(trace | {"traceEvents": events + other}).encode())
    device = len(reader.read(json.dumps(trace).encode()).device)
    assert found.warnings[-3:] == (
        f"{2 * device} device events were joined to no launch, because ids are repeated or contradictory",
        f"launches of several processes share the ids of {2 * device} of them: import one trace for each process",
        "kernels and copies of 2 devices (0, 1) are in this trace: they count as one device, which is busy while any "
        "of them is, under the ceilings of one",
    )
    assert found.figures.linked == 0
    assert {row[2] for row in rows(found) if not row[0].startswith("Memcpy")} <= {"unknown"}
    closes(found)


def test_a_kernel_whose_ids_are_damaged_has_no_twin(make_kineto):
    made = make_kineto.Trace()
    for at in (0, 100, 200):
        made.op("aten::mm", at, at + 10, make_kineto.X, make_kineto.WT)
        made.launch("gemm", at + 1, at + 20, at + 30)
    made.events[-1]["args"]["correlation"] = made.correlation - 1
    found = read(made.write().replace(b'"External id"', b'"Nothing"'))
    assert rows(found) == [("aten::mm", "contraction", "exact", 10), ("gemm", "contraction", "unknown", 20)]
    assert found.counted.ops[-1].costed.cost.note.startswith("its ids are repeated")
    assert [found.counted.scopes[n] for n in found.counted.scope][-1] == "(not joined to a launch)"


def test_a_kernel_without_a_duration_has_no_work_to_hold_against_it(make_kineto):
    trace = json.loads(make_kineto.training().write())
    gemms = [event for event in trace["traceEvents"] if "gemm_f32f32_tn" in event["name"]]
    gemms[-1]["dur"] = -5
    found = read(json.dumps(trace).encode())
    costs = {name: op.costed for name, op in zip(found.counted.names_of_ops, found.counted.ops, strict=True)}
    assert costs["aten::addmm"].cost.quality == "unknown"
    assert costs["aten::addmm"].cost.note == "a kernel of it has no duration in the trace"
    assert costs["aten::addmm"].op_class == "contraction"
    assert costs["aten::gelu"].cost.quality == "exact"
    closes(found)


def test_unknown_ops_without_a_duration_stay_apart(make_kineto):
    """Each has arguments of its own, whatever is done to its work and its class on the way into the profile."""
    made = make_kineto.Trace()
    for number in range(8):
        at = 100 * number
        made.op("aten::_linalg_svd", at, at + 40, ([number + 1, 256], "float", [256, 1]))
        made.launch("gemm", at + 10, at + 50, at + 60)
    trace = json.loads(made.write())
    kernels = [event for event in trace["traceEvents"] if event["cat"] == "kernel"]
    for event in kernels[1:]:  # a trace without any time is refused
        event["dur"] = 0
    ops = [op.costed for op in read(json.dumps(trace).encode()).counted.ops]
    assert [costed.shapes for costed in ops] == [f"[{number + 1},256]" for number in range(8)]
    assert {(costed.op_class, costed.cost.quality) for costed in ops} == {("contraction", "unknown")}


# Launched before the trace


def test_a_kernel_launched_before_the_trace_gets_the_work_of_its_twin(make_kineto):
    made = make_kineto.Trace()
    made.kernel("gemm", 0, 10, correlation=1)
    made.kernel("gemm", 10, 20, correlation=2)
    made.kernel("gemm", 20, 30, correlation=3, grid=(7, 7, 7))  # of another size
    made.kernel("other", 30, 40, correlation=4)
    made.op("aten::mm", 35, 45, make_kineto.X, make_kineto.WT)
    made.launch("gemm", 36, 50, 62)
    found = read(made.write())
    assert rows(found) == [
        ("aten::mm", "contraction", "exact", 12),
        ("aten::mm", "contraction", "assumed", 10),
        ("aten::mm", "contraction", "assumed", 10),
        ("gemm", "contraction", "unknown", 10),
        ("other", "other", "unknown", 10),
    ]
    twin = found.counted.ops[1].costed.cost
    assert twin.flops == 2 * 32 * 256 * 512
    assert twin.note == "launched before the window; its twin's work"
    assert found.timed.joined == pytest.approx(32 / 52)
    closes(found)


@pytest.mark.parametrize("marked", [True, False])
def test_what_a_lone_marked_step_finds_in_the_queue_is_of_the_step_before(make_kineto, marked):
    """Two kernels that end before its own one begins, and one that does not."""
    made = make_kineto.Trace()
    made.kernel("gemm", 0, 10, correlation=1)
    made.kernel("gemm", 10, 20, correlation=2)
    made.kernel("other", 40, 60, correlation=3)
    if marked:
        made.annotation("ProfilerStep#6", 5, 70)
    made.op("aten::mm", 35, 45, make_kineto.X, make_kineto.WT)
    made.launch("gemm", 36, 50, 62)
    found = read(made.write())
    assert found.timed.walls[0] == pytest.approx(42e-6 if marked else 62e-6)  # from 20, or 0, to 62
    assert len(found.counted.ops) == (2 if marked else 4)
    told = "Left out 2 device events from before the step"
    assert (told in found.warnings) == marked
    closes(found)


def test_several_kernels_of_one_call_are_one_row(make_kineto):
    made = make_kineto.Trace()
    for number in range(4):  # two calls of two kernels each
        made.kernel("part", 10 * number, 10 * number + 10, correlation=1 + number)
    made.op("aten::mm", 35, 48, make_kineto.X, make_kineto.WT)
    made.launch("part", 36, 50, 60)
    made.launch("part", 41, 60, 70)
    assert rows(read(made.write())) == [
        ("aten::mm", "contraction", quality, 20) for quality in ("exact", *["assumed"] * 2)
    ]


def test_kernels_of_ops_of_different_work_have_no_twin(make_kineto):
    made = make_kineto.Trace()
    made.kernel("gemm", 0, 10, correlation=1)
    for start, second in ((35, make_kineto.WT), (50, ([256, 64], "float", [64, 1]))):
        made.op("aten::mm", start, start + 8, make_kineto.X, second)
        made.launch("gemm", start + 1, start + 20, start + 25)
    assert rows(read(made.write()))[-1] == ("gemm", "contraction", "unknown", 10)


# Graphs


def launch_graph(made, at, kernels, start):
    """A replay of `kernels`, 10 µs each, back to back."""
    correlation = made.call("hipGraphLaunch", at, at + 5)
    for number, name in enumerate(kernels):
        made.kernel(name, start + 10 * number, start + 10 * number + 10, correlation)
    return correlation


def capture(make_kineto, calls, named=True):
    """The trace of a capture: (op, its first tensor, second tensor or None, kernels that it launches) in order."""
    return captures(make_kineto, [calls], named)


def captures(make_kineto, several, named=True, fills=False, **launched):
    """The trace of several captures, one after the other. fills: each begins with a fill that no op asked for.

    launched: what HIP records with a launch beside the kernel's name, a list with one value per capture each.
    """
    made = make_kineto.Trace()
    time = 0
    for number, calls in enumerate(several):
        made.call("hipStreamBeginCapture", time, time + 2)
        if fills:
            made.call("cudaMemsetAsync", time + 4, time + 6)
        time += 10
        for op, *tensors, kernels in calls:
            made.op(op, time, time + 4 + 4 * len(kernels), *[tensor for tensor in tensors if tensor])
            for place, kernel in enumerate(kernels):
                made.call(
                    "hipLaunchKernel" if named else "cudaLaunchKernel", time + 2 + 4 * place, time + 5 + 4 * place
                )
                if named:
                    made.events[-1]["args"]["kernel"] = kernel
                made.events[-1]["args"] |= {key: values[number] for key, values in launched.items()}
            time += 40
        made.call("hipStreamEndCapture", time, time + 2)
        time += 10
    return made.write()


def replayed(make_kineto, steps=3):
    made = make_kineto.Trace()
    for number in range(steps):
        zero = 100 * number
        made.annotation(f"ProfilerStep#{number}", zero, zero + 95)
        launch_graph(made, zero + 5, ["Cijk_gemm", "gelu_a", "gelu_b"], zero + 20)
    return made.write()


def test_a_replay_without_its_capture_has_classes_by_name(make_kineto):
    found = read(replayed(make_kineto))
    assert rows(found) == [
        ("Cijk_gemm", "contraction", "unknown", 10),
        ("gelu_a", "pointwise", "unknown", 10),
        ("gelu_b", "pointwise", "unknown", 10),
    ]
    assert (found.timed.graph_launches, found.timed.unattributed, found.timed.joined) == (1, 3, 0)
    assert found.counted.ops[1].costed.cost.note.startswith("replayed from a graph")
    closes(found)


@pytest.mark.parametrize("named", [True, False])
def test_a_replay_with_its_capture_has_its_ops(make_kineto, named):
    text = capture(
        make_kineto,
        [
            ("aten::mm", make_kineto.X, make_kineto.WT, ["Cijk_gemm(args).kd"]),
            ("aten::relu", make_kineto.H, None, ["gelu_a", "gelu_b"]),
        ],
        named,
    )
    found = read(replayed(make_kineto), text)
    quality = "exact" if named else "assumed"
    assert rows(found) == [("aten::mm", "contraction", quality, 10), ("aten::relu", "pointwise", quality, 20)]
    mm = next(op.costed.cost for op in found.counted.ops if op.costed.cost.flops)
    assert mm.flops == 2 * 32 * 256 * 512
    assert (found.timed.unattributed, found.timed.joined) == (0, 1)
    assert found.warnings == (
        ()
        if named
        else ("the capture does not name its kernels, so replays were matched by number and order of kernels",)
    )


def test_a_triton_kernel_that_a_graph_replays_has_the_work_of_its_capture(make_kineto):
    """A product of 32 rows, width 512, and its bias and activation in place: read, and read and written."""
    result, name = ([32, 512], "float", [512, 1]), "triton_poi_fused_addmm_relu_0"
    made = make_kineto.Trace()
    made.call("hipStreamBeginCapture", 0, 2)
    for time, op, tensors, kernel in (
        (10, "aten::mm", (make_kineto.X, make_kineto.WT, result), "Cijk_gemm"),
        (50, name, (result, ([512], "float", [1]), "16384"), name),
    ):
        made.op(op, time, time + 10, *tensors, kernel_backend="triton", kernel_kwargs="XBLOCK=256")
        made.call("hipLaunchKernel", time + 2, time + 5)
        made.events[-1]["args"]["kernel"] = kernel
    made.call("hipStreamEndCapture", 90, 92)
    text = made.write()
    made = make_kineto.Trace()
    for number in range(3):
        made.annotation(f"ProfilerStep#{number}", 100 * number, 100 * number + 95)
        launch_graph(made, 100 * number + 5, ["Cijk_gemm", name], 100 * number + 20)
    found = read(made.write(), text)
    assert rows(found) == [("aten::mm", "contraction", "exact", 10), (name, "pointwise", "assumed", 10)]
    cost = next(
        op.costed.cost for op, name_ in zip(found.counted.ops, found.counted.names_of_ops, strict=True) if name_ == name
    )
    assert (cost.flops, cost.bytes_read, cost.bytes_written) == (0, 4 * (32 * 512 + 512), 4 * 32 * 512)
    closes(found)


def test_a_capture_of_other_kernels_is_not_believed(make_kineto):
    text = capture(make_kineto, [("aten::mm", make_kineto.X, make_kineto.WT, ["a", "b", "c"])])
    found = read(replayed(make_kineto), text)
    assert {quality for _, _, quality, _ in rows(found)} == {"unknown"}
    assert found.warnings == ("3 of 3 graph launches have no capture of the same kernels",)


def test_who_gave_a_capture_is_not_told_to_give_one(make_kineto, tmp_path):
    misfit = capture(make_kineto, [("aten::mm", make_kineto.X, make_kineto.WT, ["a", "b", "c"])])
    files = {"replay": replayed(make_kineto), "eager": make_kineto.training().write(), "capture": misfit}
    for name, text in files.items():
        (tmp_path / name).write_bytes(text)
    (profile,) = importing.read([tmp_path / "replay"], capture=tmp_path / "capture")
    assert "replays-uncaptured: 3 kernels per step" in profile.flags
    assert not any("--capture" in text for text in (*profile.imported.notes, *doubts.cures(analyze_timed(profile))))
    (profile,) = importing.read([tmp_path / "eager"], capture=tmp_path / "capture")
    assert any(note.startswith("No graph was replayed") for note in profile.imported.notes)


@pytest.mark.parametrize(
    ("kernels", "quality"),
    [
        (["at::vectorized_elementwise_kernel<4>"] * 3, "unknown"),  # no kernel of theirs multiplies
        (["Cijk_gemm", "at::vectorized_elementwise_kernel<4>", "splitKreduce"], "unknown"),
        (["Cijk_gemm", "some kernel", "splitKreduce"], "assumed"),  # a name that tells nothing may be of a product
    ],
)
def test_products_that_launch_no_kernel_of_a_product_are_not_believed(make_kineto, kernels, quality):
    product = ("aten::mm", make_kineto.X, make_kineto.WT, [""])
    made = make_kineto.Trace()
    launch_graph(made, 5, kernels, 20)
    found = read(made.write(), capture(make_kineto, [product] * 3, named=False))
    assert {of_row for _, _, of_row, _ in rows(found)} == {quality}


def test_captures_of_two_threads_are_told_apart(make_kineto):
    """A capture ends with its thread's next end, or where the thread begins another: the end of the first is lost."""
    made = make_kineto.Trace()
    calls = [(0, "Begin", 1), (10, "a", 1), (20, "Begin", 2), (30, "b", 2), (40, "Begin", 1), (50, "c", 1)]
    for start, name, thread in [*calls, (60, "End", 2), (70, "d", 2), (80, "e", 1), (90, "End", 1)]:
        made.call("hipLaunchKernel" if name.islower() else f"hipStream{name}Capture", start, start + 5, thread)
        made.events[-1]["args"]["kernel"] = name
    assert [part.names for part in imported_capture.segments(reader.read(made.write()))] == [("a",), ("b",), ("c", "e")]


def test_all_kernels_of_a_capture_have_what_is_known_of_them(make_kineto):
    """Generated kernels, ops of libraries, others."""
    x, out = ([4, 8], "float", [8, 1]), ([4, 4], "float", [4, 1])
    text = capture(
        make_kineto,
        [
            ("triton_poi_fused_relu_0", x, x, ["triton_poi_fused_relu_0"]),
            ("sgl_kernel::silu_and_mul", out, x, ["act_and_mul"]),
            ("mine::opaque", x, None, ["gelu_x"]),
            ("TopK", x, None, ["topk_kernel"]),
        ],
    )
    made = make_kineto.Trace()
    launch_graph(made, 5, ["triton_poi_fused_relu_0", "act_and_mul", "gelu_x", "topk_kernel"], 20)
    found = read(made.write(), text)
    assert rows(found) == [
        ("triton_poi_fused_relu_0", "pointwise", "assumed", 10),
        ("sgl_kernel::silu_and_mul", "pointwise", "exact", 10),
        ("mine::opaque", "pointwise", "unknown", 10),
        ("TopK", "other", "unknown", 10),
    ]
    costs = [op.costed.cost for op in found.counted.ops[1:]]
    assert [cost.bytes for cost in costs] == [2 * 4 * 8 * 4, 4 * (4 * 8 + 4 * 4), None, None]
    assert found.timed.joined == 1
    assert not any("--capture" in cost.note for cost in costs)
    closes(found)


def test_a_launch_outside_of_any_op_in_a_capture_is_itself(make_kineto):
    made = make_kineto.Trace()
    made.call("hipStreamBeginCapture", 0, 2)
    made.call("hipLaunchKernel", 12, 15)
    made.events[-1]["args"]["kernel"] = "gelu_x"
    made.op("aten::relu", 20, 30, make_kineto.H)
    made.call("hipLaunchKernel", 22, 25)
    made.events[-1]["args"]["kernel"] = "relu_x"
    made.call("hipStreamEndCapture", 95, 97)
    text = made.write()
    made = make_kineto.Trace()
    launch_graph(made, 5, ["gelu_x", "relu_x"], 20)
    found = read(made.write(), text)
    assert rows(found) == [("gelu_x", "pointwise", "unknown", 10), ("aten::relu", "pointwise", "exact", 10)]
    assert found.counted.ops[1].costed.cost.note == unclaimed.OUTSIDE


def test_a_trace_may_hold_the_capture_of_what_it_replays(make_kineto):
    made = make_kineto.Trace()
    made.call("hipStreamBeginCapture", 0, 2)
    made.op("aten::relu", 10, 20, make_kineto.H)
    made.call("hipLaunchKernel", 12, 15)
    made.events[-1]["args"]["kernel"] = "relu_x"
    made.call("hipStreamEndCapture", 30, 32)
    launch_graph(made, 40, ["relu_x"], 50)
    launch_graph(made, 70, ["other"], 80)
    found = read(made.write())
    assert [row[:3] for row in rows(found)] == [
        ("aten::relu", "pointwise", "exact"),
        ("other", "other", "unknown"),
    ]


def test_whoever_gave_a_capture_is_not_advised_to_give_one(make_kineto):
    found = read(replayed(make_kineto), capture(make_kineto, [("aten::relu", make_kineto.H, None, ["other"])]))
    notes = {op.costed.cost.note for op in found.counted.ops[1:]}
    assert len(notes) == 1
    assert "--capture" not in notes.pop()


def test_captured_attention_has_the_keys_of_the_step_that_replays_it(make_kineto):
    # aiter's, of two sequences: 4 query heads and 2 of keys of 8 bf16 numbers, from a pool of 50 pages of one token.
    q, pool = ([2, 4, 8], "c10::BFloat16", [32, 8, 1]), ([50, 1, 2, 8], "c10::BFloat16", [16, 16, 8, 1])
    made = make_kineto.Trace()
    made.call("hipStreamBeginCapture", 0, 2)
    made.annotation("execute_2_context_0(sq0sk0sqsq0sqsk0)_generation_2(sq2sk2sqsq2sqsk2)", 3, 90)
    made.op("aiter::paged_attention_ragged", 10, 30, q, ([9], "unsigned char", [1]), q, pool, pool)
    made.call("hipLaunchKernel", 12, 15)
    made.events[-1]["args"]["kernel"] = "paged_attention_kernel"
    made.call("hipStreamEndCapture", 95, 97)
    text = made.write()
    made = make_kineto.Trace()
    for number, keys in enumerate([20, 30, 40]):
        zero = 100 * number
        name = f"generation_2(sq2sk{keys}sqsq2sqsk{keys})"
        made.annotation(f"execute_2_context_0(sq0sk0sqsq0sqsk0)_{name}", zero, zero + 90)
        launch_graph(made, zero + 5, ["paged_attention_kernel"], zero + 20)
    found = read(made.write(), text)
    # The counted step is one of the three, its keys those of its own annotation, whatever was captured.
    chosen = [20, 30, 40][found.chosen.counted]
    cost = next(op.costed.cost for op in found.counted.ops if op.costed.cost.flops)
    assert (cost.flops, cost.bytes_read) == (4 * chosen * 2 * 16, 2 * (2 * 4 * 8 + 2 * chosen * 2 * 8))


def test_a_trace_without_a_capture_is_refused_as_one(make_kineto):
    with pytest.raises(InputError, match="holds no captured graph"):
        read(replayed(make_kineto), make_kineto.training(1).write())
    with pytest.raises(InputError, match="holds no captured graph"):  # nor one that launches nothing
        read(
            replayed(make_kineto), b'[{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]'
        )


def products(make_kineto, rows):
    """The calls of a capture: a product of so many rows, and what follows it."""
    x, h = ([rows, 256], "float", [256, 1]), ([rows, 512], "float", [512, 1])
    return [("aten::mm", x, make_kineto.WT, ["Cijk_gemm"]), ("aten::relu", h, None, ["gelu_a", "gelu_b"])]


@pytest.mark.parametrize("named", [True, False])
def test_of_captures_of_other_shapes_none_is_believed(make_kineto, named):
    # One capture for each size of the batch launches the same kernels: which was replayed is not recorded.
    text = captures(make_kineto, [products(make_kineto, rows) for rows in (128, 32)], named)
    found = read(replayed(make_kineto), text)
    assert {quality for _, _, quality, _ in rows(found)} == {"unknown"}
    assert found.counted.ops[1].costed.cost.note.startswith("replayed from a graph of which captures with other shapes")
    assert found.warnings == (
        "3 of 3 graph launches fit several captures of different shapes, and the trace does not say which was "
        "replayed, so their work is unknown: capture only the batch size that runs",
    )


def test_captures_of_the_same_shapes_are_all_the_same(make_kineto):
    text = captures(make_kineto, [products(make_kineto, 32)] * 2)
    found = read(replayed(make_kineto), text)
    assert rows(found) == [("aten::mm", "contraction", "exact", 10), ("aten::relu", "pointwise", "exact", 20)]
    assert found.warnings == ()


def test_captures_in_files_of_their_own(make_kineto):
    # One file per size of the batch, of which one runs the kernels of the replay.
    other = [("aten::relu", make_kineto.H, None, ["other"])]
    found = read(replayed(make_kineto), capture(make_kineto, other), capture(make_kineto, products(make_kineto, 32)))
    assert [row[:3] for row in rows(found)] == [
        ("aten::mm", "contraction", "exact"),
        ("aten::relu", "pointwise", "exact"),
    ]
    assert found.warnings == ()
    mm = next(op.costed.cost for op in found.counted.ops if op.costed.cost.flops)
    assert mm.flops == 2 * 32 * 256 * 512
    with pytest.raises(InputError, match="holds no captured graph"):
        read(replayed(make_kineto), capture(make_kineto, other), make_kineto.training(1).write())


@pytest.mark.parametrize(("tokens", "rows_of"), [(30, 32), (32, 32), (33, 128), (200, None)])
def test_tokens_of_the_step_tell_captures_apart(make_kineto, tokens, rows_of):
    # Captured for 128 and for 32 tokens; a step with fewer is filled up to the next size.
    made = []
    for size in (128, 32):
        trace = json.loads(capture(make_kineto, products(make_kineto, size)))
        mark = make_kineto.Trace()
        mark.annotation(f"capture_{size}_decode", 0, 500)
        trace["traceEvents"] += json.loads(mark.write())["traceEvents"]
        made.append(json.dumps(trace).encode())
    step = make_kineto.Trace()
    for number in range(3):
        zero = 100 * number
        step.annotation(f"execute_context_0(0)_generation_{tokens}({tokens})", zero, zero + 95)
        launch_graph(step, zero + 5, ["Cijk_gemm", "gelu_a", "gelu_b"], zero + 20)
    found = read(step.write(), *made)
    flops = {op.costed.cost.flops for op in found.counted.ops if op.costed.cost.flops}
    assert flops == ({2 * rows_of * 256 * 512} if rows_of else set())


def test_grids_tell_captures_apart_where_both_traces_record_them(make_kineto):
    # The replayed kernels have 64 blocks of 128 threads, as those of the second capture.
    several = [products(make_kineto, rows) for rows in (128, 32)]
    sizes = {"grid": [[256, 1, 1], [64, 1, 1]], "block": [[128, 1, 1]] * 2}
    found = read(replayed(make_kineto), captures(make_kineto, several, **sizes))
    mm = next(op.costed.cost for op in found.counted.ops if op.costed.cost.flops)
    assert (mm.flops, mm.quality, found.warnings) == (2 * 32 * 256 * 512, "exact", ())
    sizes["grid"][1] = [63, 1, 1]
    found = read(replayed(make_kineto), captures(make_kineto, several, **sizes))
    assert found.warnings == ("3 of 3 graph launches have no capture of the same kernels",)


def test_captures_of_the_same_shapes_are_used_in_turn(make_kineto):
    # Two layers of one shape, captured one by one under their names, and replayed one after the other in each step.
    made = make_kineto.Trace()
    for number, time in enumerate((0, 100)):
        made.call("hipStreamBeginCapture", time, time + 2)
        made.annotation(f"layer{number}", time + 3, time + 30)
        made.op("aten::mm", time + 4, time + 20, make_kineto.X, make_kineto.WT)
        made.call("hipLaunchKernel", time + 6, time + 9)
        made.events[-1]["args"]["kernel"] = "Cijk_gemm"
        made.call("hipStreamEndCapture", time + 40, time + 42)
    text = made.write()
    made = make_kineto.Trace()
    for number in range(3):
        zero = 100 * number
        made.annotation(f"ProfilerStep#{number}", zero, zero + 95)
        launch_graph(made, zero + 5, ["Cijk_gemm"], zero + 20)
        launch_graph(made, zero + 12, ["Cijk_gemm"], zero + 40)
    found = read(made.write(), text)
    assert rows(found) == [("aten::mm", "contraction", "exact", 10)] * 2
    ran = [row for row, own in enumerate(found.timed.own.any(axis=1)) if own]
    assert [found.counted.scopes[found.counted.scope[row]] for row in ran] == ["layer0", "layer1"]
    closes(found)


def test_a_step_that_replays_a_graph_for_another_batch_is_left_out(make_kineto):
    x, h = ([64, 256], "float", [256, 1]), make_kineto.H
    text = captures(
        make_kineto,
        [[("aten::mm", make_kineto.X, make_kineto.WT, ["gemm_a"])], [("aten::mm", x, make_kineto.WT, ["gemm_b"])]],
    )
    made = make_kineto.Trace()
    for number, kernel in enumerate(("gemm_a", "gemm_a", "gemm_b", "gemm_a")):
        zero = 100 * number
        made.annotation(f"ProfilerStep#{number}", zero, zero + 95)
        made.op("aten::tanh", zero + 1, zero + 7, h)
        made.launch("tanh", zero + 2, zero + 10, zero + 20)
        launch_graph(made, zero + 8, [kernel], zero + 20)
    found = read(made.write(), text)
    assert sum(op.costed.cost.flops or 0 for op in found.counted.ops[-1:]) == 2 * 32 * 256 * 512
    assert [row[0] for row in rows(found)] == ["aten::tanh", "aten::mm"]
    assert found.chosen.selected == (1, 3)
    assert found.warnings == ("1 step left out: other ops than in the counted step",)


def test_a_fill_that_no_replay_records_is_passed_over(make_kineto):
    for named in (True, False):
        text = captures(make_kineto, [products(make_kineto, 32)], named, fills=True)
        found = read(replayed(make_kineto), text)
        quality = "exact" if named else "assumed"
        assert [row[:3] for row in rows(found)] == [
            ("aten::mm", "contraction", quality),
            ("aten::relu", "pointwise", quality),
        ]


def test_hip_fills_with_a_kernel_when_it_replays(make_kineto):
    text = captures(make_kineto, [products(make_kineto, 32)], fills=True)
    made = make_kineto.Trace()
    launch_graph(made, 5, ["__amd_rocclr_fillBufferAligned.kd", "Cijk_gemm", "gelu_a", "gelu_b"], 20)
    found = read(made.write(), text)
    assert [row[:3] for row in rows(found)][-2:] == [
        ("aten::mm", "contraction", "exact"),
        ("aten::relu", "pointwise", "exact"),
    ]
    assert found.warnings == ()


def test_by_number_alone_no_op_gets_kernels_that_it_does_not_launch(make_kineto):
    h = make_kineto.H
    calls = [("aten::relu", h, None, ["a"]), ("aten::tanh", h, None, ["b"]), ("aten::relu", h, None, ["c"])]
    found = read(replayed(make_kineto), capture(make_kineto, calls, named=False))
    assert found.warnings == ("3 of 3 graph launches have no capture of the same kernels",)  # of a gemm and two gelus


def test_work_that_a_capture_tells_is_no_work_without_shapes(make_kineto):
    assert read(replayed(make_kineto), capture(make_kineto, products(make_kineto, 32))).shapes
    bare = [("aten::mm", None, ["Cijk_gemm"]), ("aten::relu", None, ["gelu_a", "gelu_b"])]
    assert not read(changed(replayed(make_kineto), record_shapes=0), capture(make_kineto, bare)).shapes
    # Without a capture the trace itself says it.
    assert read(replayed(make_kineto)).shapes
    assert not read(changed(replayed(make_kineto), record_shapes=0)).shapes


def changed(text, **header):
    return json.dumps(json.loads(text) | header).encode()


def kernels(*what, sizes=None):
    return imported_capture.Kernels(np.arange(len(what)), what, sizes or (b"",) * len(what))


def fits(replay, *several):
    found = imported_capture.fitting([replay], list(several))[0]
    return [(fit.number, fit.place.tolist(), fit.of.tolist(), fit.named) for fit in found]


def test_which_captures_fit():
    one, other = kernels("a", "b"), kernels("a", "c")
    assert fits(one, one, other, one) == [(0, [0, 1], [0, 1], True), (2, [0, 1], [0, 1], True)]
    assert fits(kernels("a"), one) == []  # half of a capture is not a replay of it
    many = tuple("ab" * 50)
    whole = list(range(100))
    assert fits(kernels(*many), kernels(*many, "z")) == [(0, whole, whole, True)]  # one launch more of 100
    assert fits(kernels(*many), kernels(*many, "y", "z")) == []
    assert fits(kernels(*many), kernels(*many, "y"), kernels(*many, "z")) == []  # which of the two is not known
    assert fits(kernels("k", "memcpy"), kernels("", "memcpy"), kernels("memcpy", "")) == [(0, [0, 1], [0, 1], False)]
    assert fits(kernels("k", "memcpy"), kernels("memset", "k")) == [(0, [0], [1], True)]  # kernels alone
    assert fits(kernels("k", "memcpy"), kernels("memset", "k", "memcpy")) == [(0, [0, 1], [1, 2], True)]
    assert fits(kernels("k", "memset"), kernels("memcpy", "k", "memset")) == [(0, [0, 1], [1, 2], True)]
    assert fits(kernels("memcpy"), kernels("memset")) == []
    sized = kernels("a", "b", sizes=(b"[1,1,1]", b""))
    assert fits(sized, kernels("a", "b", sizes=(b"[2,1,1]", b"")), kernels("a", "b")) == [(1, [0, 1], [0, 1], True)]


def test_kernels_whose_names_differ_only_inside_are_different(make_kineto):
    name = "void at::native::(anonymous namespace)::{}<float>(float*)".format
    calls = [("aten::relu", make_kineto.H, None, [name("a")])]
    made = make_kineto.Trace()
    launch_graph(made, 5, [name("b")], 20)
    assert read(made.write(), capture(make_kineto, calls)).warnings == (
        "1 of 1 graph launches have no capture of the same kernels",
    )


# Traces without what a GPU's has


def test_a_trace_without_shapes_has_times_classes_and_no_work(make_kineto):
    trace = json.loads(make_kineto.training().write())
    for event in trace["traceEvents"]:
        for key in ("Input Dims", "Input type", "Input Strides", "Concrete Inputs"):
            event["args"].pop(key, None)
    found = read(json.dumps(trace).encode())
    assert not found.shapes
    told = {name: (op_class, quality) for name, op_class, quality, _ in rows(found)}
    assert told["aten::addmm"] == ("contraction", "unknown")
    assert told["aten::gelu"] == ("pointwise", "unknown")
    assert found.timed.idle == pytest.approx([(1000 - 441) * 1e-6] * 2)


def test_a_trace_of_kernels_alone(make_kineto):
    made = make_kineto.Trace()
    made.kernel("ampere_sgemm_128x64_tn", 0, 10, correlation=1)
    made.kernel("softmax_warp_forward", 20, 25, correlation=2)
    found = read(made.write())
    assert [row[:2] for row in rows(found)] == [
        ("ampere_sgemm_128x64_tn", "contraction"),
        ("softmax_warp_forward", "softmax"),
    ]
    assert found.timed.joined == 0
    closes(found)


def test_a_cpus_trace(make_kineto):
    made = make_kineto.Trace()
    for number in range(3):
        zero = 100 * number
        made.annotation(f"ProfilerStep#{number}", zero, zero + 90)
        made.op("aten::linear", zero + 9, zero + 60, make_kineto.X, make_kineto.W, make_kineto.B)
        made.op("aten::addmm", zero + 10, zero + 50, make_kineto.B, make_kineto.X, make_kineto.WT, "1", "1")
        made.op("aten::relu", zero + 61, zero + 70, make_kineto.H)
    found = cpu.read(reader.read(made.write()), Costs())
    assert found.counted.names_of_ops == ("aten::addmm", "aten::relu")
    assert found.timed.own == pytest.approx(np.array([[40e-6] * 3, [9e-6] * 3]))
    assert found.timed.walls == pytest.approx([90e-6] * 3)
    assert found.timed.idle == pytest.approx([41e-6] * 3)
    assert (found.timed.joined, found.timed.unseen, len(found.steps)) == (1, 0, 3)
    assert found.shapes


def test_a_trace_without_a_device_event_is_refused(make_kineto):
    made = make_kineto.Trace()
    made.op("aten::relu", 0, 5, make_kineto.H)
    with pytest.raises(MeasurementError, match="No kernel and no copy"):
        read(made.write())


def test_damaged_traces_are_refused_or_give_steps_that_add_up(damaged):
    _, data = damaged
    try:
        found = read(data)
    except (InputError, MeasurementError):
        return
    assert (found.timed.own >= 0).all()
    assert (found.timed.overlap >= -1e-12).all()
    closes(found)


# Recorded by others. Busy and idle time [ms] of all device events: worked out by scripts that share no code with this,
# and the CSV of another tool.

TABLES = {
    "a100_recsys_train.json.gz": (None, 76.0, 0.9847),
    "b200_eager.json.gz": (None, 72.9, 0.9995),
    "h100_bert_small_infer.json.gz": (0.309437744140625, 3.59838720703125, 1.0),
    "h100_qwen_0.5b_infer.json.gz": (45.65, None, 0.6989),
    "mi300x_bert_small_infer.json.gz": (0.39, None, 1.0),
    "mi300x_torch_compile_triton.json.gz": (12.55, None, 1.0),
    "mi300x_vllm_decode_graph.json.gz": (10.72, None, 0.0307),
    "v100_recsys_train.json.gz": (None, None, 0.9286),
}
#: Shares of kernel time whose work must be known at least (communication of known payload included).
KNOWN = {
    "a100_recsys_train.json.gz": 0.60,
    "h100_bert_small_infer.json.gz": 1.0,
    "h100_qwen_0.5b_infer.json.gz": 0.917,
    "mi300x_bert_small_infer.json.gz": 1.0,
    "mi300x_torch_compile_triton.json.gz": 1.0,
    "mi300x_vllm_decode_graph.json.gz": 0.030,
    "b200_eager.json.gz": 0.180,
    "v100_recsys_train.json.gz": 0.25,
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.thorough if name.startswith("v100") else ()) for name in TABLES]
)
def test_figures_of_recorded_traces(recorded, name):
    found = read_once(recorded(name))
    busy, idle, linked = TABLES[name]
    figures = found.figures
    if busy is not None:
        assert figures.busy * 1e3 == pytest.approx(busy, abs=0.006 if busy == round(busy, 2) else 1e-4)
    if idle is not None:
        assert (figures.span - figures.busy) * 1e3 == pytest.approx(idle, abs=0.06 if idle == round(idle, 1) else 1e-4)
    assert figures.linked >= linked - 1e-4
    own = found.timed.own.mean(axis=1)
    known = sum(time for op, time in zip(found.counted.ops, own, strict=True) if op.costed.cost.quality != "unknown")
    assert known / own.sum() >= KNOWN[name] - 1e-3
    closes(found)


def test_the_timeline_of_another_tool(recorded):
    file = recorded("h100_bert_small_infer.json.gz").parent / "expected" / "h100_bert_small_gpu_timeline.csv"
    with file.open() as lines:
        theirs = {row["type"]: float(row["time ms"]) for row in csv.DictReader(lines)}
    timed = read_once(recorded("h100_bert_small_infer.json.gz")).timed
    ms = pytest.approx
    assert timed.walls[0] * 1e3 == ms(theirs["total_time"], abs=1e-4)
    assert timed.idle[0] * 1e3 == ms(theirs["idle_time"], abs=1e-4)
    assert (timed.own.sum() - timed.overlap.sum()) * 1e3 == ms(theirs["busy_time"], abs=1e-4)


def test_exposed_communication_of_a_recommenders_training(recorded):
    # Reference figures for all six steps together: 87.9 of 163.5 ms beside no computation. The five used are alike.
    found = read_once(recorded("a100_recsys_train.json.gz"))
    assert found.exposed / found.communication == pytest.approx(87.9 / 163.5, abs=0.02)


def test_qwens_kernels_from_before_its_step_are_not_of_it(recorded):
    """509 kernels were queued when the profiler began; by its own annotation on the GPU the step took 34.89 ms."""
    found = read_once(recorded("h100_qwen_0.5b_infer.json.gz"))
    assert found.warnings[0].startswith("Left out 509 device events")
    assert found.timed.walls[0] == pytest.approx(34.89e-3, rel=0.01)
    flash = [name for name, *_ in rows(found) if "flash_attention" in name]
    assert len(flash) == 24  # one for each layer
    assert all(op.costed.cost.quality == "exact" for op in found.counted.ops if op.costed.cost.flops)


# XPlane


def test_a_jax_trace_of_a_gpu(recorded):
    from roofline.importing import xplane as imported_xplane
    from roofline.traces.xplane import reader as xplane

    found = imported_xplane.read(xplane.read(recorded("mi300x_jax_conv.xplane.pb")))
    assert (found.device, found.further_devices, found.rocm, found.buffers) == ("/device:GPU:7", 1, True, 0)
    # Five executions of one program of five kernels; the first is left out, and none takes far longer.
    assert (found.step_count, len(found.timed.walls), found.kernels, found.linked) == (5, 4, 25, 1)
    timed = found.timed
    assert timed.own.mean(axis=1).sum() - timed.overlap.sum() + timed.idle.mean() == pytest.approx(timed.walls.mean())
    convolution = next(op.costed for op in found.counted.ops if op.costed.cost.flops)
    assert (convolution.op_class, convolution.cost.quality) == ("contraction", "exact")
    # 16 channels of 32 x 60 x 104, each number once: the 2 x 2 filter steps by two, and a border of zeros adds none.
    # TraceLens' table (20d9fd7) takes the filter for 1 x 2 x 2 numbers, without its 16 channels, and counts the border.
    assert convolution.cost.flops == 2 * 5120 * 16 * 32 * 60 * 104
    out = 5120 * 34 * 31 * 53
    assert convolution.cost.bytes == 2 * (16 * 32 * 60 * 104 + 5120 * 16 * 2 * 2 + out)
    assert found.counted.flags == ("optimised-only",)


def xtrace(kernels, graph=0, run=0):
    """Events of one device: (instruction, kernel, start, end) in ns; of no program that is known."""
    from roofline.traces.xplane.reader import Line, XTrace

    names = tuple(dict.fromkeys(name for each in kernels for name in each[:2] if name))
    size = len(kernels)
    code = {name: number for number, name in enumerate(names)} | {"": -1}

    def column(values, kind=np.int64):
        return np.asarray(values, kind)

    return XTrace(
        start=column([1000 * each[2] for each in kernels]),
        end=column([1000 * each[3] for each in kernels]),
        name=column([code[each[1]] for each in kernels], np.int32),
        line=np.zeros(size, np.int32),
        hlo_op=column([code[each[0]] for each in kernels], np.int32),
        program=column([1 if each[0] else 0 for each in kernels]),
        run=np.full(size, run) if np.isscalar(run) else column(run),
        produces=np.full(size, -1),
        consumes=np.full(size, -1),
        scope=np.full(size, -1, np.int32),
        bytes=np.full(size, -1),
        graph=np.full(size, graph),
        names=names,
        lines=(Line("/device:GPU:0", "Stream #1"),),
        modules={},
        origin=None,
        warnings=(),
    )


def test_steps_of_an_xla_trace_are_executions_of_its_main_program():
    from roofline.importing import xplane as imported_xplane

    once = [("dot.1", "gemm", 0, 10), ("add.1", "add", 12, 15)]
    kernels = [(op, kernel, 100 * step + low, 100 * step + high) for step in range(4) for op, kernel, low, high in once]
    found = imported_xplane.read(xtrace(kernels))
    # Steps end at 15, 115, 215, 315 ns; programs that are not in the trace leave kernels by name.
    assert found.step_count == 4
    assert found.timed.walls == pytest.approx([100e-9] * 3)
    assert found.timed.idle == pytest.approx([87e-9] * 3)
    assert found.timed.extra == ("gemm", "add")
    # A kernel more in one step: no sequence repeats itself, and without ids of runs all of it is one step.
    kernels.append(("dot.1", "gemm", 316, 320))
    assert imported_xplane.read(xtrace(kernels)).step_count == 1
    runs = [1, 1, 2, 2, 3, 3, 4, 4, 4]
    assert imported_xplane.read(xtrace(kernels, run=runs)).step_count == 4


def test_of_several_devices_the_one_that_works_most_is_read_and_nothing_of_another():
    """10 ns on one card, 20 + 30 on the other, whose viewer's line repeats its first kernel."""
    from roofline.importing import xplane as imported_xplane
    from roofline.traces.xplane.reader import Line

    made = xtrace([("", "copy", 0, 10), ("", "gemm", 20, 40), ("", "add", 50, 80), ("", "gemm", 20, 40)])
    lines = Line("/device:GPU:0", "Stream #1"), Line("/device:GPU:1", "Stream #1"), Line("/device:GPU:1", "XLA Ops")
    found = imported_xplane.read(dataclasses.replace(made, lines=lines, line=np.asarray([0, 1, 1, 2], np.int32)))
    assert (found.device, found.further_devices, found.kernels) == ("/device:GPU:1", 1, 2)
    assert (found.busy, found.span) == pytest.approx((50e-9, 60e-9))


def test_command_buffers_are_recognised():
    from roofline.importing import xplane as imported_xplane

    kernels = [("", "gemm", 0, 10), ("", "add", 12, 15)]
    assert imported_xplane.read(xtrace(kernels, graph=7)).buffers == 2
    found = imported_xplane.read(xtrace([("command_buffer.1", "gemm", 0, 10), ("dot.1", "gemm", 20, 30)]))
    assert (found.buffers, found.kernels) == (1, 2)


def test_an_xplane_trace_without_kernels_is_refused():
    from roofline.importing import xplane as imported_xplane

    with pytest.raises(MeasurementError, match="ran a kernel"):
        imported_xplane.read(xtrace([]))
