"""Matching profiled events with counted ones, and op times on a CPU, by hand and on a real step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofline.timing.timed import (
    GUARDS,
    HOST_DISPATCH,
    INPUT,
    PYTHON,
    RUNTIME,
    WRAPPER,
    EventCost,
    Timed,
    merge,
    profiled,
)
from roofline.traces import alignment
from roofline.traces.kineto import reader

# Alignment. Names are letters here; the position of the twin, or -1.


def aligned(profiled, counted):
    codes = [np.array([ord(letter) for letter in text], np.int64) for text in (profiled, counted)]
    return alignment.align(*codes).tolist()


@pytest.mark.parametrize(
    ("profiled", "counted", "twins"),
    [
        ("abcd", "abcd", [0, 1, 2, 3]),
        ("abxcd", "abcd", [0, 1, -1, 2, 3]),  # one more in the profile
        ("abcd", "abxcd", [0, 1, 3, 4]),  # one less
        ("xabcd", "abcd", [-1, 0, 1, 2, 3]),
        ("abcdx", "abcd", [0, 1, 2, 3, -1]),
        ("abxcd", "abycd", [0, 1, -1, 3, 4]),
        ("axbyc", "abzc", [0, -1, 1, -1, 3]),
        ("aaa", "aa", [0, 1, -1]),  # which of equal ones is missing cannot be known
        ("abc", "", [-1, -1, -1]),
        ("", "abc", []),
        ("", "", []),
        ("abc", "xyz", [-1, -1, -1]),
    ],
)
def test_alignment(profiled, counted, twins):
    assert aligned(profiled, counted) == twins


names = st.text("abc", max_size=30)


@given(names)
def test_equal_sequences_map_to_themselves(text):
    assert aligned(text, text) == list(range(len(text)))


@given(names, names)
def test_twins_have_equal_names_and_keep_the_order(profiled, counted):
    pairs = [(here, there) for here, there in enumerate(aligned(profiled, counted)) if there >= 0]
    assert all(profiled[here] == counted[there] for here, there in pairs)
    positions = [there for _, there in pairs]
    assert positions == sorted(set(positions))


@given(names, names, st.text("xyz", min_size=1, max_size=5))
def test_what_was_inserted_is_all_that_is_lost(head, tail, inserted):
    twins = aligned(head + inserted + tail, head + tail)
    assert twins == [*range(len(head)), *[-1] * len(inserted), *range(len(head), len(head) + len(tail))]


def test_too_many_unequal_events_are_left_unmatched(monkeypatch):
    monkeypatch.setattr(alignment, "MAX_UNEQUAL", 2)
    assert aligned("axbyczd", "apbqcrd") == [0, *[-1] * 5, 6]


def test_threads_are_aligned_each_by_itself_in_order_of_appearance():
    # Profiled: threads 70 and 30 take turns; counted: threads 1 and 2, all of 1 first.
    profiled, profiled_thread = [1, 9, 2, 8, 3], [70, 30, 70, 30, 70]
    counted, counted_thread = [1, 2, 3, 9, 8], [1, 1, 1, 2, 2]
    columns = [np.array(values, np.int64) for values in (profiled, profiled_thread, counted, counted_thread)]
    assert alignment.align_threads(*columns).tolist() == [0, 3, 1, 4, 2]


def test_a_thread_more_than_was_counted_is_unmatched():
    columns = [np.array(values, np.int64) for values in ([1, 1], [5, 6], [1], [1])]
    assert alignment.align_threads(*columns).tolist() == [0, -1]


# A step on a CPU by hand, in µs. `stretch` makes the product longer.
#
#   0     10   12  13-14  16      20-25      46   50    60  62      78  80      100
#   |     linear                                  |     relu             |      |
#             t               addmm          |              clamp_min
#                transpose       copy_
#
# linear, t and transpose do no work of their own: 40 of the step's 100 µs lie in linear, 30 of them in addmm. relu
# takes 20. There are 7 events.

torch = pytest.importorskip("torch")

from roofline.costs import counted as counted_ops
from roofline.importing.work.costs import Costs
from roofline.pytorch import count, time_cpu
from roofline.pytorch.aten.engine import Engine
from roofline.pytorch.recording import profiler

PREFIX = "roofline:step"
WALL, EVENTS = 100, 7  # [µs], events
OUTER, INNER = 0.5, 0.25  # cost of an event in no other one, and in one [µs]


def step(made, make_kineto, number, zero, stretch=0, wall=WALL):
    def op(name, start, end, *inputs, **where):
        made.op(f"aten::{name}", zero + start, zero + end, *inputs, **where)

    x, h, w, wt, b = (getattr(make_kineto, name) for name in ("X", "H", "W", "WT", "B"))
    made.annotation(f"{PREFIX}#{number}", zero, zero + wall + stretch)
    op("linear", 10, 50 + stretch, x, w, b)
    op("t", 12, 14, w)
    op("transpose", 13, 14, w, "0", "1")
    op("addmm", 16, 46 + stretch, b, x, wt, "1", "1")
    op("copy_", 20, 25, b, b, "False")
    op("relu", 60 + stretch, 80 + stretch, h)
    op("clamp_min", 62 + stretch, 78 + stretch, h, "0")


@pytest.fixture
def made(make_kineto):
    return make_kineto.Trace()


def counted_first_step(trace):
    low, high = time_cpu.windows(trace, PREFIX)[0]
    events = time_cpu.step_events(trace, counted_ops.NOTHING, low, high, "roofline:").events
    costs = Costs()
    return count.count(costs.nodes(trace, events), costs)


def timed(made, outer=0.0, inner=0.0):
    trace = reader.read(made.write())
    counted = counted_first_step(trace)
    return counted, time_cpu.time_cpu(trace, counted, PREFIX, EventCost(outer * 1e-6, inner * 1e-6))


def us(values):
    return pytest.approx(np.asarray(values) * 1e-6, rel=1e-9, abs=1e-15)


def test_an_op_is_its_event_with_all_that_lies_in_it(made, make_kineto):
    step(made, make_kineto, 0, 0)
    counted, found = timed(made)
    assert counted.names_of_ops == ("aten::addmm", "aten::relu")
    assert found.own == us([[30], [20]])
    assert found.overlap == us([0, 0])
    assert found.start == us([16, 60])
    assert found.walls == us([WALL])
    assert (found.joined, found.unmatched, found.events, found.dropped) == (1, {}, EVENTS, 0)
    assert (found.kernels, found.launches) == ([(), ()], None)


def test_idle_is_what_the_framework_and_python_take(made, make_kineto):
    step(made, make_kineto, 0, 0)
    _, found = timed(made)
    assert found.corrected == us([WALL])
    assert found.idle == us([WALL - 50])
    # Linear around the product: 40 - 30. Outside every event: 100 - 40 - 20.
    assert found.causes == us_of({HOST_DISPATCH: 10, PYTHON: 40})
    # Before addmm 10 of Python and 6 of linear, before relu the rest of linear, 4, and 10; 20 come after both.
    assert found.host == us([[6, 10], [4, 10]])


def us_of(causes):
    return pytest.approx({name: time * 1e-6 for name, time in causes.items()})


@pytest.mark.parametrize(
    ("library", "kernel"), [(True, "aten::mkldnn_convolution"), (False, "aten::_slow_conv2d_forward")]
)
def test_what_carries_a_product_out(library, kernel):
    """The library where it is on, or PyTorch's own products; the dense layer's is its own."""
    if library and not torch.backends.mkldnn.is_available():
        pytest.skip("this PyTorch has no oneDNN")
    # Large enough that the product, and no wrapper around it, has most of the time on a busy machine as well.
    conv = torch.nn.Conv2d(64, 64, 3)
    net = torch.nn.Sequential(conv, torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(64 * 18 * 18, 4))
    x = torch.ones(2, 64, 20, 20)

    def run():
        before = torch._C._get_mkldnn_enabled()  # the flags of torch.backends set TF32 as well, and warn of it
        torch._C._set_mkldnn_enabled(library)
        with torch.no_grad():
            net(x)
        torch._C._set_mkldnn_enabled(before)

    from roofline.core.step import Step
    from roofline.pytorch.recording import counting as torch_counting

    run()
    counted = count.count(torch_counting.record(Step(run=run)), Engine())
    trace = profiler.read(profiler.profiled(run, "cpu", 5))
    found = time_cpu.time_cpu(trace, counted, profiler.STEP, EventCost(0.0, 0.0))
    names = [[found.kernel_names[number] for number, _ in kernels] for kernels in found.kernels]
    assert dict(zip(counted.names_of_ops, names, strict=True)) == {
        "aten::convolution": [kernel],
        "aten::relu": [],
        "aten::addmm": [],
    }


def test_the_cost_of_an_event_is_taken_from_what_it_lies_in(made, make_kineto):
    step(made, make_kineto, 0, 0)
    _, found = timed(made, OUTER, INNER)
    # copy_ lies in addmm, clamp_min in relu.
    assert found.own == us([[30 - INNER], [20 - INNER]])
    # t, transpose and addmm lie in linear; linear and relu lie in nothing.
    assert found.corrected == us([WALL - 5 * INNER - 2 * OUTER])
    assert found.idle == us([WALL - 3 * INNER - 2 * OUTER - 50])
    assert found.causes == us_of({HOST_DISPATCH: 10 - 3 * INNER, PYTHON: 40 - 2 * OUTER})
    assert sum(found.causes.values()) == pytest.approx(found.idle[0])
    assert found.host == us([[6 - 3 * INNER, 10 - OUTER], [4, 10 - OUTER]])
    # What was taken off for an event on the average of the 7.
    assert profiled(found, "none").event_cost == us((5 * INNER + 2 * OUTER) / EVENTS)


def test_a_cost_larger_than_an_op_leaves_nothing_of_it(made, make_kineto):
    step(made, make_kineto, 0, 0)
    _, found = timed(made, 25, 25)
    assert found.own == us([[5], [0]])


def test_an_outlying_step_is_dropped_whole(made, make_kineto):
    for number, (zero, stretch) in enumerate([(0, 0), (1000, 10), (2000, 200), (4000, 5)]):
        step(made, make_kineto, number, zero, stretch)
    _, found = timed(made)
    # Walls 100, 110, 300, 105: the median is 107.5, and 300 is above 1.25 of it.
    assert found.dropped == 1
    assert found.walls == us([100, 110, 105])
    assert found.own == us([[30, 40, 35], [20, 20, 20]])
    assert found.start == us([16, 60])  # in the first of them
    assert found.causes == us_of({HOST_DISPATCH: 10, PYTHON: 40})


def test_events_that_were_not_counted_are_reported_and_not_joined(made, make_kineto):
    step(made, make_kineto, 0, 0)
    step(made, make_kineto, 1, 1000)
    made.op("aten::exp", 1090, 1095, make_kineto.H)
    _, found = timed(made)
    # Leaves: transpose 1, copy_ 5, clamp_min 16 in either step, and exp.
    assert found.joined == pytest.approx(2 * 22 / (2 * 22 + 5))
    assert found.unmatched == us_of({"aten::exp": 5})
    # It is no op's time: the framework's.
    assert found.idle == us([50, 50])
    assert found.causes == us_of({HOST_DISPATCH: 10 + 5 / 2, PYTHON: 40 - 5 / 2})


def test_an_event_that_was_not_counted_inside_an_op_is_part_of_it(made, make_kineto):
    step(made, make_kineto, 0, 0)
    step(made, make_kineto, 1, 1000)
    made.op("aten::exp", 1061, 1079, make_kineto.H)  # within relu, around clamp_min
    _, found = timed(made)
    assert found.own == us([[30, 30], [20, 20]])


def test_ops_of_two_threads_share_the_time_they_run_beside_each_other(made, make_kineto):
    step(made, make_kineto, 0, 0)
    made.op("aten::exp", 70, 90, make_kineto.H, tid=make_kineto.AUTOGRAD)
    counted, found = timed(made)
    assert counted.names_of_ops == ("aten::addmm", "aten::relu", "aten::exp")
    # relu and exp run together from 70 to 80: 5 of each is overlap.
    assert found.own == us([[30], [20], [20]])
    assert found.overlap == us([0, 5, 5])
    assert found.idle == us([WALL - 60])


def test_what_ran_outside_the_steps_is_in_none(made, make_kineto):
    made.op("aten::exp", 0, 40, make_kineto.H)
    step(made, make_kineto, 0, 50)
    made.op("aten::exp", 160, 180, make_kineto.H)
    counted, found = timed(made)
    assert counted.names_of_ops == ("aten::addmm", "aten::relu")
    assert found.joined == 1


# A compiled step by hand, in µs: guards, then a region whose graph break left a layer to Python. 12 events.
#
#   0  10-14   20-100  22-24     25-28     30-90     40-80  44-50  60-61  82-84   92-98   93-97  120-140  200
#      lookup  region  pregraph  prologue  Compiled- graph  addmm  t      detach  linear  addmm  relu
#                                          Function


def compiled_step(made, make_kineto, number, zero):
    def event(name, start, end, *inputs):
        made.op(name, zero + start, zero + end, *inputs)

    x, h, w, wt, b = (getattr(make_kineto, name) for name in ("X", "H", "W", "WT", "B"))
    made.annotation(f"{PREFIX}#{number}", zero, zero + 200)
    event("TorchDynamo Cache Lookup", 10, 14)
    event("Torch-Compiled Region: 0/0", 20, 100)
    event("Pregraph bytecode", 22, 24)
    event("AOTDispatcher Runtime Wrapper Prologue", 25, 28)
    event("CompiledFunction", 30, 90, x)
    event("## Call CompiledFxGraph fabc ##", 40, 80)
    event("aten::addmm", 44, 50, b, x, wt, "1", "1")
    event("aten::t", 60, 61, w)
    event("aten::detach", 82, 84, h)
    event("aten::linear", 92, 98, x, w, b)
    event("aten::addmm", 93, 97, b, x, wt, "1", "1")
    event("aten::relu", 120, 140, h)


COMPILED = {
    HOST_DISPATCH: 6 - 4,  # linear around its product: left to Python, it is dispatched as ever
    GUARDS: 4,
    WRAPPER: 40 - 6,  # the graph around its product, with the view t in it
    # The region but for what lies in it, and the latter's own: 80 - (2 + 3 + 60 + 6), 2, 3, and 60 - 40 with detach.
    RUNTIME: 9 + 2 + 3 + 20,
    PYTHON: 200 - 4 - 80 - 20,
}


def test_idle_of_a_compiled_step_is_told_by_what_stands_around_the_kernels(made, make_kineto):
    compiled_step(made, make_kineto, 0, 0)
    counted, found = timed(made)
    assert counted.names_of_ops == ("aten::addmm", "aten::addmm", "aten::relu")
    assert found.idle == us([200 - 6 - 4 - 20])
    assert found.causes == us_of(COMPILED)
    assert sum(found.causes.values()) == pytest.approx(found.idle[0])


def test_the_cost_of_an_event_is_taken_from_the_cause_that_it_lies_in(made, make_kineto):
    compiled_step(made, make_kineto, 0, 0)
    _, found = timed(made, OUTER, INNER)
    # In linear 1, in the graph 2, in the region 4 and in CompiledFunction 2, in nothing 3: 12 events.
    within = {
        HOST_DISPATCH: 1,
        GUARDS: 0,
        WRAPPER: 2,
        RUNTIME: 4 + 2,
        PYTHON: 3,
    }
    assert sum(within.values()) == found.events == 12
    cost = {name: OUTER if name == PYTHON else INNER for name in within}
    assert found.causes == us_of({name: time - within[name] * cost[name] for name, time in COMPILED.items()})
    assert sum(found.causes.values()) == pytest.approx(found.idle[0])


def test_a_cost_that_leaves_less_than_nothing_of_a_cause_does_not_make_more_of_the_others(made, make_kineto):
    compiled_step(made, make_kineto, 0, 0)
    _, found = timed(made, 10, 10)
    # Idle: 200 - 12 * 10 - 30. Left of dispatch 2 - 10, of guards 4, of the wrapper 34 - 20, of the runtime 34 - 60.
    assert found.idle == us([50])
    left = {HOST_DISPATCH: 0, GUARDS: 4, WRAPPER: 14, RUNTIME: 0}
    assert found.causes == us_of({**left, PYTHON: 50 - 18})


def test_where_an_op_of_another_thread_runs_compiled_code_is_not_idle(made, make_kineto):
    compiled_step(made, make_kineto, 0, 0)
    # From 62 to 72 in the graph's own time, from 86 to 94 in CompiledFunction's (4), the region's (2) and linear's (1);
    # the last of it is beside the product.
    made.op("aten::exp", 62, 72, make_kineto.H, tid=make_kineto.AUTOGRAD)
    made.op("aten::exp", 86, 94, make_kineto.H, tid=make_kineto.AUTOGRAD)
    _, found = timed(made)
    assert found.idle == us([170 - 10 - 7])
    less = {
        HOST_DISPATCH: 1,
        GUARDS: 0,
        WRAPPER: 10,
        RUNTIME: 4 + 2,
        PYTHON: 0,
    }
    assert found.causes == us_of({name: time - less[name] for name, time in COMPILED.items()})


def test_reading_the_next_batch_is_input_and_no_dispatch_of_the_op_that_follows(made, make_kineto):
    # 100-190 in the loader, of it 120-130 an op and 140-145 a view; then until 195 Python before relu, and 5 after it
    step(made, make_kineto, 0, 0, wall=260)
    made.annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 100, 190)
    made.op("aten::clamp_min", 120, 130, make_kineto.H, "0")
    made.op("aten::view", 140, 145, make_kineto.H)
    made.op("aten::detach", 191, 192, make_kineto.H)
    made.op("aten::clamp_min", 195, 255, make_kineto.H, "0")
    counted, found = timed(made)
    assert counted.names_of_ops == ("aten::addmm", "aten::relu", "aten::clamp_min", "aten::clamp_min")
    assert found.causes == us_of({HOST_DISPATCH: 10 + 1, INPUT: 80, PYTHON: 40 + 4 + 5})
    # Before the third op 20 from relu's end on, before the loader; before the last one what follows the loader
    assert found.host[2:] == us([[0, 20], [1, 4]])
    assert found.calls.tolist() == [1, 0, 0, 1]  # the view of a batch is its loader's
    assert found.python == us([[10], [10], [20], [4]])


def test_a_step_that_shows_no_compiled_code_spent_nothing_on_it(made, make_kineto):
    compiled_step(made, make_kineto, 0, 0)
    step(made, make_kineto, 1, 1000, wall=200)  # as long, so that both are kept; causes 10 and 140
    _, found = timed(made)
    assert found.causes == us_of(
        {name: (time + {HOST_DISPATCH: 10, PYTHON: 140}.get(name, 0)) / 2 for name, time in COMPILED.items()}
    )


def test_a_trace_without_steps_has_no_times(made, make_kineto):
    made.op("aten::exp", 0, 40, make_kineto.H)
    trace = reader.read(made.write())
    with np.errstate(all="raise"):
        found = time_cpu.time_cpu(trace, counted_ops.NOTHING, PREFIX, EventCost())
    assert (found.own.shape, found.causes, found.events, found.joined) == ((0, 0), {}, 0, 0)


def test_a_real_step():
    """Identities only: how long anything takes is not this test's."""
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    x = torch.ones(3, 8)

    def run():
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()

    from roofline.core.step import Step
    from roofline.pytorch.recording import counting as torch_counting

    run()
    counted = count.count(torch_counting.record(Step(run=run)), Engine())
    trace = profiler.read(profiler.profiled(run, "cpu", 3))
    found = time_cpu.time_cpu(trace, counted, profiler.STEP, EventCost(1e-7, 1e-7))
    kept = 3 - found.dropped
    assert found.own.shape == (len(counted.ops), kept)
    assert (found.own >= 0).all()
    assert (found.own.sum(axis=0) > 0).all()
    assert found.joined == 1
    assert found.unseen == 0
    assert found.unmatched == {}
    assert found.events == len(counted.names)
    assert found.overlap == pytest.approx(np.zeros(len(counted.ops)), abs=1e-12)  # one thread
    assert found.corrected == pytest.approx(found.walls - 1e-7 * found.events)
    assert found.idle + found.own.sum(axis=0) == pytest.approx(found.corrected)
    assert sum(found.causes.values()) == pytest.approx(found.idle.mean())
    assert 0 < found.host.sum() < 1.001 * found.idle.mean()
    assert (np.diff(found.start) > 0).all()


def test_the_cost_of_an_event_is_a_difference_of_least_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of 10 calls: a view 10 µs and 40 watched, so 3 µs; a transposition 20 and 60, so 4 - 3 = 1 inside."""
    rounds = {"view": [12e-6, 40e-6, 10e-6, 45e-6], "transpose": [20e-6, 70e-6, 25e-6, 60e-6]}
    loops = iter(rounds.values())

    def loop(op: object, calls: int):
        assert calls == 10
        return iter(next(loops)).__next__

    monkeypatch.setattr(profiler, "_loop", loop)
    cost = profiler.event_cost(calls=10, rounds=2)
    assert (cost.outer, cost.inner) == (pytest.approx(3e-6), pytest.approx(1e-6))


@pytest.mark.xdist_group("timing")
def test_events_of_ops_that_do_nothing_are_calibrated() -> None:
    """A view is one event in no other, a transposition one in another; one inside costs no more."""
    cost = profiler.event_cost(calls=100, rounds=3)
    assert 0 <= cost.inner <= cost.outer
    x = torch.zeros(1, 1)

    def run() -> None:
        x.view(1, 1)
        x.transpose(0, 1)

    trace = profiler.read(profiler.profiled(run, "cpu", 1))
    (window,) = time_cpu.windows(trace, profiler.STEP)
    step = time_cpu.step_events(trace, counted_ops.NOTHING, *window, "roofline:")
    assert [trace.names[name] for name in step.events.name] == ["aten::view", "aten::transpose", "aten::as_strided"]
    assert step.parent.tolist() == [-1, -1, 1]


def part(wall: float, own: float) -> Timed:
    """One profiled step of one op: `own` of its `wall` [s], the rest idle."""
    return Timed(
        own=np.array([[own]]),
        overlap=np.zeros(1),
        start=np.zeros(1),
        walls=np.array([wall]),
        corrected=np.array([wall]),
        idle=np.array([wall - own]),
        host=np.array([[0.0, wall - own]]),
        causes={PYTHON: wall - own},
        joined=1.0,
        events=3,
        dropped=0,
        unmatched={},
        kernels=[()],
    )


def test_steps_recorded_one_by_one_are_held_against_a_plain_step() -> None:
    # A plain step takes 10 ms, so up to 12.5 ms is near: 10, 12 and 11 stay, 13 and 20 go. Mean idle time: (2+3+1)/3 ms
    steps = [(0.010, 0.008), (0.020, 0.015), (0.012, 0.009), (0.013, 0.009), (0.011, 0.010)]
    merged = merge([part(*step) for step in steps], 0.010)
    assert merged.walls.tolist() == [0.010, 0.012, 0.011]
    assert merged.own.tolist() == [[0.008, 0.009, 0.010]]
    assert merged.dropped == 2
    assert merged.causes[PYTHON] == pytest.approx(0.002)
    assert merged.host == pytest.approx(np.array([[0, 0.002]]))


def test_where_no_profiled_step_is_near_a_plain_one_their_own_median_decides() -> None:
    # Near 10 ms is one step, too few of them; of 11, 30, 31 and 60 the median is 30.5 and 1.25 of it 38.1
    merged = merge([part(0.011, 0.01), part(0.030, 0.02), part(0.031, 0.02), part(0.060, 0.05)], 0.010)
    assert merged.walls.tolist() == [0.011, 0.030, 0.031]
    assert merged.dropped == 1


def test_a_profiled_step_that_shows_nothing_is_not_joined() -> None:
    # A step of which the profiler recorded its mark alone: no counted op was seen, and none may pass as joined
    from roofline.core.step import Step
    from roofline.pytorch.recording import counting as torch_counting

    layer = torch.nn.Linear(4, 4)
    x = torch.ones(2, 4)
    nodes = torch_counting.record(Step(run=lambda: layer(x)))
    counted = count.count(nodes, Engine())
    trace = profiler.read(profiler.profiled(lambda: None, "cpu", 1))
    timed = time_cpu.time_cpu(trace, counted, profiler.STEP, EventCost())
    assert len(counted.ops) >= 1
    assert timed.unseen == len(counted.ops)
    assert timed.joined == 0.0
