"""What reports of boundaries come to: the order of them, other threads, and what was measured before."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from roofline.errors import MeasurementError
from roofline.measuring.in_loop import LoopRecording
from roofline.running.boundaries import ORDER
from roofline.running.boundaries._functions import CompiledFunctions
from roofline.running.imports import AfterImport
from roofline.running.measurement import Measurement, Wanted
from roofline.running.run import boundaries
from roofline.running.steps import Steps, StepWatcher

OPTIMIZER, GENERATE, CALL = (ORDER.index(name) for name in ("torch_optimizer", "transformers_generate", "torch_call"))


class _Measurement(Measurement):
    """Note what recordings begin with, and run a recorder that only takes the steps."""

    begun: tuple[Any, str | None, int] | None = None

    def begin(self, step: Any, backend: str | None, number: int) -> None:
        self.begun = step, backend, number

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
    return Steps(boundaries(), measurement, AfterImport())


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
