"""What reports of boundaries come to: the order of them, other threads, and what was measured before."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any
from weakref import WeakKeyDictionary

import pytest

from roofline.errors import MeasurementError
from roofline.measuring.in_loop import LoopRecording
from roofline.running.boundaries import ORDER
from roofline.running.boundaries._functions import CompiledFunctions
from roofline.running.boundaries.keras_fit import _trained
from roofline.running.imports import AfterImport
from roofline.running.measurement import Measurement, Wanted
from roofline.running.run import boundaries
from roofline.running.steps import Steps, StepWatcher

OPTIMIZER, GENERATE, CALL = (ORDER.index(name) for name in ("torch_optimizer", "transformers_generate", "torch_call"))


class _Measurement(Measurement):
    """Note what recordings begin with, and run a recorder that only takes the steps."""

    begun: tuple[Any, str | None, int] | None = None
    beginnings = 0

    def begin(self, step: Any, backend: str | None, number: int) -> None:
        self.begun = step, backend, number
        self.beginnings += 1

        def record(run: Callable[[], object]) -> Any:
            while True:
                run()

        self.running = LoopRecording(record)
        self.running.start()


@pytest.fixture
def measurement() -> _Measurement:
    return _Measurement(Wanted(first=2), "loop", lambda text: None)


@pytest.fixture
def steps(measurement: _Measurement) -> Steps:
    return Steps(boundaries(), measurement, AfterImport(print))


def elsewhere(function: Callable[[], object]) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def repeat(watcher: StepWatcher, times: int = 5, **report: Any) -> None:
    for _ in range(times):
        watcher.ended("source", "call", **report)


def test_an_optimizer_of_another_thread_is_not_waited_for(steps: Steps, measurement: _Measurement) -> None:
    repeat(steps.watcher(CALL))
    elsewhere(steps.watcher(OPTIMIZER).expect)
    assert steps.choice is not None
    assert steps.choice.rank == CALL
    steps.watcher(OPTIMIZER).expect()
    assert steps.choice is None


def test_a_profiler_of_another_thread_ends_the_recording_with_the_step(steps: Steps, measurement: _Measurement) -> None:
    watcher = steps.watcher(OPTIMIZER)
    repeat(watcher)
    elsewhere(lambda: watcher.blocked("torch.profiler"))
    assert measurement.running is not None
    repeat(watcher, 1)
    assert (measurement.running, measurement.error, measurement.was_blocked) == (None, None, "torch.profiler")


class Wordless(ValueError):
    """An exception whose text cannot be made."""

    def __str__(self) -> str:
        raise TypeError


def test_a_failure_in_another_thread_ends_the_recording_with_the_step(steps: Steps, measurement: _Measurement) -> None:
    watcher = steps.watcher(OPTIMIZER)
    repeat(watcher)
    elsewhere(lambda: steps.fail(Wordless()))
    assert measurement.running is not None
    repeat(watcher, 1)
    assert measurement.running is None
    assert isinstance(measurement.error, MeasurementError)


def test_what_was_measured_stays(steps: Steps, measurement: _Measurement) -> None:
    """Another source would break the period, and an optimizer goes in front of calls."""
    repeat(steps.watcher(CALL))
    choice, measured = steps.choice, [object()]
    measurement.measured = measured  # type: ignore[assignment]
    steps.watcher(CALL).ended("another", "call")
    steps.watcher(OPTIMIZER).expect()
    repeat(steps.watcher(OPTIMIZER))
    assert steps.choice is choice
    assert measurement.measured is measured
    assert len(measured) == 1


def test_sizes_are_those_of_the_chosen_boundary(steps: Steps, measurement: _Measurement) -> None:
    """A `generate` of 4 samples in a training says nothing of the batch of its steps."""
    for _ in range(5):
        steps.watcher(GENERATE).ended("model", "generate", sizes={"batch": 4})
        steps.watcher(OPTIMIZER).ended("Adam", "Adam")
    assert measurement.begun is not None
    assert (measurement.begun[0].batch, measurement.begun[1]) == (None, "torch")


def test_steps_that_the_program_says_have_the_backend_of_what_was_seen(steps: Steps, measurement: _Measurement) -> None:
    """PyTorch, imported too, would go first by the order of frameworks."""
    for _ in range(5):
        steps.watcher(ORDER.index("jax_call")).ended("infer", "infer()")
        steps.watcher(ORDER.index("said")).ended("step", "roofline.step()")
    assert measurement.begun is not None
    assert measurement.begun[1] == "jax"


def test_calls_are_not_kept_without_end(steps: Steps, measurement: _Measurement) -> None:
    """No step ends any more: 2^16 + 8 calls, of which 2^16 are kept."""
    repeat(steps.watcher(OPTIMIZER))
    assert steps.choice is not None
    repeat(steps.watcher(CALL), (1 << 16) + 8)
    assert len(steps.choice.calls) == 1 << 16


def test_a_call_in_another_thread_is_no_part_of_one_that_runs(steps: Steps, measurement: _Measurement) -> None:
    """It would not be counted, and its end would make what follows in the first thread an outermost call."""
    functions = CompiledFunctions()
    functions.inferring = steps.watcher(CALL)

    def call(label: str, function: Callable[..., object]) -> None:
        functions.call(label, label, function, (), {})

    def outer() -> None:
        elsewhere(lambda: call("other", lambda: None))
        call("inner", lambda: None)

    call("outer", outer)
    assert (steps.called, steps.elsewhere) == ({"outer()": 1}, {"other()": 1})


def measured(loops: int = 3) -> Steps:
    """Return the steps of a loop of updates, each behind a call, that was measured."""
    steps = Steps(
        boundaries(), _Measurement(Wanted(first=2, loops=loops), "loop", lambda text: None), AfterImport(print)
    )
    train(steps, 9)
    steps.measurement.close()
    steps.measurement.measured = [object()]  # type: ignore[list-item]
    train(steps, 1)
    return steps


def train(steps: Steps, times: int, calls: int = 1) -> None:
    for _ in range(times):
        repeat(steps.watcher(CALL), calls)
        steps.watcher(OPTIMIZER).ended("Adam", "Adam")


def infer(steps: Steps, times: int, detail: object = None) -> None:
    for _ in range(times):
        steps.watcher(CALL).ended("source", "call (eval)", detail=detail)


def test_another_loop_is_measured_while_the_first_one_rests() -> None:
    """A step of training has 2 calls; the third one behind it is the first that the other loop takes.

    Its period is known with the second call, and with the third it has ended the 2 steps that are left alone.
    """
    steps = measured()
    infer(steps, 4)
    assert steps.following is not None
    assert steps.following.measurement.running is None
    infer(steps, 1)
    assert steps.following.measurement.running is not None
    assert steps.following.choice is not None
    assert steps.following.choice.phrase == "from one call of call (eval) to the next"
    steps.following.measurement.close()
    steps.following.measurement.measured = [object()]  # type: ignore[list-item]
    infer(steps, 5, detail="larger")
    assert [loop.choice is not None for loop in steps.loops] == [True] * 3
    train(steps, 2)
    assert steps.choice is not None
    assert (steps.choice.rests, steps.choice.seen, len(steps.loops)) == (False, 12, 2)


def test_a_loop_that_is_interrupted_is_forgotten_and_one_of_those_that_are_measured_at_most() -> None:
    """Three pauses, each 5 calls longer than all before: two further loops begin, and the third does not.

    To a pause belong the 2 calls of the step that it is in, and the 2 of the next, by which it is seen to be over: 2,
    5 + 4 and 14 + 4 calls are the longest ones before.
    """
    steps, begun = measured(), []
    for calls in (2 + 3, 9 + 5, 18 + 5):
        infer(steps, calls)
        following: Any = steps.following
        begun.append(following is not None and following.measurement.running is not None)
        train(steps, 2)
        assert steps.following is None
        assert not steps.measures
    assert begun == [True, True, False]
    assert steps.choice is not None
    assert {reason: (aside.steps, aside.timed) for reason, aside in steps.choice.kinds.asides.items()} == {
        "call (eval)": (3, 1)
    }


def test_a_pause_as_long_as_one_before_is_no_other_loop() -> None:
    steps = measured()
    for _ in range(3):
        infer(steps, 5)
        train(steps, 2)
    assert steps._left == 1


def test_without_further_loops_none_is_looked_for() -> None:
    steps = measured(loops=1)
    infer(steps, 50)
    assert steps.loops == (steps,)


def test_a_long_episode_is_a_step_of_its_loop() -> None:
    """Where no two steps have the same number of calls, many of the usual ones are no other loop."""
    steps = Steps(boundaries(), _Measurement(Wanted(first=2, loops=3), "loop", lambda text: None), AfterImport(print))
    for calls in range(1, 9):
        train(steps, 1, calls)
    steps.measurement.close()
    steps.measurement.measured = [object()]  # type: ignore[list-item]
    for calls in (3, 90):
        train(steps, 1, calls)
    repeat(steps.watcher(CALL), 200)
    assert steps.loops == (steps,)
    infer(steps, 5)
    assert len(steps.loops) == 2


def test_an_optimizer_that_is_made_behind_the_first_loop_is_waited_for() -> None:
    steps = measured()
    steps.watcher(OPTIMIZER).expect()
    infer(steps, 9)
    assert steps.following is not None
    assert steps.following.choice is None


def test_the_updates_of_another_optimizer_are_another_loop() -> None:
    """It has the same class and the same calls between its updates; 9 + 1 updates were of the first one."""
    steps = measured()
    for _ in range(9):
        repeat(steps.watcher(CALL), 1)
        steps.watcher(OPTIMIZER).ended("another Adam", "Adam")
    assert steps.choice is not None
    assert steps.choice.seen == 10
    assert [loop.choice is not None and loop.choice.rank for loop in steps.loops] == [OPTIMIZER] * 2
    assert steps.measures


def test_a_fit_whose_classes_do_not_tell_its_weights_goes_on() -> None:
    """A list of callbacks that defines equality has no hash; the weights of a model may be a property that raises."""

    class Callbacks(list[int]):
        pass

    class Model:
        @property
        def trainable_variables(self) -> None:
            raise RuntimeError

    class Fit:
        pass

    trained: WeakKeyDictionary[object, Hashable] = WeakKeyDictionary()
    assert _trained(Callbacks(), Model(), trained) is None
    assert _trained(Fit(), Model(), trained) is None
    assert not trained
