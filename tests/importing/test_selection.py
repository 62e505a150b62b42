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


def test_steps_that_are_not_there(make_kineto):
    with pytest.raises(InputError, match="steps 0 to 2 "):
        read(make_kineto.training(3), numbers=(3, 5))


def test_steps_between_marks(make_kineto):
    found = read(make_kineto.training(4), between="enumerate(DataLoader)")
    assert len(found.steps) == 3
    assert (found.steps.end - found.steps.start).tolist() == [1_000_000] * 3
    assert found.steps.rule == "from one enumerate(DataLoader) to the next"
    op = read(make_kineto.training(4), between="aten::addmm")
    assert len(op.steps) == 3
    with pytest.raises(InputError, match="no two annotations or ops"):
        read(make_kineto.training(4), between="aten::nothing")


def test_a_part_of_the_trace(make_kineto):
    # The marks begin at 0, 1, 2 and 3 ms after the first event but for the loader's 5 µs and the first op at 96.
    found = read(make_kineto.training(4), trim=(0.9, 2.9))
    assert found.steps.number.tolist() == [1, 2]
    with pytest.raises(InputError, match="nothing begins"):
        read(make_kineto.training(4), trim=(4.0, None))


def test_steps_of_a_cpu(make_kineto):
    made = make_kineto.Trace()
    for number in range(4):
        made.annotation(f"ProfilerStep#{number + 7}", 100 * number, 100 * number + 10 * (number + 1))
        made.op("aten::relu", 100 * number + 1, 100 * number + 9, make_kineto.H)
    found = cpu.read(reader.read(made.write()), Costs(), Selection(numbers=(8, 9)))
    assert found.timed.walls == pytest.approx([20e-6, 30e-6])
    assert found.steps.rule == "ProfilerStep#N, number 8 to 9 by hand"


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
