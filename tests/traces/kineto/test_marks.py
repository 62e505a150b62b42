"""Steps that nothing numbers: torch's own marks, ranges that hold all work, and ops that repeat on a CPU."""

from __future__ import annotations

import json

import numpy as np
import pytest

from roofline.traces.kineto import reader, steps
from roofline.traces.kineto.reader import ANNOTATION

OPTIMIZER, LOADER = "Optimizer.step#SGD.step", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def found(made):
    return steps.find(reader.read(made.write()))


def windows(of):
    """(start, end) of each step in µs."""
    return list(zip((of.start // 1000).tolist(), (of.end // 1000).tolist(), strict=True))


def test_an_optimizers_step_ends_a_step(make_kineto):
    document = json.loads(make_kineto.training(4).write())
    events = document["traceEvents"]
    document["traceEvents"] = [e for e in events if not e["name"].startswith("roofline:step#")]
    of = steps.find(reader.read(json.dumps(document).encode()))
    assert (of.source, of.rule, of.inferred) == ("Optimizer.step", "from one Optimizer.step to the next", False)
    # It lasts from 560 to 640 of each ms; the trace begins at 5, with the loader, and its first op at 96.
    assert windows(of) == [(91, 635), (635, 1635), (1635, 2635), (2635, 3635)]


def loop(make_kineto, *kinds, optimizer=(), loader=()):
    """One iteration of 100 µs for each kind, whose op it runs; at 80 the optimizer steps, at 1 a batch is loaded."""
    made = make_kineto.Trace()
    for number, kind in enumerate(kinds):
        at = 100 * number
        if number in loader:
            made.annotation(LOADER, at + 1, at + 9)
        made.op(f"aten::{kind}", at + 10, at + 30)
        made.launch(kind, at + 15, at + 20, at + 70)
        if number in optimizer:
            made.annotation(OPTIMIZER, at + 80, at + 90)
    return made


def test_a_batch_begins_a_step_where_no_optimizer_ends_one(make_kineto):
    of = found(loop(make_kineto, *"aaa", loader=range(3)))
    assert (of.source, windows(of)) == ("enumerate(DataLoader)", [(0, 100), (100, 200), (200, 269)])


def test_gradients_of_several_batches_are_one_step(make_kineto):
    of = found(loop(make_kineto, *"aaaa", loader=range(4), optimizer=(1, 3)))
    assert (of.source, windows(of)) == ("Optimizer.step", [(9, 189), (189, 389)])
    # An optimizer that stepped once: of how many batches the step is nothing tells.
    of = found(loop(make_kineto, *"aaaa", loader=range(4), optimizer=(3,)))
    assert (of.source, len(of), of.rule) == ("", 1, "the whole trace")


@pytest.mark.parametrize(("times", "number"), [(0, 4), (1, 1)])
def test_micro_batches_before_an_optimizers_only_step_are_one(make_kineto, times, number):
    """Four ranges of twelve kernels in one ProfilerStep: what cuts it without an optimizer does not with one."""
    for name in ("micro_batch", "range 0"):
        made = named(make_kineto, lambda at, name=name: name if name == "micro_batch" or at else "first", 4)
        made.annotation("ProfilerStep#3", 0, 1000)
        for _ in range(times):
            made.annotation(OPTIMIZER, 970, 990)
        of = found(made)
        assert (len(of), of.source == "ProfilerStep#") == (number, times == 1)


def test_the_fetch_that_finds_no_batch_is_no_step(make_kineto):
    """Three batches and a fourth fetch, after which another op runs: three steps, to where the fourth begins."""
    of = found(loop(make_kineto, *"aaab", loader=range(4)))
    assert windows(of) == [(0, 100), (100, 200), (200, 300)]
    # A last batch that runs what another one does is a step; and of two nothing tells.
    assert len(found(loop(make_kineto, *"abab", loader=range(4)))) == 2
    assert len(found(loop(make_kineto, *"ab", loader=range(2)))) == 2


def test_optimizers_in_turns_mark_half_a_step_each(make_kineto):
    of = found(loop(make_kineto, *"abababab", optimizer=range(8)))
    assert windows(of) == [(0, 180), (180, 380), (380, 580), (580, 780)]
    assert of.rule == "from one Optimizer.step to the one 2 after it"
    # One kind of another between equal ones is no turn: five of six steps are like the one before, or all but two.
    assert len(found(loop(make_kineto, *"aaabaaa", optimizer=range(7)))) == 7


@pytest.mark.parametrize(("inside", "number"), [(2, 1), (3, 3)])
def test_a_lone_numbered_step_gives_way_to_three_within(make_kineto, inside, number):
    made = loop(make_kineto, *"a" * inside, optimizer=range(inside))
    made.annotation("ProfilerStep#0", 0, 100 * inside)
    of = found(made)
    assert (of.source, len(of)) == (("ProfilerStep#", 1) if number == 1 else ("Optimizer.step", 3))


def test_marks_of_two_threads_mark_nothing(make_kineto):
    made = loop(make_kineto, *"aaaa")
    for number in range(4):
        made.annotation(OPTIMIZER, 100 * number + 80, 100 * number + 90, tid=100 + number % 2)
    assert found(made).source == ""


# Ranges


def named(make_kineto, name, layers, ends=0):
    """Ranges of twelve kernels of 10 us each, and kernels of their own before the first and after the last."""
    made = make_kineto.Trace()
    at = 0

    def launch(kernel):
        nonlocal at
        made.launch(kernel, at + 2, at + 10, at + 20)
        at += 20

    for number in range(ends):
        launch(f"embedding {number}")
    for number in range(layers):
        begin = at
        for kernel in range(12):
            launch(f"k{kernel}")
        made.annotation(name(number), begin, at)
    for number in range(ends):
        launch(f"head {number}")
    return made


def test_ranges_of_one_name_are_steps(make_kineto):
    of = found(named(make_kineto, lambda number: "run_training_batch", 4))
    assert (of.source, of.rule) == ("run_training_batch", "from one run_training_batch to the next")
    assert windows(of) == [(0, 240), (240, 480), (480, 720), (720, 960)]


def test_numbers_in_the_name_do_not_matter(make_kineto):
    of = found(named(make_kineto, lambda number: f"pass_0(0)_of_{number}({7 * number})", 3))
    assert (len(of), of.source) == (3, "pass_N(N)_of_N(N)")


def test_ranges_of_layers_are_no_steps(make_kineto):
    """They hold 48 of 50 kernels, 96 %; and the two of their own say that a step is more."""
    of = found(named(make_kineto, lambda number: "layer", 4, ends=1))
    assert (of.source, len(of)) == ("", 1)
    assert len(found(named(make_kineto, lambda number: "pair", 2))) == 1


def test_forwards_within_one_numbered_step_are_steps(make_kineto):
    """Five times twelve kernels in one ProfilerStep, as where `prof.step()` was called once."""
    made = named(make_kineto, lambda number: "forward" if number else "first", 5)
    made.events = [event for event in made.events if event["cat"] != "user_annotation"]
    made.annotation("ProfilerStep#0", 0, 1200)
    of = found(made)
    assert (of.source, of.inferred, len(of)) == (steps.PERIODIC, True, 5)
    assert windows(of) == [(2, 242), (242, 482), (482, 722), (722, 962), (962, 1200)]


# A CPU's trace


def test_ops_of_a_cpu_that_repeat_are_steps(make_kineto):
    def trace(steps_of, first=()):
        made = make_kineto.Trace()
        at = 0
        for name in (*first, *(f"aten::op{number}" for _ in range(steps_of) for number in range(12))):
            made.op(name, at, at + 9)
            made.op("aten::inner", at + 1, at + 8)
            at += 10
        return found(made)

    of = trace(4)
    assert (of.source, of.inferred, of.rule) == (steps.PERIODIC, True, "a block of ops that repeats")
    assert windows(of) == [(0, 120), (120, 240), (240, 360), (360, 479)]
    assert trace(4, first=("aten::embedding",)).source == ""
    assert trace(2).source == ""


def test_a_training_loop_recorded_here(tmp_path):
    """Five steps without `prof.step()`, on this CPU."""
    torch = pytest.importorskip("torch")
    model, x = torch.nn.Linear(8, 8), torch.ones(4, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        for _ in range(5):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = reader.read(tmp_path / "trace.json")
    of = steps.find(trace)
    assert (of.source, len(of)) == ("Optimizer.step", 5)
    linear = trace.ops.start[trace.ops.name == trace.names.index("aten::linear")]
    assert steps.within(of, linear).tolist() == [0, 1, 2, 3, 4]


# 2021


def test_operators_of_2021_that_are_ranges(make_kineto):
    """Written by hand: in 2021 ops and ranges alike were of category Operator."""
    names = ["ProfilerStep#3", "my range", "aten::detach_", "detach_", "AddBackward0", "torch::autograd::GraphRoot"]
    events = [
        {"ph": "X", "cat": "Operator", "name": name, "pid": 1, "tid": 1, "ts": 10 * n, "dur": 5, "args": {}}
        for n, name in enumerate(names)
    ]
    trace = reader.read(json.dumps({"traceEvents": events}).encode())
    assert [trace.names[code] for code in trace.annotations.name] == names[:2]
    assert set(trace.annotations.kind.tolist()) == {ANNOTATION}
    assert [trace.names[code] for code in trace.ops.name] == names[2:]


@pytest.mark.parametrize(
    ("name", "source", "count"),
    [
        ("kineto_resnet50_workers0.json.gz", "ProfilerStep#", 6),
        ("kineto_resnet50_workers4.json.gz", "ProfilerStep#", 6),
        ("rtx2080ti_linear_40_steps.json.gz", "Optimizer.step", 40),
        ("nvidia_moe.json.gz", "MoE[experts=64, tokens=16, topk=2, hidden=512, intermediate=1024]", 3),
        ("mi300x_norms.json.gz", "", 1),  # ranges of ten norms, each three times in a row
        ("ranks/dlrm_rank0.json.gz", "ProfilerStep#", 1),
    ],
)
def test_steps_of_recorded_traces(recorded, name, source, count):
    of = steps.find(reader.read(recorded(name)))
    assert (of.source, len(of)) == (source, count)
    assert (of.end > of.start).all()
    assert (of.start[1:] >= of.end[:-1]).all()


def test_each_step_of_the_resnet_of_2021_holds_its_53_convolutions(recorded):
    trace = reader.read(recorded("kineto_resnet50_workers4.json.gz"))
    of = steps.find(trace)
    convolutions = trace.ops.start[trace.ops.name == trace.names.index("aten::conv2d")]
    assert np.bincount(steps.within(of, convolutions)).tolist() == [53] * 6
