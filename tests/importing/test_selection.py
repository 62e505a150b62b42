"""Steps chosen by hand, of the training step of tests/data/make_kineto.py: 900 µs long, one every 1000 µs."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from roofline.errors import InputError
from roofline.importing import cpu, gpu, selection
from roofline.importing.selection import Selection
from roofline.importing.work.costs import Costs
from roofline.traces.kineto import reader


def read(made, **chosen):
    asked = Selection(**chosen)
    return gpu.read(selection.trimmed(reader.read(made.write()), asked), Costs(), selection=asked)


@pytest.mark.parametrize(
    ("numbers", "selected"),
    [((2, 4), (1, 2, 3)), ((4, None), (1, 2)), ((None, 1), (0, 1)), ((0, 0), (0,)), ((5, 5), (1,))],
)
def test_steps_by_number(make_kineto, numbers, selected):
    """Of those that are looked at: the chosen ones, and the one before them, whose end is the first one's begin."""
    found = read(make_kineto.training(6), numbers=numbers)
    assert (len(found.steps), found.chosen.selected) == (6, selected)
    # On the device a step lasts from the end of the one before; the first from 0 to its end, at 860.
    assert found.timed.walls == pytest.approx(
        [860e-6 if n == 0 and numbers[0] in (0, None) else 1e-3 for n in selected]
    )


def test_steps_by_number_are_never_outliers(make_kineto):
    """Their ends are at 50, 150, 290 and 350 µs: they last 100, 140 and 60 µs, and only 100 is near the median."""
    made = make_kineto.Trace()
    for number, end in enumerate((50, 150, 290, 350)):
        zero = 100 * number
        made.annotation(f"ProfilerStep#{number}", zero, zero + 90)
        made.op("aten::relu", zero + 20, zero + 29, make_kineto.H)
        made.launch("relu", zero + 21, zero + 30, end)
    unasked, asked = read(made).chosen, read(made, numbers=(1, 3)).chosen
    assert (unasked.selected, unasked.dropped) == ((1,), 2)
    assert (asked.selected, asked.dropped) == ((1, 2, 3), 0)


def test_steps_that_are_not_there(make_kineto):
    with pytest.raises(InputError, match="steps 0 to 2 "):
        read(make_kineto.training(3), numbers=(3, 5))


def test_steps_between_marks(make_kineto):
    found = read(make_kineto.training(4), between="enumerate(DataLoader)")
    assert len(found.steps) == 3
    assert (found.steps.end - found.steps.start).tolist() == [1_000_000] * 3
    assert found.steps.rule == "from one enumerate(DataLoader) to the next"
    counted = read(make_kineto.training(4), between="roofline:step#")
    assert (len(counted.steps), counted.steps.rule) == (3, "from one roofline:step# to the next")
    op = read(make_kineto.training(4), between="aten::addmm")
    assert len(op.steps) == 3
    with pytest.raises(InputError, match="no two annotations or ops"):
        read(make_kineto.training(4), between="aten::nothing")


def test_a_part_of_the_trace(make_kineto):
    # A mark begins every ms and lasts 900 µs; the first op, from which the times count, begins at 96 µs.
    found = read(make_kineto.training(4), trim=(0.9, 2.9))
    assert found.steps.number.tolist() == [1, 2]
    assert found.timed.walls == pytest.approx([1e-3])  # from the end of the one before it
    # To 3.496 ms: the mark of step 3 ends at 3.9. Of the three that are left the first fills the queue.
    found = read(make_kineto.training(6), trim=(0, 3.4))
    assert (found.steps.number.tolist(), found.chosen.selected) == ([0, 1, 2], (1, 2))
    assert found.timed.walls == pytest.approx([1e-3] * 2)
    with pytest.raises(InputError, match="nothing begins"):
        read(make_kineto.training(4), trim=(4.0, None))
    # Three ops begin in the first 3 µs, at 96, 97 and 99; their copy is launched at 100 and begins at 110.
    with pytest.raises(InputError, match=r"holds no kernel; those of the whole are launched from 0\.004 to"):
        read(make_kineto.training(4), trim=(0, 0.003))


@pytest.mark.parametrize(("trim", "number"), [((0, 1.4), 0), ((0.5, 2.0), 1), ((0.5, 2.4), 1)])
def test_a_step_that_lies_alone_in_a_part(make_kineto, trim, number):
    """It lasts from its first device event, at 110 µs, to its last, at 860: what half steps beside it launch is not."""
    found = read(make_kineto.training(4), trim=trim)
    assert found.steps.number.tolist() == [number]
    assert found.timed.walls == pytest.approx([750e-6])


def test_a_whole_step_before_half_of_one(make_kineto):
    """Batches begin 5 µs after each ms; of the second one the part has 505 µs, of which no step is made."""
    text = make_kineto.training(6).write()
    text = text.replace(b"roofline:step#", b"iteration ").replace(b"Optimizer.step#", b"update ")
    asked = Selection(trim=(None, 1.414))
    part = selection.trimmed(reader.read(text), asked)
    found, whole = selection.find(part, asked)
    assert (len(found), whole.tolist()) == (2, [True, False])
    assert gpu.read(part, Costs(), selection=asked).chosen.selected == (0,)


def test_steps_of_a_cpu(make_kineto):
    made = make_kineto.Trace()
    for number in range(4):
        made.annotation(f"ProfilerStep#{number + 7}", 100 * number, 100 * number + 10 * (number + 1))
        made.op("aten::relu", 100 * number + 1, 100 * number + 9, make_kineto.H)
    found = cpu.read(reader.read(made.write()), Costs(), Selection(numbers=(8, 9)))
    assert found.timed.walls == pytest.approx([20e-6, 30e-6])
    assert found.steps.rule == "ProfilerStep#N, number 8 to 9 by hand"
    # 40 µs is more than 1.25 times the median of 10, 20, 30 and 40.
    found = cpu.read(reader.read(made.write()), Costs(), Selection(numbers=(7, 10)))
    assert (len(found.timed.walls), found.timed.dropped) == (4, 0)
    assert cpu.read(reader.read(made.write()), Costs()).timed.dropped == 1


def test_a_step_cut_in_half_is_none(make_kineto):
    """Five steps of 10 ms, of ten ops each: in the first 45 ms lie four of them and half of one."""
    made = make_kineto.Trace()
    for number in range(5):
        made.annotation(f"ProfilerStep#{number}", 10_000 * number, 10_000 * number + 9_990)
        for op in range(10):
            made.op("aten::relu", 10_000 * number + 1_000 * op, 10_000 * number + 1_000 * op + 900, make_kineto.H)
    asked = Selection(trim=(0, 45))
    found = cpu.read(selection.trimmed(reader.read(made.write()), asked), Costs(), asked)
    assert found.steps.number.tolist() == [0, 1, 2, 3]
    assert found.timed.walls == pytest.approx([9.99e-3] * 4)


def test_a_step_that_reaches_out_of_the_part_is_none(make_kineto):
    """From one optimizer's step, at 8 to 9 of each 10 ms, to the next: the first and the last go on outside."""
    made = make_kineto.Trace()
    for number in range(6):
        made.op("aten::relu", 10_000 * number, 10_000 * number + 5_000, make_kineto.H)
        made.annotation("Optimizer.step#SGD.step", 10_000 * number + 8_000, 10_000 * number + 9_000)
    asked = Selection(trim=(10, 45))
    trace = selection.trimmed(reader.read(made.write()), asked)
    found, whole = selection.find(trace, asked)
    # Cuts at 19, 29 and 39 ms: before the first lies what is left of the step that began at 9.
    assert ((found.end - found.start) // 1_000_000).tolist() == [9, 10, 10]
    assert whole.tolist() == [False, True, True]
    # An open begin is the trace's own.
    asked = Selection(trim=(None, 45))
    found, whole = selection.find(selection.trimmed(reader.read(made.write()), asked), asked)
    assert whole.tolist() == [True] * 4


@pytest.mark.parametrize(
    ("text", "ends"), [("3:8", (3, 8)), ("3:", (3, None)), (":8", (None, 8)), ("3", (3, 3)), ("0:0", (0, 0))]
)
def test_numbers_from_text(text, ends):
    assert selection.parse_numbers(text) == ends


@pytest.mark.parametrize("text", ["", ":", "8:3", "-1", "a:b", "1:2:3", "1.5"])
def test_what_is_no_number_of_a_step(text):
    with pytest.raises(InputError, match="--steps"):
        selection.parse_numbers(text)


@pytest.mark.parametrize(("text", "ends"), [("10:50.5", (10, 50.5)), ("10:", (10, None)), (":50", (None, 50))])
def test_times_from_text(text, ends):
    assert selection.parse_times(text) == ends


@pytest.mark.parametrize("text", ["", ":", "5", "8:3", "3:3", "-1:3", "nan:3", "1:inf", "a:b"])
def test_what_is_no_part_of_a_trace(text):
    with pytest.raises(InputError, match="--trim"):
        selection.parse_times(text)
