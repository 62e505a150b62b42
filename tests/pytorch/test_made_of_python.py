"""Tensors that a step makes of Python's numbers: in events written by hand, and recorded live."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from roofline.pytorch.made_of_python import Made, made

NAMES = ("aten::empty", "aten::to", "aten::lift_fresh", "aten::add")
EMPTY, TO, LIFT, ADD = range(4)


def found(*events: tuple[int, int, int, int, int]) -> Made:
    """events: (name, thread, parent, start, end)."""
    return made(NAMES, *(np.asarray(column, np.int64) for column in zip(*events, strict=True)))


def times(of: Made) -> list[tuple[int, int, int]]:
    return list(zip(of.start.tolist(), of.end.tolist(), of.within.tolist(), strict=True))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ((EMPTY, TO, LIFT), [(10, 100, -1)]),
        ((EMPTY, TO, LIFT, EMPTY, TO, LIFT), [(10, 100, -1), (310, 400, -1)]),
        ((LIFT, TO, ADD), []),  # an array of numpy
        ((EMPTY, TO, ADD), []),  # a tensor that is not filled and another one that is converted
        ((EMPTY, ADD, LIFT), []),
        ((EMPTY, TO), []),
        ((), []),
    ],
)
def test_python_fills_a_tensor_between_two_events(names: Sequence[int], expected: list[tuple[int, int, int]]) -> None:
    """Each event begins 100 after the one before it and takes 10."""
    events = [(name, 1, -1, 100 * at, 100 * at + 10) for at, name in enumerate(names)]
    assert times(found(*events) if events else made(NAMES, *(np.zeros(0, np.int64),) * 5)) == expected


def test_events_of_other_threads_and_levels_are_no_part_of_it() -> None:
    three = [(EMPTY, 1, -1, 0, 10), (TO, 1, -1, 100, 110), (LIFT, 1, -1, 200, 210)]
    # What another thread runs meanwhile, and what lies inside of the second event.
    assert times(found(*three[:1], (ADD, 2, -1, 50, 60), *three[1:2], (ADD, 1, 2, 104, 106), three[2])) == [
        (10, 100, -1)
    ]
    assert times(found(three[0], (TO, 2, -1, 100, 110), three[2])) == []


def test_tensors_of_a_real_step() -> None:
    """Of lists and numbers three, and none of an array, of one that is allocated or of one that an op fills."""
    torch = pytest.importorskip("torch")
    from roofline.core.step import Step
    from roofline.pytorch import count, time_cpu
    from roofline.pytorch.aten.engine import Engine
    from roofline.pytorch.recording import counting, profiler
    from roofline.timing.timed import EventCost

    array, numbers = np.ones(4, np.float32), [float(number) for number in range(1000)]

    def run() -> object:
        x = torch.tensor(numbers) * 2.0 + torch.as_tensor(numbers)
        x = x + torch.tensor(3.0)
        return (
            x.sum() + torch.tensor(array).sum() + torch.full((4,), 2.0).sum() + torch.empty(4).to(torch.float64).size(0)
        )

    run()
    counted = count.count(counting.record(Step(run=run)), Engine())
    timed = time_cpu.time_cpu(
        profiler.read(profiler.profiled(run, "cpu", 3)), counted, profiler.STEP, EventCost(1e-7, 1e-7)
    )
    assert timed.made is not None
    assert timed.python is not None
    number, seconds = timed.made
    assert number == 3
    # All of it is idle time before ops, and what is left of Python's time before them is known apart from it.
    assert 0 < seconds < timed.idle.mean()
    assert timed.python.mean(axis=1).sum() + seconds <= timed.host[:, 1].sum() + 1e-6
    assert (timed.python.mean(axis=1) <= timed.host[:, 1] + 1e-12).all()


def test_tensors_that_a_loader_fills_are_its_input() -> None:
    """Eight of lists, all of them in reading the next batch: none of the step's own."""
    torch = pytest.importorskip("torch")
    from roofline.core.step import Step
    from roofline.pytorch import count, time_cpu
    from roofline.pytorch.aten.engine import Engine
    from roofline.pytorch.recording import counting, profiler
    from roofline.timing.timed import EventCost

    class Lists(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return 1000

        def __getitem__(self, _: int) -> object:
            return torch.tensor([1.0] * 1000)

    batches = iter(torch.utils.data.DataLoader(Lists(), batch_size=8))

    def run() -> object:
        return (next(batches) * 2).sum()

    run()
    counted = count.count(counting.record(Step(run=run)), Engine())
    timed = time_cpu.time_cpu(
        profiler.read(profiler.profiled(run, "cpu", 3)), counted, profiler.STEP, EventCost(1e-7, 1e-7)
    )
    assert timed.made == (0, 0)
