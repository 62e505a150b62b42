"""When the device is idle, and why."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofline.timing import idle
from roofline.traces import intervals
from roofline.traces.kineto import links, reader, steps


def analysed(made):
    trace = reader.read(made.write())
    windows = steps.find(trace)
    return trace, idle.causes(trace, links.link(trace), windows.start, windows.end)


def test_every_gap_of_the_synthetic_step_has_its_cause(make_kineto):
    trace, found = analysed(make_kineto.training())
    start = steps.find(trace).start
    gaps = [
        ((a - start[w]) // 1000, (b - start[w]) // 1000, idle.CAUSES[cause])
        for a, b, w, cause in zip(found.start, found.end, found.window, found.cause, strict=True)
    ]
    assert gaps == make_kineto.EXPECTED["gaps"] * 3
    assert found.window.tolist() == [0] * 9 + [1] * 9 + [2] * 9


def test_causes_add_up_to_the_window_without_the_busy_time(make_kineto):
    trace, found = analysed(make_kineto.training())
    seconds = found.seconds()
    expected = {cause: 3e-6 * us for cause, us in make_kineto.EXPECTED["causes"].items()}
    assert seconds == pytest.approx({**dict.fromkeys(idle.CAUSES, 0.0), **expected})
    assert set(found.detail.tolist()) <= set(range(len(idle.LABELS)))
    busy = intervals.length(trace.device.start, trace.device.end)
    assert busy == 3 * make_kineto.EXPECTED["busy"] * 1000
    assert (found.end - found.start).sum() == 3 * make_kineto.STEP * 1000 - busy


def test_shares_of_the_synthetic_step(make_kineto):
    trace = reader.read(make_kineto.training(1).write())
    device = trace.device
    shares = intervals.shares(device.start, device.end, device.name, len(trace.names)) / 1000
    named = {
        "all-reduce": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "weight gradient": "sm80_gemm_f32f32_nt",
        "bias gradient": "void at::native::reduce_kernel<128, 4, SumOps>",
    }
    found = {key: shares[trace.names.index(name)] for key, name in named.items()}
    assert found == pytest.approx(make_kineto.EXPECTED["shares"])
    assert shares.sum() == pytest.approx(make_kineto.EXPECTED["busy"])


# One gap that begins at 100, in a window from 0 to `end`.


def gap(make_kineto, end, before="first"):
    """A step whose device is busy with the kernel `before` from 0 to 100; the test adds what ends the gap."""
    made = make_kineto.Trace()
    made.annotation("roofline:step#0", 0, end)
    made.op("aten::first", 0, 8)
    made.launch(before, 1, 0, 100)
    return made


def detail(made):
    _, found = analysed(made)
    assert len(found) == 1
    label = idle.LABELS[found.detail[0]]
    assert idle.DETAILS[label] == found.cause[0]
    return label


@pytest.mark.parametrize(
    ("called", "start", "label"),
    [
        (50, 104, "kernel-to-kernel latency"),  # 4 µs, as long as it may be
        (50, 105, "queued, waiting for work not in the trace"),
        (95, 105, "launch latency"),  # started 10 µs after it was called
        (94, 105, "queued, waiting for work not in the trace"),
        (97, 120, "launch call in progress"),  # returned at 101
        (101, 110, "Python between ops"),
    ],
)
def test_where_the_launch_was_decides(make_kineto, called, start, label):
    made = gap(make_kineto, start + 10)
    made.launch("k", called, start, start + 10)
    assert detail(made) == label


def paced(make_kineto, kernel, ahead, before=1000):
    """Six kernels of `kernel` µs, each called `ahead` µs before the last one ends, that start 2 µs after that.

    The first one was launched `before` µs on an idle device, which took 3 µs to start it.
    """
    made = make_kineto.Trace()
    made.annotation("roofline:step#0", 0, before + 10 * kernel)
    made.op("aten::first", 0, before + 10 * kernel)
    made.launch("k", 1, 4, 10)
    made.launch("k", before, before + 3, ends := before + 3 + kernel)
    for _ in range(6):
        made.launch("k", ends - ahead, ends + 2, ends + 2 + kernel)
        ends += 2 + kernel
    return analysed(made)[1]


@pytest.mark.parametrize(
    ("ahead", "label"),
    [
        # The launch reaches the device 3 µs after its call: 2 or 1 µs after the gap of 2 µs opened, half of it or more.
        (1, "launch call in progress"),
        (2, "launch call in progress"),
        # It was there when the gap opened, so that the 2 µs are the device's.
        (3, "kernel-to-kernel latency"),
        (20, "kernel-to-kernel latency"),
    ],
)
def test_a_short_gap_is_the_hosts_where_the_launch_was_on_its_way(make_kineto, ahead, label):
    found = paced(make_kineto, kernel=30, ahead=ahead)
    short = found.detail[found.end - found.start == 2000].tolist()
    assert [idle.LABELS[each] for each in short] == [label] * 6


def test_without_a_launch_on_an_idle_device_an_empty_queue_tells(make_kineto):
    # No gap was ended late, so a launch takes no more than the shortest seen, 8 µs. The kernel of 30 µs before was
    # running when the next one was called, 6 µs before its end: nothing else was queued. One of 5 µs was not.
    for kernel, label in ((30, "launch latency"), (5, "kernel-to-kernel latency")):
        made = make_kineto.Trace()
        made.annotation("roofline:step#0", 0, 2 * kernel + 2)
        made.launch("k", -20, 0, kernel)
        made.launch("k", kernel - 6, kernel + 2, 2 * kernel + 2)
        assert detail(made) == label


def test_a_launch_that_is_missing_gives_no_cause(make_kineto):
    made = gap(make_kineto, 210)
    made.kernel("k", 200, 210, 1)
    assert detail(made) == "launch not in the trace"


@pytest.mark.parametrize("beside", ["before", "after"])
def test_queued_next_to_a_collective_waits_for_it(make_kineto, beside):
    names = {"before": ("ncclKernel", "k"), "after": ("k", "ncclKernel")}[beside]
    made = gap(make_kineto, 160, before=names[0])
    made.launch(names[1], 50, 150, 160)
    assert detail(made) == "after a collective"


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("aten::work", "op dispatch"),
        ("gloo:all_reduce", "host waits for a collective"),
        ("c10d::allreduce_", "op dispatch"),  # NCCL's are enqueued
        ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "data loader"),
        ("TorchDynamo Cache Lookup", "compilation or guards"),
        ("compile_fx.<locals>.bw_compiler (dynamo_timed)", "compilation or guards"),
    ],
)
@pytest.mark.parametrize(("end", "enough"), [(150, True), (149, False)])
def test_what_fills_half_of_the_delay_is_its_cause(make_kineto, name, label, end, enough):
    made = gap(make_kineto, 220)
    made.op(name, 100, end)  # the launch comes at 200: half is 50
    made.launch("k", 200, 210, 220)
    assert detail(made) == (label if enough else "Python between ops")


@pytest.mark.parametrize(("start", "label"), [(55, "after a blocking call"), (57, "Python between ops")])
def test_a_wait_is_the_cause_if_it_lasted_half_as_long_as_the_gap(make_kineto, start, label):
    made = gap(make_kineto, 220)
    made.call("cudaStreamSynchronize", start, 110)  # the gap lasts 110: half is 55
    made.launch("k", 200, 210, 220)
    assert detail(made) == label


@pytest.mark.parametrize(("called", "label"), [(120, "after a blocking call"), (121, "Python between ops")])
def test_a_pause_after_a_wait_is_the_hosts(make_kineto, called, label):
    """A launch of 4 µs comes 1 µs after the one before, and ten times that after the wait; or more."""
    made = make_kineto.Trace()
    made.annotation("roofline:step#0", 0, 220)
    made.op("aten::first", 0, 8)
    for number in range(20):  # a kernel of 5 µs each, up to 110
        made.launch("k", 5 * number, 10 + 5 * number, 15 + 5 * number)
    made.call("cudaEventRecord", 99, 99)  # no launch, however soon it follows
    made.call("cudaStreamSynchronize", 99, 110)
    made.launch("k", called, called + 1, 220)
    _, found = analysed(made)
    assert idle.LABELS[found.detail[-1]] == label


@pytest.mark.parametrize(("end", "label"), [(150, "host waits for a collective"), (149, "op dispatch")])
def test_a_host_that_blocks_in_a_collective_waits_for_it(make_kineto, end, label):
    made = gap(make_kineto, 220)
    made.op("c10d::allreduce_", 100, 150)
    made.call("cudaStreamSynchronize", 100, end)
    made.launch("k", 200, 210, 220)
    assert detail(made) == label


def test_what_a_device_takes_between_queued_kernels_is_no_time_of_its_host(make_kineto):
    made = gap(make_kineto, 220)
    made.launch("k", 10, 103, 220)
    _, found = analysed(made)
    assert found.seconds()["other"] == pytest.approx(3e-6)
    assert not found.before_kernels(np.asarray([0, 0]), 1, 1).any()


def test_a_wait_on_a_thread_that_launches_nothing_is_no_cause(make_kineto):
    made = gap(make_kineto, 220)
    made.call("cudaEventSynchronize", 10, 110, tid=999)
    made.launch("k", 200, 210, 220)
    assert detail(made) == "Python between ops"


def test_a_call_of_the_driver_that_fills_the_delay(make_kineto):
    made = gap(make_kineto, 220)
    made.call("cudaMalloc", 110, 180)
    made.launch("k", 200, 210, 220)
    assert detail(made) == "driver call"


@pytest.mark.parametrize(
    ("name", "size", "label"),
    [
        ("Memcpy HtoD (Pageable -> Device)", 1024, "before a copy to the device"),
        ("Memcpy HtoD (Pageable -> Device)", 4, "Python between ops"),
        ("MemcpyH2D", 1024, "before a copy to the device"),
        ("Memcpy Unknown (Pinned -> Device)", 1024, "before a copy to the device"),
        ("Memcpy DtoH (Device -> Pageable)", 1024, "Python between ops"),
    ],
)
def test_a_batch_that_is_copied_late_is_data_input(make_kineto, name, size, label):
    made = gap(make_kineto, 220)
    made.copy(name, 210, 220, made.call("cudaMemcpyAsync", 200, 205), size)
    assert detail(made) == label


def test_the_end_of_the_window_ends_the_last_gap(make_kineto):
    made = gap(make_kineto, 300)
    _, found = analysed(made)
    assert (found.end - found.start).tolist() == [200_000]
    assert found.ended_by.tolist() == [-1]
    assert idle.CAUSES[found.cause[0]] == "host dispatch"


def test_events_without_length_neither_end_nor_fill_a_gap(make_kineto):
    made = gap(make_kineto, 220)
    made.launch("k", 200, 210, 220)
    made.launch("nothing", 120, 150, 150)
    assert detail(made) == "Python between ops"


def test_no_windows_have_no_gaps(make_kineto):
    trace = reader.read(make_kineto.training(1).write())
    none = np.zeros(0, np.int64)
    found = idle.causes(trace, links.link(trace), none, none)
    assert len(found) == 0
    assert sum(found.seconds().values()) == 0


def test_a_trace_of_a_cpu_tells_nothing_about_a_device(make_kineto):
    made = make_kineto.Trace()
    made.annotation("roofline:step#0", 0, 100)
    made.op("aten::add", 0, 10)
    _, found = analysed(made)
    assert len(found) == 0


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6)), max_size=12),
    st.lists(st.integers(0, 40), max_size=8, unique=True),
    st.booleans(),
)
def test_gaps_are_what_is_free_in_each_window(busy, edges, touching):
    edges = sorted(edges)
    pairs = list(pairwise(edges))
    pairs = pairs if touching else pairs[::2]
    columns = [np.array([pair[i] for pair in pairs], np.int64) for i in range(2)]
    start = np.array([b[0] for b in busy], np.int64)
    end = start + np.array([b[1] for b in busy], np.int64)
    low, high, window = idle._gaps(start, end, *columns)
    taken = {t for a, b in zip(start, end, strict=True) for t in range(a, b)}
    for index, (a, b) in enumerate(pairs):
        mine = window == index
        found = [t for x, y in zip(low[mine], high[mine], strict=True) for t in range(x, y)]
        assert found == [t for t in range(a, b) if t not in taken]
    assert (high > low).all()


def test_idle_of_a_recorded_trace(recorded):
    trace = reader.read(recorded("h100_bert_small_infer.json.gz"))
    device = trace.device
    found = idle.causes(trace, links.link(trace), device.start.min()[None], device.end.max()[None])
    seconds = found.seconds()
    assert sum(seconds.values()) == pytest.approx(3.598e-3, rel=1e-3)
    # One launch after another from Python, with the device idle 92 % of the time.
    assert seconds["host dispatch"] > 0.95 * sum(seconds.values())


def test_a_queued_device_is_not_blamed_on_the_host(recorded):
    trace = reader.read(recorded("v100_recsys_train.json.gz"))
    device = trace.device
    found = idle.causes(trace, links.link(trace), device.start.min()[None], device.end.max()[None])
    seconds = found.seconds()
    assert seconds["other"] > 0.9 * sum(seconds.values())
