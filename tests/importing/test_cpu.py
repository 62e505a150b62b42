"""Imported traces of a CPU: every op runs by itself, and no time of one is the host's because its work is not known."""

from __future__ import annotations

import json

import pytest

torch = pytest.importorskip("torch")

from roofline.costs.counted import PHASES
from roofline.importing import cpu
from roofline.importing.work.costs import Costs
from roofline.traces.kineto import reader

#: Lists of tensors have no type on a CPU, as no kernel tells it.
UNKNOWN = ([[4], [4]], "TensorList", [[1], [1]])


def read(made):
    return cpu.read(reader.read(made if isinstance(made, bytes) else made.write()), Costs())


def rows(found):
    """(name, quality, own time [us]) of each op of the counted step."""
    own = found.timed.own.mean(axis=1) * 1e6
    return [
        (name, op.costed.cost.quality, round(float(time), 6))
        for name, op, time in zip(found.counted.names_of_ops, found.counted.ops, own, strict=True)
    ]


def step(make_kineto, *calls):
    """One step of 100 us with these calls: (name, start, end, tensors)."""
    made = make_kineto.Trace()
    made.annotation("ProfilerStep#0", 0, 100)
    for name, start, end, *tensors in calls:
        made.op(name, start, end, *tensors)
    return made


def test_an_op_of_unknown_work_keeps_its_time(make_kineto):
    """An LSTM's 60 us of its own do not become the host's, because 10 us in it are a copy."""
    h = make_kineto.H
    found = read(
        step(
            make_kineto,
            ("aten::mkldnn_rnn_layer", 10, 80, h),
            ("aten::empty", 11, 12, "[4]", "6", "", "", "", ""),
            ("aten::copy_", 20, 30, h, h, "False"),
            ("aten::relu", 82, 90, h),
        )
    )
    assert rows(found) == [("aten::mkldnn_rnn_layer", "unknown", 70), ("aten::relu", "exact", 8)]
    assert found.timed.idle == pytest.approx([22e-6])


@pytest.mark.parametrize("end", [56, 20])
def test_the_ops_inside_say_the_work_and_the_time_stays(make_kineto, end):
    """Whether they take nine tenths of it or a fifth."""
    h = make_kineto.H
    found = read(step(make_kineto, ("aten::cat", 10, 60, UNKNOWN, "0"), ("aten::copy_", 11, end, h, h, "False")))
    assert rows(found) == [("aten::cat", "assumed", 50)]
    (op,) = found.counted.ops
    (inside,) = op.costed.parts
    assert op.costed.cost.bytes == inside.cost.bytes > 0


def test_unknown_ops_in_each_other(make_kineto):
    """What is inside the inner one says the work of both."""
    h = make_kineto.H
    inner = (("aten::cat", 20, 40, UNKNOWN, "0"), ("aten::copy_", 20, 39, h, h, "False"))
    found = read(step(make_kineto, ("aten::stack", 10, 60, UNKNOWN, "0"), *inner))
    assert rows(found) == [("aten::stack", "assumed", 50)]
    # Views say nothing, and neither do other unknown ops.
    view = ("aten::view", 20, 40, h, "[512, 32]")
    assert rows(read(step(make_kineto, ("aten::cat", 20, 40, UNKNOWN, "0"), view))) == [("aten::cat", "unknown", 20)]


def test_an_op_of_a_librarys_own_is_counted(make_kineto):
    h = make_kineto.H
    found = read(
        step(
            make_kineto,
            ("mylib::fused", 10, 40, h),
            ("graph_0_cpp_fused_add_1", 50, 60),
            ("autograd::engine::evaluate_function: AddBackward0", 61, 70),
            ("profiler::_record_function_enter_new", 71, 75, ""),
            ("mylib::wrapper", 80, 90, h),
            ("aten::relu", 80, 90, h),
        )
    )
    assert rows(found) == [
        ("mylib::fused", "unknown", 30),
        ("graph_0_cpp_fused_add_1", "unknown", 10),
        ("mylib::wrapper", "assumed", 10),
    ]
    assert found.timed.idle == pytest.approx([50e-6])


def test_without_shapes_products_keep_their_time(make_kineto):
    x, w, wt, b = make_kineto.X, make_kineto.W, make_kineto.WT, make_kineto.B
    made = step(
        make_kineto,
        ("aten::linear", 9, 60, x, w, b),
        ("aten::t", 10, 14, w),
        ("aten::addmm", 15, 58, b, x, wt, "1", "1"),
        ("aten::expand", 16, 18, b, "[32, 512]", "False"),
        ("aten::copy_", 20, 25, make_kineto.H, make_kineto.H, "False"),
        ("aten::view", 62, 66, x, "[256, 32]"),
    )
    trace = json.loads(made.write())
    for event in trace["traceEvents"]:
        for key in ("Input Dims", "Input type", "Input Strides", "Concrete Inputs"):
            event["args"].pop(key, None)
    found = read(json.dumps(trace).encode())
    assert rows(found) == [("aten::addmm", "unknown", 43)]  # and views are none, whatever their arguments
    assert not found.shapes
    assert found.timed.idle == pytest.approx([57e-6])


# Checkpoints

IMAGES, CHANNELS, SIDE = 2, 4, 12


def checkpointed(path, reentrant, with_stack):
    """The trace of a training step of two convolutions of 3 x 3 behind one checkpoint, recorded here."""
    from torch import nn, profiler
    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(CHANNELS, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU())
    x = torch.randn(IMAGES, CHANNELS, SIDE, SIDE, requires_grad=True)
    with profiler.profile(
        activities=[profiler.ProfilerActivity.CPU], record_shapes=True, with_stack=with_stack
    ) as recorder:
        checkpoint(net, x, use_reentrant=reentrant).sum().backward()
    recorder.export_chrome_trace(str(path))
    return reader.read(path)


@pytest.mark.parametrize("with_stack", [False, True])
@pytest.mark.parametrize("reentrant", [False, True])
def test_the_backward_pass_of_a_checkpoint_runs_the_forward_pass_again(tmp_path, reentrant, with_stack):
    """Valid positions of 12, 10 and 8 to a side: 2 images x 8 channels x positions x 9 taps, of 4 and of 8 channels."""
    found = cpu.read(checkpointed(tmp_path / "trace.json", reentrant, with_stack), Costs())
    forward = 2 * IMAGES * 8 * 9 * (10 * 10 * CHANNELS + 8 * 8 * 8)
    sums = {phase: [0.0, 0.0] for phase in PHASES}
    for op, phase in zip(found.counted.ops, found.counted.phase.tolist(), strict=True):
        sums[PHASES[phase]][0] += op.costed.cost.model_flops
        sums[PHASES[phase]][1] += op.costed.cost.flops
    assert sums["forward"] == [forward, forward]
    # Two gradients of each convolution, by its input and by its weights, and the convolutions once more.
    assert sums["backward"] == [2 * forward, 3 * forward]
    assert sums["optimizer"] == [0, 0]
