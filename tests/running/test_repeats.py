"""Steps that repeat the one before are followed report by report: all comes out as if each report was looked at."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import pytest
from greenlet import greenlet

from roofline.core.step import Step
from roofline.measuring.in_loop import LoopRecording
from roofline.running.boundaries import ORDER
from roofline.running.boundaries._shapes import shapes_of
from roofline.running.imports import AfterImport
from roofline.running.measurement import Measurement, Wanted
from roofline.running.run import boundaries
from roofline.running.steps import Steps

OPTIMIZER, CALL, BACKWARD = (ORDER.index(name) for name in ("torch_optimizer", "torch_call", "torch_backward"))
PROFILER = ORDER.index("torch_profiler")


class _Measurement(Measurement):
    """Run a recorder that takes as many steps as it is told; what it keeps tells which they were."""

    takes = 7
    ended: list[int | bool]
    reports: Callable[[], None] = staticmethod(lambda: None)

    def another(self, say: Any) -> Measurement:
        measurement = super().another(say)
        measurement.reports = self.reports  # type: ignore[attr-defined]
        return measurement

    def begin(self, step: Any, backend: str | None, number: int) -> None:
        self._next = number + (self.wanted.every or 0)
        self.ended = [*getattr(self, "ended", []), number]

        def record(run: Callable[[], object]) -> Any:
            for _ in range(self.takes):
                run()
                self.ended.append(step.irregular())
                self.reports()

        self.running = LoopRecording(record)
        self.running.start()

    def _ended(self, number: int, running: Any) -> None:
        self.running = None
        self.measured.append(number)  # type: ignore[arg-type]


class Model:
    """Stand for a model that calls report."""

    def parameters(self) -> list[Any]:
        return []


def elsewhere(function: Callable[[], object]) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def program(steps: Steps, seed: int) -> None:
    """Run one of many programs: passes of unlike lengths over a few kinds of steps, other loops, marks, threads and
    coroutines.
    """
    chance = random.Random(seed)
    watchers = {rank: steps.watcher(rank) for rank in (OPTIMIZER, CALL, BACKWARD, PROFILER)}
    model, marks = Model(), chance.random() < 0.2

    def call(label: str = "Net", detail: object = (8, 0)) -> None:
        watchers[CALL].ended("net", label, model=model, detail=detail)  # type: ignore[arg-type]

    steps.measurement.reports = call  # type: ignore[attr-defined]
    kinds = [[(8, chance.randrange(2))] * chance.randrange(1, 3) for _ in range(2)]
    optimizers = [chance.choice([["a"], ["a"], ["a", "b"], ["a", "a", "b"]]), ["z"], []]
    for _ in range(chance.randrange(2, 6)):
        kind, updates = chance.choice(kinds), chance.choice([*optimizers, optimizers[0], optimizers[0]])
        for _ in range(chance.choice([1, 5, 20, 40, 150])):
            for update in updates:
                for detail in kind:
                    call(detail=detail)
                    if chance.random() < 0.01:
                        watchers[PROFILER].blocked("a profiler")
                        watchers[PROFILER].blocked(None)
                    watchers[BACKWARD].ended("backward", "backward()")
                if chance.random() < 0.01:
                    elsewhere(call)
                if chance.random() < 0.02:
                    greenlet(watchers[OPTIMIZER].ended).switch(update, update)
                else:
                    watchers[OPTIMIZER].ended(update, update)
            if not updates:
                call("Net (eval)", (4,))
            if marks:
                watchers[PROFILER].ended("step", "profile.step()")
            if chance.random() < 0.05:
                watchers[CALL].met("a checkpoint")
            if chance.random() < 0.02:
                watchers[OPTIMIZER].expect()
            if chance.random() < 0.01:
                block = watchers[PROFILER].blocked
                elsewhere(lambda: block("a profiler"))  # noqa: B023
            elif steps.measurement._blocked is not None:
                elsewhere(lambda: watchers[PROFILER].blocked(None))
        marks = marks and chance.random() < 0.5


def torch_program(steps: Steps, seed: int) -> None:
    """Run one of many trainings with the hooks of PyTorch, in which what tells calls apart changes at times."""
    import torch

    from roofline.running.boundaries import torch_backward, torch_call, torch_optimizer

    class Other(torch.nn.Linear):
        """Stand for a class that a module gets later."""

    for rank, boundary in ((OPTIMIZER, torch_optimizer), (CALL, torch_call), (BACKWARD, torch_backward)):
        boundary.watch(steps.watcher(rank))
    chance = random.Random(seed)
    nets = [torch.nn.Linear(3, 3) for _ in range(2)]
    optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets[: chance.randrange(1, 3)]]
    another = torch.optim.SGD(nets[0].parameters(), lr=0.1)
    steps.measurement.reports = lambda: nets[0](torch.ones(2, 3))  # type: ignore[attr-defined]

    def use_other_threads() -> None:
        for use in (lambda: nets[0](torch.ones(2, 3)), optimizers[0].step):
            if chance.random() < 0.01:
                elsewhere(use)
        if chance.random() < 0.01:
            loss = torch.ones(2, requires_grad=True).sum()
            elsewhere(loss.backward)

    for _ in range(chance.randrange(60, 160)):
        net = nets[chance.random() < 0.02]
        batch = torch.ones(2 + (chance.random() < 0.02), 3)
        if chance.random() < 0.02:
            net.train(not net.training)
        if chance.random() < 0.02:
            net.__class__ = Other  # type: ignore[assignment]
        if chance.random() < 0.02:
            greenlet(nets[1]).switch(batch)
        if chance.random() < 0.02:
            optimizers[-1] = torch.optim.SGD(nets[-1].parameters(), lr=0.1)
        use_other_threads()
        with torch.set_grad_enabled(chance.random() > 0.02):
            loss = net(batch).sum()
        use_other_threads()
        if loss.requires_grad:
            loss.backward()
        use_other_threads()
        for optimizer in optimizers:
            (another if chance.random() < 0.01 else optimizer).step()


def outcome(seed: int, program: Callable[[Steps, int], None] = program) -> Any:
    chance = random.Random(seed)
    wanted = Wanted(first=chance.choice([2, 40]), every=chance.choice([None, 150]), loops=3)
    steps = Steps(boundaries(), _Measurement(wanted, "loop", lambda text: None), AfterImport(print))
    try:
        program(steps, seed)
    finally:
        steps.close()
        steps.remove_hooks()
    assert steps.measurement.error is None
    return [
        loop.choice
        and (
            loop.choice.phrase,
            loop.choice.seen,
            {reason: aside.steps for reason, aside in loop.choice.kinds.asides.items()},
            loop._ends,
            loop.elsewhere,
            loop.measurement.measured,
            getattr(loop.measurement, "ended", None),
        )
        for loop in steps.loops
    ]


@pytest.mark.parametrize(("program", "number", "most"), [(program, 300, 3000), (torch_program, 60, 600)])
def test_what_is_found_does_not_depend_on_it(
    program: Callable[[Steps, int], None], number: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if program is torch_program:
        pytest.importorskip("torch")
    repeated = [0]
    followed = [outcome(seed, program) for seed in range(number)]
    make = Steps._may_repeat

    def never(self: Steps, choice: Any) -> bool:
        repeated[0] += make(self, choice)
        return False

    monkeypatch.setattr(Steps, "_may_repeat", never)
    for seed, found in enumerate(followed):
        assert outcome(seed, program) == found, seed
    assert repeated[0] > most, "most steps of most of these programs repeat others"


def test_a_step_takes_as_long_as_without_its_hooks_and_the_recorder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each step 1 s goes before a call, whose hook takes 0.25 s, and 2 s before its end; the recorder takes 5 s."""
    now, seen = [0.0], []
    for module in ("steps", "choice"):
        monkeypatch.setattr(f"roofline.running.{module}.perf_counter", lambda: now[0])

    class Records(_Measurement):
        def begin(self, step: Any, backend: str | None, number: int) -> None:
            def record(run: Callable[[], object]) -> Any:
                while True:
                    run()
                    seen.append(step.seconds())
                    now[0] += 5

            self.running = LoopRecording(record)
            self.running.start()

    steps = Steps(boundaries(), Records(Wanted(first=2), "loop", lambda text: None), AfterImport(print))
    call, update = steps.watcher(CALL), steps.watcher(OPTIMIZER)
    for _ in range(12):
        now[0] += 1
        began, now[0] = now[0], now[0] + 0.25
        call.ended("net", "Net", since=began)
        now[0] += 2
        update.ended("SGD", "SGD")
    assert steps._repeats is not None
    assert seen == [3.0] * len(seen)
    assert len(seen) == 9


def test_on_a_cpu_pytorchs_times_are_those_that_the_loop_tells() -> None:
    pytest.importorskip("torch")
    from roofline.pytorch.recording import profiler

    step = Step(run=list, seconds=lambda: 0.5)
    assert (profiler.timed(step, "cpu"), profiler.steady(step, "cpu", 2)) == (0.5, [0.5, 0.5])


def test_the_step_before_a_measurement_is_followed_in_full() -> None:
    """Its model is known by no report of steps that repeat it; those are the third to the 39th, and the 40th is not."""
    begun: list[Any] = []

    class Notes(_Measurement):
        def begin(self, step: Any, backend: str | None, number: int) -> None:
            begun.append((step.model, number))
            super().begin(step, backend, number)

    steps, model = Steps(boundaries(), Notes(Wanted(first=40), "loop", lambda text: None), AfterImport(print)), Model()
    for _ in range(50):
        steps.watcher(CALL).ended("net", "Net", model=model)
        steps.watcher(OPTIMIZER).ended("SGD", "SGD")
    assert begun == [(model, 40)]


def test_a_profiler_that_another_thread_starts_while_the_recorder_works_is_seen() -> None:
    measurement = _Measurement(Wanted(first=2), "loop", lambda text: None)
    steps = Steps(boundaries(), measurement, AfterImport(print))
    watcher = steps.watcher(OPTIMIZER)
    measurement.reports = lambda: elsewhere(lambda: watcher.blocked("torch.profiler"))
    for _ in range(9):
        watcher.ended("SGD", "SGD")
    assert (measurement.was_blocked, measurement.measured) == ("torch.profiler", [])


def test_a_step_with_another_report_takes_as_long_as_without_its_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock takes 1 s: 20 calls and an end look once as they begin; of the 8th step one differs."""
    now = [0.0]

    def clock() -> float:
        now[0] += 1
        return now[0]

    for module in ("steps", "choice"):
        monkeypatch.setattr(f"roofline.running.{module}.perf_counter", clock)
    steps = Steps(boundaries(), Measurement(Wanted(first=99), "loop", lambda text: None), AfterImport(print))
    call, update = steps.watcher(CALL), steps.watcher(OPTIMIZER)
    for number in range(8):
        for place in range(20):
            call.ended("net", "Net", detail=(number == 7 and place == 19,))
        update.ended("SGD", "SGD")
    assert steps.choice is not None
    assert steps.choice.seconds == pytest.approx(21, abs=1)


def test_a_symbolic_number_of_a_shape_is_not_compared() -> None:
    class Symbol:
        def __eq__(self, other: object) -> bool:
            raise AssertionError("this would bind it")

        __hash__ = None  # type: ignore[assignment]

    class Array:
        shape = (8, Symbol())

    assert shapes_of((Array(), 3), {"mask": Array()}) == ((8, None), (8, None))
