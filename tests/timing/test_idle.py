"""When the device is idle, and why."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofline.core.vocabulary import DEVICE_WAITS
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
    assert found.window.tolist() == [0] * 11 + [1] * 11 + [2] * 11


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
    """A step whose device is busy with the kernel `before` from 0 to 100; the test adds what ends the gap.

    Its launch returned 6 µs before it started on an idle device, as that of another kernel before the step.
    """
    made = make_kineto.Trace()
    made.annotation("roofline:step#0", 0, end)
    launched_before(made)
    made.op("aten::first", -12, -4)
    made.launch(before, -10, 0, 100)
    return made


def launched_before(made):
    """Launch two kernels before the step, each from a thread of its own, that start 6 µs after their calls returned.

    The device may have been busy when the first one was launched: that one says nothing.
    """
    made.launch("k", -60, -50, -48, tid=301)
    made.launch("k", -40, -30, -28, tid=302)


def parts(made):
    """(start, end, label) of each idle time [µs]."""
    trace, found = analysed(made)
    zero = steps.find(trace).start[0]
    labels = [idle.LABELS[number] for number in found.detail.tolist()]
    assert [idle.DETAILS[label] for label in labels] == found.cause.tolist()
    times = (((found.start - zero) // 1000).tolist(), ((found.end - zero) // 1000).tolist())
    return list(zip(*times, labels, strict=True))


def detail(made):
    ((_, _, label),) = parts(made)
    return label


NOT_RECORDED = "waiting, cause not recorded"


@pytest.mark.parametrize(
    ("called", "start", "expected"),
    [
        (50, 104, [(100, 104, "kernel-to-kernel latency")]),  # 4 µs, as long as it may be
        (50, 105, [(100, 105, NOT_RECORDED)]),
        # A launch lasts 4 µs, and reaches the device 6 µs later: until then it is the host's.
        (95, 105, [(100, 105, "launch latency")]),
        (94, 105, [(100, 104, "launch latency"), (104, 105, "kernel-to-kernel latency")]),
        (97, 120, [(100, 107, "launch call in progress"), (107, 120, NOT_RECORDED)]),
        # Called late. Of the three launches on an idle device (6, 6 and 5 µs, or 6, 6 and 463) the median takes 6.
        (101, 110, [(100, 110, "launch call in progress")]),
        (190, 657, [(100, 200, "Python between ops"), (200, 657, NOT_RECORDED)]),
    ],
)
def test_the_host_has_what_lies_before_its_launch_has_reached_the_device(make_kineto, called, start, expected):
    made = gap(make_kineto, start + 10)
    made.launch("k", called, start, start + 10)
    assert parts(made) == expected


def paced(make_kineto, kernel, ahead, before=1000):
    """Six kernels of `kernel` µs, each called `ahead` µs before the last one ends, that start 2 µs after that.

    The first one was launched after `before` µs, when the device was idle, which started it 3 µs after the call began
    and 1 µs before it returned.
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
        # The call returns 4 µs after it began: after the gap of 2 µs has opened, or long before.
        (1, "launch call in progress"),
        (2, "launch call in progress"),
        (20, "kernel-to-kernel latency"),
    ],
)
def test_a_short_gap_is_the_hosts_where_the_launch_was_on_its_way(make_kineto, ahead, label):
    found = paced(make_kineto, kernel=30, ahead=ahead)
    short = found.detail[found.end - found.start == 2000].tolist()
    assert [idle.LABELS[each] for each in short] == [label] * 6


@pytest.mark.parametrize(
    ("samples", "copies", "label"),
    [
        (2, 0, "launch latency"),
        (1, 0, "kernel-to-kernel latency"),
        (0, 0, "kernel-to-kernel latency"),
        # Calls that return 1 µs after their copies have ended are none.
        (2, 4, "launch latency"),
        (0, 4, "kernel-to-kernel latency"),
    ],
)
def test_without_two_launches_on_an_idle_device_the_host_has_done_its_part_with_the_call(
    make_kineto, samples, copies, label
):
    # The second call returns 2 µs before the first kernel ends. Each of the samples took 6 µs from there to start.
    made = make_kineto.Trace()
    made.annotation("roofline:step#0", 0, 62)
    launched_before(made) if samples == 2 else made.kernel("k", -50, -48, 1)
    made.launch("k", -10, 0, 30) if samples else made.kernel("k", 0, 30, 2)
    for at in range(-25, -25 + 3 * copies, 3):
        made.copy("Memcpy DtoH (Device -> Pageable)", at, at + 1, made.call("cudaMemcpyAsync", at - 1, at + 2), 4)
    made.launch("k", 24, 32, 62)
    assert detail(made) == label


def test_a_copy_out_is_enqueued_when_its_call_begins(make_kineto):
    # It returns when the copy has ended. Called before the kernel ends, it makes no host late.
    made = gap(make_kineto, 220)
    made.copy("Memcpy DtoH (Device -> Pageable)", 103, 220, made.call("cudaMemcpyAsync", 50, 221), 4)
    assert detail(made) == "kernel-to-kernel latency"


def test_a_call_that_launches_for_long_is_the_hosts(make_kineto):
    # As one that loads the code of its kernel does: 1 µs after the device went idle, until 10 µs before the kernel.
    made = gap(make_kineto, 620)
    made.kernel("k", 610, 620, made.call("cudaLaunchKernel", 101, 600))
    assert parts(made) == [(100, 606, "launch call in progress"), (606, 610, "kernel-to-kernel latency")]


# What the device waits for: made by hand, as there is no GPU here


def waited(made):
    """The cause and the words of the only wait of the device."""
    _, found = analysed(made)
    (row,) = np.flatnonzero([idle.CAUSES[cause].startswith("waiting") for cause in found.cause])
    return idle.CAUSES[found.cause[row]], found.names[found.of[row]] if found.of[row] >= 0 else ""


def on_two_streams(make_kineto, recorded, event=True, start=106):
    """A kernel on stream 20, launched while one on stream 7 runs, that starts 6 µs after it ended.

    Stream 20 waits for an event of stream 9, whose last kernel before it is `late`.
    """
    made = gap(make_kineto, 600)
    made.launch("late", -5, 10, 60, stream=9)
    record = made.call("cudaEventRecord", 6, 7)
    made.launch("after the event", 10, 60, 90, stream=9)
    made.launch("before", 15, 20, 30, stream=20)
    if event:
        call = made.call("cudaStreamWaitEvent", 22, 23)
        if recorded:
            made.wait(20, 9, 30, call, record)
    made.launch("k", 30, start, 600, stream=20)
    return made


def test_a_recorded_wait_names_the_stream_and_its_last_work_before_the_event(make_kineto):
    made = on_two_streams(make_kineto, recorded=True)
    assert waited(made) == ("waiting for another stream", "stream 9: late on stream 9")
    seconds = analysed(made)[1].seconds()
    assert seconds["waiting for another stream"] == pytest.approx(6e-6)
    assert seconds["host dispatch"] == 0


@pytest.mark.parametrize("start", [107, 563])
@pytest.mark.parametrize(
    ("recorded", "of"),
    [(True, "after a wait for stream 9: late on stream 9"), (False, "cudaStreamWaitEvent before its launch")],
)
def test_a_wait_explains_no_more_than_the_latency_after_what_it_was_for(make_kineto, start, recorded, of):
    # A launch on an idle device takes 6 µs from the end of its call. The event was over when nothing ran, at 100.
    assert waited(on_two_streams(make_kineto, recorded, start=start)) == (NOT_RECORDED, of)


def test_an_event_of_no_stream_is_named_by_its_number(make_kineto):
    made = on_two_streams(make_kineto, recorded=False, event=False)
    made.wait(20, -1, 30, made.call("cudaStreamWaitEvent", 22, 23), 1)
    assert waited(made) == ("waiting for an event", "event 5")


def test_a_wait_of_another_stream_is_none_of_this_one(make_kineto):
    made = on_two_streams(make_kineto, recorded=True)
    made.events = [e for e in made.events if e["cat"] != "cuda_sync"]
    made.wait(21, 9, 30, made.correlation - 1, 1)
    assert waited(made) == (NOT_RECORDED, "")


def test_a_wait_that_the_work_before_had_is_over(make_kineto):
    made = on_two_streams(make_kineto, recorded=False, event=False)
    call = made.call("cudaStreamWaitEvent", 13, 14)
    made.wait(20, 9, 14, call, 1)
    assert waited(made) == (NOT_RECORDED, "")


@pytest.mark.parametrize(
    "key", ["stream", "wait_on_stream", "wait_on_cuda_event_id", "wait_on_cuda_event_record_corr_id"]
)
@pytest.mark.parametrize("number", [2**63, 2**70, -(2**70)])
def test_a_wait_with_a_number_that_no_stream_or_event_has_says_nothing(make_kineto, key, number):
    made = on_two_streams(make_kineto, recorded=True)
    made.events[-3]["args"][key] = number
    assert made.events[-3]["cat"] == "cuda_sync"
    assert waited(made) == (NOT_RECORDED, "")


def test_a_call_before_the_launch_tells_of_an_event(make_kineto):
    made = on_two_streams(make_kineto, recorded=False)
    assert waited(made) == ("waiting for an event", "cudaStreamWaitEvent before its launch")
    # Before another launch it is that one's.
    made.launch("other", 25, 31, 40, stream=21)
    assert waited(made) == (NOT_RECORDED, "")


@pytest.mark.parametrize(("start", "cause"), [(206, "waiting for a copy"), (207, NOT_RECORDED)])
def test_what_starts_as_soon_after_a_copy_as_a_launch_takes_waited_for_it(make_kineto, start, cause):
    made = gap(make_kineto, 300)
    made.copy("Memcpy HtoD (Pinned -> Device)", 100, 200, made.call("cudaMemcpyAsync", 20, 25), 4096)
    made.launch("k", 30, start, 300, stream=20)
    name = "Memcpy HtoD (Pinned -> Device) on stream 7" if cause == "waiting for a copy" else ""
    assert waited(made) == (cause, name)


# What the host was in


def functions(made):
    _, found = analysed(made)
    return [found.names[of] if of >= 0 else "" for of in found.of]


@pytest.mark.parametrize(
    ("end", "name"), [(156, "scipy/ndimage/_interpolation.py:800 zoom"), (155, "train.py:10 load")]
)
def test_a_gap_is_named_by_the_innermost_function_that_lasts_for_most_of_it(make_kineto, end, name):
    # The launch is called at 200 and reaches the device at 210: most of 110 is more than 55.
    made = gap(make_kineto, 220)
    made.launch("k", 200, 210, 220)
    made.frame("/home/me/train.py(3): main", -20, 220)
    made.frame("/home/me/train.py(10): load", 90, 199)
    made.frame("/usr/lib/python3/dist-packages/scipy/ndimage/_interpolation.py(800): zoom", 100, end)
    made.frame("<built-in function zoom_shift>", 101, end - 1)
    made.frame("/home/me/train.py(20): other", 160, 190)
    made.frame("/home/me/train.py(30): elsewhere", 100, 200, tid=999)
    assert functions(made) == [name]


@pytest.mark.parametrize(("calls", "name"), [(6, "resize.py:5 zoom"), (5, "train.py:10 load")])
def test_calls_of_one_function_count_together(make_kineto, calls, name):
    # Each takes 10 µs of 110, and calls itself for 9 of these.
    made = gap(make_kineto, 220)
    made.launch("k", 200, 210, 220)
    made.frame("/home/me/train.py(10): load", 101, 199)
    for at in range(110, 110 + 12 * calls, 12):
        made.frame("/home/me/resize.py(5): zoom", at, at + 10)
        made.frame("/home/me/resize.py(5): zoom", at + 1, at + 10)
    assert functions(made) == [name]


@pytest.mark.parametrize(("start", "op"), [(104, ()), (105, (0,))])
def test_a_step_without_waits_has_looked_for_them(make_kineto, start, op):
    # 4 µs are the device's own latency, 5 are a wait.
    made = gap(make_kineto, start + 10)
    made.launch("k", 50, start, start + 10)
    trace, found = analysed(made)
    table = found.by_op(np.zeros(len(trace.device), int), 1)
    assert (table.op, table.ns) == (op, (5000,) * len(op))


def test_a_queued_gap_is_of_no_function(make_kineto):
    made = gap(make_kineto, 220)
    made.launch("k", 10, 200, 220)
    made.frame("/home/me/train.py(3): main", -20, 220)
    assert functions(made) == [""]


def test_a_launch_that_is_missing_gives_no_cause(make_kineto):
    made = gap(make_kineto, 210)
    made.kernel("k", 200, 210, 1)
    assert detail(made) == "launch not in the trace"
    assert analysed(made)[1].seconds()[NOT_RECORDED] == pytest.approx(100e-6)


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
    own = seconds["other"] + sum(seconds[cause] for cause in DEVICE_WAITS)
    assert own > 0.9 * sum(seconds.values())
