"""The plan of a measurement: in which order a recorder is asked for what, with one that only takes notes."""

from __future__ import annotations

import gc
import math
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import pytest

from roofline.core.schema import Api, Memory
from roofline.core.step import Step
from roofline.costs.counted import NOTHING
from roofline.errors import InputError
from roofline.recording import energy, garbage, record
from roofline.recording.protocol import plain_steps, warm_up
from roofline.recording.recording import Plan
from roofline.recording.regular import RegularSteps
from roofline.recording.step_recorder import Work

STEP = Step(run=lambda: None)


class Notes:
    """A recorder whose steps take 10 ms each, and of which 4 are in the queue when a stretch begins."""

    queued = 4

    def __init__(self, in_turns: bool) -> None:
        self.in_turns = in_turns
        self.asked: list[Any] = []
        self.compiled = 0.0

    def scopes(self) -> Any:
        return nullcontext()

    def first(self, step: Step) -> float:
        self.asked.append("first")
        return 1.0

    def count(self, step: Step) -> Any:
        self.asked.append("count")
        return NOTHING

    def prepare(self, step: Step) -> None:
        self.asked.append("prepare")

    def timed(self, step: Step) -> float:
        self.asked.append("timed")
        return 0.01

    def note_memory(self, step: Step) -> None:
        self.asked.append("memory")

    def probing_threads(self) -> int:
        return 7

    def compiling(self) -> float:
        return self.compiled

    def steady(self, step: Step, steps: int) -> list[float]:
        assert not gc.isenabled()
        self.asked.append(("plain", steps))
        self.compiled += 0.5
        return [0.01] * steps

    def profiled(self, step: Step, steps: int, settling: int) -> str:
        self.asked.append(("profiled", steps, settling))
        self.compiled += 100.0  # in no plain step
        return "trace"

    def work(self, traces: Any, typical: float) -> Work:
        self.asked.append(("work", len(traces), typical))
        return Work(NOTHING)

    def threads(self) -> int:
        return 1

    def memory(self, step: Step) -> Memory:
        return Memory(peak=5.0)

    def versions(self) -> dict[str, str]:
        return {}

    def switches(self, step: Step) -> dict[str, str]:
        return {}

    def environment(self) -> dict[str, str]:
        return {}

    def conditions(self, plain: Any, work: Work) -> dict[str, float]:
        self.plain = plain
        return {}

    def flags(self, step: Step, work: Work) -> tuple[str, ...]:
        return ()

    def compilation(self, rows: Any) -> None:
        return None


def ran(plan: Plan, in_turns: bool = True) -> Notes:
    recorder = Notes(in_turns)
    record.record(STEP, plan, lambda text: None, recorder)  # type: ignore[arg-type]
    return recorder


@pytest.fixture(autouse=True)
def _bandwidth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "bandwidth", lambda plan, threads: {})


BEFORE = ["first", "prepare", "timed", "timed", "memory"]
SINGLE = ["timed"] * 3
#: Steps of 10 ms that are watched for sleep.
WATCHED = ["timed"] * 3


def test_plain_and_profiled_steps_take_turns() -> None:
    """3 steps of 10 ms settle before each profiled one and each stretch, of which 9 plain ones make 3.

    What is counted of a stretch includes 4 steps that fill the queue, and the last one that settles.
    """
    recorder = ran(Plan(device="cpu", steps=9, profiled_steps=3))
    stretch, profiled = ["timed", "timed", "timed", ("plain", 3)], ("profiled", 1, 3)
    turns = [*stretch, profiled, *stretch, profiled, profiled, *stretch]
    assert recorder.asked == [*BEFORE, *turns, *SINGLE, *WATCHED, ("work", 3, 0.01)]
    assert (recorder.plain.ran, recorder.plain.compiling) == (9 + 3 * (4 + 1), 3 * 0.5)
    assert len(recorder.plain.wall.steps) == 9
    between = [4 + 3 + 4, 2 * 4 + 3 + 4]  # profiled ones with what settles before, what settles, four that fill a queue
    assert between == [11, 15]
    assert recorder.plain.wall.numbers == (0, 1, 2, 14, 15, 16, 32, 33, 34)
    assert recorder.plain.wall.single == (0.01,) * 3
    assert recorder.plain.asleep == pytest.approx(0.0, abs=1e-4), "its steps only take notes"


def test_a_queue_stays_filled_between_two_halves() -> None:
    """The first profiled step fills it, and the memory is that of plain steps."""
    recorder = ran(Plan(device="cpu", steps=5, profiled_steps=2), in_turns=False)
    halves = [("plain", 3), "memory", ("profiled", 3, 0), ("plain", 2)]
    assert recorder.asked == [*BEFORE, *halves, *SINGLE, *WATCHED, ("work", 1, 0.01)]
    alone = ran(Plan(device="cpu", steps=5, plain_only=True), in_turns=False)
    assert alone.asked == ["first", "timed", "timed", "memory", ("plain", 3), "memory", ("plain", 2), *SINGLE]
    assert recorder.plain.wall.numbers == (0, 1, 2, 10, 11), "three profiled ones, and four that fill a queue"
    assert alone.plain.wall.numbers == (0, 1, 2, 7, 8)


def test_steps_are_expected_to_return() -> None:
    """A first step of 1 s; two of warm-up, as long at most; twice 4 plain and 2 profiled steps of 10 ms; no others."""
    recorder = Notes(True)
    plan = Plan(
        device="cpu",
        steps=4,
        profiled_steps=2,
        expect=lambda seconds: recorder.asked.append(("expect", seconds)),
    )
    record.record(STEP, plan, lambda text: None, recorder)  # type: ignore[arg-type]
    expected = [(each[1], following) for each, following in pairwise(recorder.asked) if each[0] == "expect"]
    assert expected == [
        (0.0, "first"),
        (1.0, "prepare"),
        (2.0, "timed"),
        (math.inf, "memory"),
        (pytest.approx(0.12), "timed"),
        (math.inf, ("work", 2, 0.01)),
    ]


def test_no_stretch_is_shorter_than_what_settles_before_it() -> None:
    recorder = ran(Plan(device="cpu", steps=3, profiled_steps=5))
    turns = ["timed", ("plain", 1), *[("profiled", 1, 3)] * 5, "timed", "timed", ("plain", 2)]
    assert recorder.asked == [*BEFORE, *turns, *SINGLE, *WATCHED, ("work", 5, 0.01)]


def test_plain_steps_alone_and_counting_alone() -> None:
    plain = ran(Plan(device="cpu", steps=3, plain_only=True))
    assert plain.asked == ["first", "timed", "timed", "memory", *["timed"] * 3, ("plain", 3), *SINGLE]
    counted = ran(Plan(device="cpu", count_only=True))
    assert counted.asked == ["first", "memory", "count"]
    assert (counted.plain.ran, counted.plain.wall.steps) == (0, ())


def test_collecting_garbage_is_as_before() -> None:
    class Raises(Notes):
        def steady(self, step: Step, steps: int) -> list[float]:
            raise RuntimeError("mine")

    assert gc.isenabled()
    with pytest.raises(RuntimeError, match="mine"):
        record.record(STEP, Plan(device="cpu", steps=3), lambda text: None, Raises(True))  # type: ignore[arg-type]
    assert gc.isenabled()
    ran(Plan(device="cpu", steps=3))
    assert gc.isenabled()


@pytest.mark.parametrize(
    ("device", "typical", "steps"),
    # 60 s hold 20 steps of 1 s, 6 of 10 s and one of a minute, of which there are 3
    [("cuda", 1.0, 100), ("cpu", 0.0, 20), ("cpu", 1.0, 20), ("cpu", 10.0, 6), ("cpu", 60.0, 3)],
)
def test_as_many_plain_steps_as_the_time_allows(device: str, typical: float, steps: int) -> None:
    assert plain_steps(device, typical, 60.0) == steps


def test_long_steps_warm_up_once() -> None:
    assert (warm_up("cpu", 0.01), warm_up("cpu", 4.9), warm_up("cpu", 5.0)) == (2, 2, 1)


def test_beside_a_gpu_a_graph_is_recorded_and_replayed_before_anything_is_timed() -> None:
    assert warm_up("cuda", 60.0) == 3


async def waited() -> None:
    pass


@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        (
            lambda: (each for each in "ab"),
            "The step returned a generator, which has not run: leave out `yield`.",
        ),
        (
            waited,
            "The step returned a coroutine, which has not run: leave out `async`, or run it with asyncio.run.",
        ),
    ],
)
def test_a_step_of_which_calling_it_runs_nothing(step: Any, sentence: str) -> None:
    class Calls(Notes):
        def first(self, step: Step) -> float:
            step.run()
            return 1.0

    with pytest.raises(InputError) as refused:
        record.record(Step(run=step), Plan(device="cpu"), lambda text: None, Calls(in_turns=True))
    assert str(refused.value) == sentence


def timed(run: Any, steps: int = 4) -> tuple[Notes, Any]:
    """What is recorded with a function of a library that `run` stands for."""
    recorder = Notes(True)
    plan = Plan(device="cpu", steps=steps, profiled_steps=1, api=("fit", run))
    return recorder, record.record(STEP, plan, lambda text: None, recorder)  # type: ignore[arg-type]


def test_the_function_of_a_library_is_last_with_plain_steps_behind_it() -> None:
    """As many steps as plain ones, and a fifth of them again: of 20 steps 4. Its progress bar is not shown."""

    def run(step: Step, steps: int) -> Api:
        print("progress")
        recorder.asked.append(("fit", steps))
        return Api(name="fit", steps=(0.5,) * steps)

    recorder = Notes(True)
    plan = Plan(device="cpu", steps=20, profiled_steps=1, api=("fit", run))
    found = record.record(STEP, plan, lambda text: None, recorder)  # type: ignore[arg-type]
    assert recorder.asked[-4:] == [("work", 1, 0.01), ("fit", 20), "timed", ("plain", 4)]
    assert found.api == Api(name="fit", steps=(0.5,) * 20, after=(0.01,) * 4)
    assert gc.isenabled()


def test_what_fails_in_it_leaves_the_bare_step(capsys: pytest.CaptureFixture[str]) -> None:
    def run(step: Step, steps: int) -> Api:
        print("progress")
        raise ValueError("no such\nthing")

    _, found = timed(run)
    assert found.api is None
    assert found.notes == ("how long fit takes (ValueError: no such)",)
    assert len(found.wall.steps) == 4
    assert capsys.readouterr().out == ""
    _, whole = timed(lambda step, steps: Api(name="fit", steps=(0.5,) * steps), steps=3)
    assert whole.api.after == (0.01,) * 3, "a fifth, but three at least"


def test_steps_that_fill_the_queue_are_counted_and_profiled_ones_are_not() -> None:
    """5 plain steps in two stretches, of 3 and 2, each behind 4 that fill the queue; of one step there is one."""
    for plain, profiled, counted, stretches in ((5, 2, 4 + 3 + 4 + 2, 2), (1, 0, 4 + 1, 1)):
        meter = energy.Meter(lambda: 0.0, lambda: None)
        with garbage.kept_out(0.01):
            turns = record._Turns(RegularSteps(STEP), Notes(in_turns=False), meter)  # type: ignore[arg-type]
            turns.take_halves(plain, profiled)
        assert (sum(steps for _, _, steps in meter._stretches), len(meter._stretches)) == (counted, stretches)


def test_what_is_counted_of_a_stretch_is_left_out_where_the_last_step_that_settles_was_irregular() -> None:
    """Of 2 steps that settle and 3 plain ones, the second is unlike the others, or the first, which is not counted."""

    class Runs(Notes):
        queued = 0

        def timed(self, step: Step) -> float:
            step.run()
            return 0.01

        def steady(self, step: Step, steps: int) -> list[float]:
            return [self.timed(step) for _ in range(steps)]

    for other, counted in ((2, 0), (1, 1 + 3)):
        ran: list[int] = []
        step = Step(run=lambda ran=ran: ran.append(0), irregular=lambda ran=ran, other=other: len(ran) == other)  # type: ignore[misc]
        meter = energy.Meter(lambda: 0.0, lambda: None)
        with garbage.kept_out(0.01):
            turns = record._Turns(RegularSteps(step), Runs(in_turns=True), meter)  # type: ignore[arg-type]
            turns._plain(3, settling=2)
        assert (len(turns.times), turns.ran) == (3, counted)
