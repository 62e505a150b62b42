"""Windows of steps, and which device events belong to them."""

from __future__ import annotations

import numpy as np
import pytest

from roofline.errors import InputError
from roofline.traces import kineto, link, steps


@pytest.fixture(scope="module")
def trace(make_kineto):
    return kineto.read(make_kineto.training().write())


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
    return kineto.read(made.write())


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
    trace = marked(make_kineto, "other#", [(0, 30), (30, 60)])
    found = steps.find(trace)
    # From the first launch, at 1, to the end of the last kernel, at 50.
    assert (found.end - found.start).tolist() == [49_000]
    assert len(found) == 1


def test_a_device_event_belongs_where_it_was_launched(make_kineto):
    made = make_kineto.Trace()
    made.annotation("roofline:step#0", 0, 100)
    made.annotation("roofline:step#1", 100, 200)
    made.launch("in its own step", 10, 20, 60)
    made.launch("runs in the next step", 90, 110, 150)
    made.launch("launched between marks", 205, 210, 220)
    made.kernel("launched before the trace", 2, 8, 1)
    trace = kineto.read(made.write())
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
    trace = kineto.read(made.write())
    found = steps.find(trace)
    start, end = steps.device_windows(found, trace, steps.assign(found, trace, link.link(trace)))
    assert (start // 1000).tolist() == [0, 160, 310]
    assert (end // 1000).tolist() == [160, 310, 460]


def test_a_step_without_device_events_keeps_its_end_on_the_host(make_kineto):
    made = make_kineto.Trace()
    made.annotation("roofline:step#0", 0, 90)
    made.annotation("roofline:step#1", 100, 190)
    made.launch("k", 10, 20, 50)
    trace = kineto.read(made.write())
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
    trace = kineto.read(recorded(name))
    found = steps.find(trace)
    assert (found.source, len(found)) == (source, count)
    start, end = steps.device_windows(found, trace, steps.assign(found, trace, link.link(trace)))
    assert (end >= start).all()
