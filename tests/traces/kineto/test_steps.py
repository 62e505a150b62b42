"""Windows of steps, and which device events belong to them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from roofline.errors import InputError
from roofline.traces.kineto import links as link
from roofline.traces.kineto import period, reader, steps


@pytest.fixture(scope="module")
def trace(make_kineto):
    return reader.read(make_kineto.training().write())


def test_our_own_marks_are_found(trace, make_kineto):
    found = steps.find(trace)
    assert found.source == "roofline:step#"
    assert found.number.tolist() == [0, 1, 2]
    assert found.start.tolist() == [0, 1_000_000, 2_000_000]
    assert (found.end - found.start).tolist() == [make_kineto.STEP * 1000] * 3


def test_a_prefix_must_be_followed_by_a_number_alone(trace):
    with pytest.raises(InputError, match=r"Optimizer\.step#N"):
        steps.find(trace, "Optimizer.step#")  # Optimizer.step#AdamW.step


def marked(make_kineto, name, windows):
    made = make_kineto.Trace()
    for number, (start, end) in enumerate(windows):
        made.annotation(f"{name}{number + 4}", start, end)
        made.launch("k", start + 1, start + 10, start + 20)
    return reader.read(made.write())


def test_profiler_steps_come_second(make_kineto):
    found = steps.find(marked(make_kineto, "ProfilerStep#", [(0, 30), (30, 60)]))
    assert found.source == "ProfilerStep#"
    assert found.number.tolist() == [4, 5]


def test_marks_that_overlap_are_no_steps(make_kineto):
    trace = marked(make_kineto, "ProfilerStep#", [(0, 40), (30, 60)])
    assert steps.find(trace).source == ""
    with pytest.raises(InputError, match="mark steps"):
        steps.find(trace, "ProfilerStep#")


def test_without_marks_the_trace_is_one_step(make_kineto):
    trace = marked(make_kineto, "other", [(0, 30), (30, 60)])
    found = steps.find(trace)
    # From the first launch, at 1, to the end of the last kernel, at 50.
    assert (found.end - found.start).tolist() == [49_000]
    assert (found.source, len(found)) == ("", 1)


def test_the_only_family_of_numbered_marks_comes_third(make_kineto):
    found = steps.find(marked(make_kineto, "iteration#", [(0, 30), (30, 60)]))
    assert (found.source, found.number.tolist()) == ("iteration#", [4, 5])


@pytest.mark.parametrize("change", [{5: "other#4"}, {5: "iteration#4"}, {4: "iteration#6"}])
def test_one_mark_or_marks_not_counted_up_are_no_family(make_kineto, change):
    # Two families of one each; the same number twice; counted down.
    made = make_kineto.Trace()
    for number in (4, 5):
        made.annotation(change.get(number, f"iteration#{number}"), 100 * number, 100 * number + 90)
        made.launch("k", 100 * number + 1, 100 * number + 10, 100 * number + 20)
    assert steps.find(reader.read(made.write())).source == ""


def test_two_families_tell_nothing(make_kineto):
    made = make_kineto.Trace()
    for number in range(3):
        made.annotation(f"a#{number}", 100 * number, 100 * number + 90)
        made.annotation(f"b#{number}", 100 * number + 10, 100 * number + 80)
        made.launch("k", 100 * number + 11, 100 * number + 20, 100 * number + 30)
    assert steps.find(reader.read(made.write())).source == ""


# Repetition


def without_marks(text, prefixes=("roofline:step#", "Optimizer.step#", "enumerate(DataLoader)#")):
    document = json.loads(text)
    events = document["traceEvents"]
    document["traceEvents"] = [e for e in events if not e["name"].startswith(prefixes)]
    return reader.read(json.dumps(document).encode())


def test_steps_without_marks_are_found_by_their_repetition(make_kineto):
    text = make_kineto.training(4).write()
    marks = reader.read(text)
    trace = without_marks(text)
    links = link.link(trace)
    found = steps.find(trace, links=links)
    assert (found.source, found.number.tolist()) == (steps.PERIODIC, [0, 1, 2, 3])
    # Every kernel of the step occurs in each: 19 events, 1 ms apart. The same events belong to the same steps.
    assert (found.repeated.count, found.repeated.share, found.repeated.similarity) == (4, 1.0, 1.0)
    assert found.repeated.period == 1_000_000
    assert str(found.repeated) == (
        "a block of kernels repeats 4 times, 1.00 ms from one to the next; kernels that run 4 times, or a multiple of "
        "it, take 100 % of device time"
    )
    expected = steps.assign(steps.find(marks), marks, link.link(marks))
    assert steps.assign(found, trace, links).tolist() == expected.tolist()
    # A window begins with the outermost op around its first launch: aten::to, at 96 of each ms.
    assert ((found.start[1:] + trace.origin - marks.origin) % 1_000_000 == 96_000).all()
    assert (found.start[1:] == found.end[:-1]).all()


def test_a_repetition_begins_where_all_of_it_does(make_kineto):
    # Twelve kernels a step, of which the first is launched twice in a row: it marks no step, and yet begins one.
    made = make_kineto.Trace()
    for number in range(4 * 12):
        kernel = max(1, number % 12)
        made.launch(f"k{kernel}", 100 * number, 100 * number + 10, 100 * number + 90)
    found = steps.find(reader.read(made.write()))
    assert found.source == steps.PERIODIC
    assert found.repeated.cuts.tolist() == [0, 12, 24, 36]
    assert found.start.tolist() == [0, 1_200_000, 2_400_000, 3_600_000]


def test_two_repetitions_are_reported_and_are_no_steps(make_kineto):
    found = steps.find(without_marks(make_kineto.training(2).write()))
    assert (found.source, len(found)) == ("", 1)
    assert (found.repeated.count, found.repeated.steps) == (2, False)


def test_a_pair_that_holds_little_of_the_time_is_no_repetition(make_kineto):
    # Every name occurs an even number of times, so that all of the time is in kernels of which there are pairs. But
    # what begins at "rare" holds 2 us of 402 and what repeats in a row are five kernels of 20 us, four times: 400.
    made = make_kineto.Trace()
    at = 0
    for name, length in [("rare", 1), ("rare", 1), *((f"k{number % 5}", 20) for number in range(20))]:
        made.launch(name, 2 * at + 10, 2 * at + 20, 2 * at + 20 + length)
        at += length
    found = steps.find(reader.read(made.write())).repeated
    assert (found.count, found.share) == (4, pytest.approx(400 / 402))
    # Without the five: twice a pair of kernels at both ends, and between them what occurs twice, but never in a row.
    made = make_kineto.Trace()
    for number, name in enumerate(["a", "b", "a", "b", *"cdefghijklmnopqrstuvwxyz", *"zyxwvutsrqponmlkjihgfedc"]):
        made.launch(name, 100 * number, 100 * number + 10, 100 * number + 90)
    assert steps.find(reader.read(made.write())).repeated is None


def layered(make_kineto, layers, kernels, other):
    """One step: an embedding, layers of some kernels of 10 us each, and a head; `other` us for each of the ends."""
    made = make_kineto.Trace()
    at = 0
    names = [("embedding", other), *((f"k{i}", 10) for _ in range(layers) for i in range(kernels)), ("head", other)]
    for name, length in names:
        made.launch(name, 2 * at + 10, 2 * at + 20, 2 * at + 20 + length)
        at += length
    trace = reader.read(made.write())
    return steps.find(trace)


def test_layers_are_no_steps(make_kineto):
    # 12 x 12 kernels of 10 us and two ends of 4 us: 1440 of 1448, which a share alone would take for 12 steps.
    found = layered(make_kineto, 12, 12, 4)
    assert (found.source, len(found)) == ("", 1)
    assert found.repeated.count == 12
    assert found.repeated.share == pytest.approx(1440 / 1448)
    assert not found.repeated.steps
    # Two ends of 100 us: 1440 of 1640 does not even reach the share.
    assert layered(make_kineto, 12, 12, 100).repeated.share == pytest.approx(1440 / 1640)


def test_a_loop_of_few_kernels_is_no_steps(make_kineto):
    made = make_kineto.Trace()
    for number in range(30):
        made.launch(f"k{number % 3}", 100 * number, 100 * number + 10, 100 * number + 90)
    found = steps.find(reader.read(made.write()))
    assert (len(found), found.repeated.count, found.repeated.steps) == (1, 10, False)


def test_a_trace_of_a_cpu_repeats_nothing(make_kineto):
    made = make_kineto.Trace()
    made.op("aten::add", 0, 10)
    found = steps.find(reader.read(made.write()))
    assert (len(found), found.repeated) == (1, None)


# The first step


def test_a_device_event_belongs_where_it_was_launched(make_kineto):
    made = make_kineto.Trace()
    made.annotation("roofline:step#0", 0, 100)
    made.annotation("roofline:step#1", 100, 200)
    made.launch("in its own step", 10, 20, 60)
    made.launch("runs in the next step", 90, 110, 150)
    made.launch("launched between marks", 205, 210, 220)
    made.kernel("launched before the trace", 2, 8, 1)
    trace = reader.read(made.write())
    found = steps.find(trace)
    step = steps.assign(found, trace, link.link(trace))
    by_name = dict(zip((trace.names[code] for code in trace.device.name), step.tolist(), strict=True))
    assert by_name == {
        "in its own step": 0,
        "runs in the next step": 0,
        "launched between marks": -1,
        "launched before the trace": 0,
    }


def test_windows_on_the_device_tile_the_run(make_kineto):
    made = make_kineto.Trace()
    for number in range(3):  # enqueued 100 apart, but the device needs 150 for each
        made.annotation(f"roofline:step#{number}", 100 * number, 100 * number + 90)
        made.launch("k", 100 * number + 10, 20 + 150 * number, 20 + 150 * number + 140)
    trace = reader.read(made.write())
    found = steps.find(trace)
    start, end = steps.device_windows(found, trace, steps.assign(found, trace, link.link(trace)))
    assert (start // 1000).tolist() == [0, 160, 310]
    assert (end // 1000).tolist() == [160, 310, 460]


def test_a_step_without_device_events_keeps_its_end_on_the_host(make_kineto):
    made = make_kineto.Trace()
    made.annotation("roofline:step#0", 0, 90)
    made.annotation("roofline:step#1", 100, 190)
    made.launch("k", 10, 20, 50)
    trace = reader.read(made.write())
    found = steps.find(trace)
    _, end = steps.device_windows(found, trace, steps.assign(found, trace, link.link(trace)))
    assert (end // 1000).tolist() == [50, 190]


def test_every_event_of_the_synthetic_steps_is_assigned(trace):
    found = steps.find(trace)
    assert np.bincount(steps.assign(found, trace, link.link(trace))).tolist() == [19, 19, 19]


@pytest.mark.parametrize(
    ("name", "source", "count"),
    [
        ("h100_bert_small_infer.json.gz", "ProfilerStep#", 1),
        ("a100_recsys_train.json.gz", "ProfilerStep#", 6),
        ("v100_recsys_train.json.gz", "ProfilerStep#", 6),
        ("b200_eager.json.gz", "", 1),
    ],
)
def test_steps_of_recorded_traces(recorded, name, source, count):
    trace = reader.read(recorded(name))
    found = steps.find(trace)
    assert (found.source, len(found)) == (source, count)
    start, end = steps.device_windows(found, trace, steps.assign(found, trace, link.link(trace)))
    assert (end >= start).all()


@pytest.mark.parametrize(
    ("name", "count", "share"),
    [
        ("a100_recsys_train.json.gz", 6, 0.89),  # the steps, but the window cuts the first
        ("b200_eager.json.gz", 18, 0.74),  # layers
        ("mi300x_vllm_decode_graph.json.gz", 12, 0.94),
        ("v100_recsys_train.json.gz", None, None),  # cut at its head
        ("h100_bert_small_infer.json.gz", None, None),
    ],
)
def test_repetition_in_recorded_traces(recorded, name, count, share):
    trace = reader.read(recorded(name))
    repeated = period.find(period.work(trace, link.link(trace)))
    if count is None:
        assert repeated is None
        return
    assert (repeated.count, repeated.steps) == (count, False)
    assert repeated.share == pytest.approx(share, abs=6e-3)
