"""Run a measurement, whatever the framework: plain steps (T), profiled ones (P), and the count of their ops (C)."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from statistics import median
from typing import Generic

import msgspec

from roofline.core.device import Ceiling
from roofline.core.schema import Wall
from roofline.core.step import Step
from roofline.costs.counted import NOTHING
from roofline.errors import reason
from roofline.recording import clocks, contention, energy, garbage, protocol
from roofline.recording.asleep import asleep
from roofline.recording.assemble import assemble
from roofline.recording.bandwidth import bandwidth
from roofline.recording.recording import Plan, Recording, RunApi, Say
from roofline.recording.regular import RegularSteps
from roofline.recording.step_recorder import Plain, StepRecorder, Trace, Work
from roofline.recording.user_step import refuse_unrun
from roofline.units import seconds


def record(step: Step, plan: Plan, say: Say, recorder: StepRecorder[Trace]) -> Recording:
    """Time plain steps, profile a few and count their ops. Exceptions of the step pass through."""
    steps_of_loop = RegularSteps(step)
    step = steps_of_loop.step
    with recorder.scopes():
        plan.expect(0.0)
        first = steps_of_loop.measure(lambda: recorder.first(replace(step, run=_refuse_if_unrun(step.run))))
        say(f"first step {seconds(first)}")
        plan.expect(first)
        if plan.count_only:
            recorder.note_memory(step)
            work = Work(recorder.count(step))
            return assemble(step, plan, recorder, _counting_run(first), work)
        if not plan.plain_only:
            steps_of_loop.measure(lambda: recorder.prepare(step))
        plan.expect(first * protocol.warm_up(plan.device, first))
        typical = min(first, *(recorder.timed(step) for _ in range(protocol.warm_up(plan.device, first))))
        plan.expect(math.inf)
        steps = plan.steps or protocol.plain_steps(plan.device, typical, plan.budget)
        profiled = 0 if plan.plain_only else plan.profiled_steps or protocol.profiled_steps(typical, steps)
        estimate = seconds((steps + profiled) * typical)
        say(f"{steps} plain steps of about {seconds(typical)}, {profiled} profiled: about {estimate}")
        recorder.note_memory(step)
        plain, traces = _run_steps(steps_of_loop, plan, recorder, first, typical, steps, profiled)
        work = Work(NOTHING) if plan.plain_only else recorder.work(traces, median(plain.wall.steps))
        recording = assemble(step, plan, recorder, plain, work)
        # Last: its memory is not the step's, and it may load libraries of its own.
        return recording if plan.api is None else _add_api(recording, plan.api, step, recorder, say)


def _add_api(
    recording: Recording, api: tuple[str, RunApi], step: Step, recorder: StepRecorder[Trace], say: Say
) -> Recording:
    """Add as many steps in the library's function as there are plain ones, and a few plain ones after these.

    A failure here leaves the recording as it is, with a note of the reason: the bare step was measured.
    """
    name, run = api
    steps = len(recording.wall.steps)
    say(f"{steps + 1} steps of {name}, the first one not timed")
    try:
        with _quiet():
            timing = run(step, steps)
        after = _time_again(step, recorder, protocol.steps_after(steps))
    except Exception as error:
        note = f"how long {name} takes ({reason(error)[:300]})"
        return msgspec.structs.replace(recording, notes=(*recording.notes, note))
    return msgspec.structs.replace(recording, api=msgspec.structs.replace(timing, after=tuple(after)))


def _time_again(step: Step, recorder: StepRecorder[Trace], steps: int) -> list[float]:
    """Time plain steps again, after one that does not count [s each]."""
    with garbage.kept_out(recorder.timed(step)):
        return recorder.steady(step, steps)


@contextmanager
def _quiet() -> Iterator[None]:
    """Write progress bars, which the benchmarks had, to memory: in a terminal they would cover its text."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        yield


def _refuse_if_unrun(run: Callable[[], object]) -> Callable[[], object]:
    """Wrap a step so that it is refused where calling it runs none of its lines."""

    def seen() -> object:
        result = run()
        refuse_unrun(result, "The step")
        return result

    return seen


def _counting_run(first: float) -> Plain:
    """Make the T run of a run that only counts: it has a first step [s] and no plain one."""
    wall = Wall(steps=(), first=first)
    return Plain(wall, contention.since(contention.start()), clocks.Clocks(None), contention.System())


def _run_steps(
    steps_of_loop: RegularSteps,
    plan: Plan,
    recorder: StepRecorder[Trace],
    first: float,
    typical: float,
    steps: int,
    profiled: int,
) -> tuple[Plain, list[Trace]]:
    """Run the plain steps and the profiled ones among them; measure the memory bandwidth before and after."""
    before = bandwidth(plan, recorder.probing_threads())
    step, measure = steps_of_loop.step, steps_of_loop.measure
    with garbage.kept_out(typical), energy.metered(plan.device) as meter:
        turns = _Turns(steps_of_loop, recorder, meter)
        begin = contention.start()
        with clocks.watch_clock(plan.device) as watched:
            plan.expect(2 * (steps + profiled) * typical)
            if recorder.in_turns:
                turns.take(steps, profiled, typical)
            else:
                turns.take_halves(steps, profiled)
        usage = contention.since(begin)
        single = [measure(lambda: recorder.timed(step)) for _ in range(min(protocol.SINGLE_STEPS, steps))]
        watched_steps = protocol.watched_steps(typical)
        sleeps = measure(lambda: asleep(lambda: recorder.timed(step), watched_steps)) if profiled else None
        plan.expect(math.inf)
    after = bandwidth(plan, recorder.probing_threads())
    plain = Plain(
        wall=Wall(steps=tuple(turns.times), numbers=turns.numbers, first=first, single=tuple(single)),
        usage=usage,
        clocks=watched,
        system=turns.system,
        ran=turns.ran,
        compiling=None if recorder.compiling() is None else turns.compiling,
        ceilings=_best_ceilings(before, after),
        asleep=sleeps,
        energy=meter.energy(),
    )
    return plain, turns.traces


def _best_ceilings(before: Mapping[str, Ceiling], after: Mapping[str, Ceiling]) -> dict[str, Ceiling]:
    return {name: max(before[name], after[name], key=lambda ceiling: ceiling.value) for name in before.keys() & after}


class _Turns(Generic[Trace]):
    """Run stretches of plain steps and profiled steps between them, and hold the times and traces of both."""

    def __init__(self, steps_of_loop: RegularSteps, recorder: StepRecorder[Trace], meter: energy.Meter) -> None:
        self._step, self._steps_of_loop = steps_of_loop.step, steps_of_loop
        self._recorder, self._meter = recorder, meter
        self.times: list[float] = []
        #: Number of steps that ran before each plain one, and of all steps so far.
        self._numbers: list[int] = []
        self._all = 0
        self.traces: list[Trace] = []
        self.system = contention.System()
        self.ran, self.compiling = 0, 0.0

    def take(self, steps: int, profiled: int, typical: float) -> None:
        """Run stretches of plain steps, with profiled ones between them.

        A machine that others use too gets faster and slower by a quarter within seconds; in turns, both kinds of step
        see the same of it. Before each stretch go steps that do not count (`protocol.settling_plain`), no more than it
        has. typical: time of a step [s].
        """
        settling = protocol.settling_plain(typical)
        stretches = min(profiled + 1, max(2, steps // max(1, settling)))
        for number in range(1, stretches + 1):
            if stretch := steps * number // stretches - len(self.times):
                self._plain(stretch, min(settling, stretch))
            if number < stretches:
                for _ in range(profiled * number // (stretches - 1) - len(self.traces)):
                    self._profiled(1, protocol.settling(typical))

    def take_halves(self, steps: int, profiled: int) -> None:
        """Run half of the plain steps, the profiled ones, and the other half: the queue must stay filled, so no turns.

        The profiler's record is read afterwards: meanwhile the device would cool down and change its clock.
        """
        self._plain((steps + 1) // 2)
        self._recorder.note_memory(self._step)
        if profiled:
            self._profiled(profiled + 1, 0)  # the first profiled step fills the queue and is not used
        self._plain(steps - len(self.times))

    @property
    def numbers(self) -> tuple[int, ...]:
        """Return how many steps ran from the first plain one to each; nothing where no others ran in between."""
        numbers = tuple(number - self._numbers[0] for number in self._numbers)
        return () if numbers == tuple(range(len(numbers))) else numbers

    def _plain(self, steps: int, settling: int = 0) -> None:
        enough = len(self.times) + steps
        while (missing := enough - len(self.times)) > 0:
            self._plain_stretch(missing, settling)

    def _plain_stretch(self, steps: int, settling: int) -> None:
        """Run so many plain steps after some that do not count, and keep the times of the regular ones.

        What the system did and what was compiled is counted of a stretch as a whole: of one with other steps it is
        left out. The last step that settles lies in it: right behind the reading of the counters, a step takes longer.
        """
        garbage.collect_if_due()
        untimed = self._recorder.queued + bool(settling)
        for _ in range(settling - 1):
            self._recorder.timed(self._step)
        before, system = self._recorder.compiling() or 0.0, contention.System()
        self._steps_of_loop.runs.clear()
        with system.counting(), self._meter.stretch(steps + untimed if steps else 0):
            if settling:
                self._recorder.timed(self._step)
            times = self._recorder.steady(self._step, steps)
        regular = self._steps_of_loop.regular(times, untimed)
        self._all += max(0, settling - 1) + untimed
        for number, time in regular:
            self.times.append(time)
            self._numbers.append(self._all + number)
        self._all += steps
        if len(regular) == steps and all(self._steps_of_loop.runs):
            self.system.add(system)
            self.compiling += (self._recorder.compiling() or 0.0) - before
            self.ran += steps + untimed
        else:
            self._meter.forget_last()

    def _profiled(self, steps: int, settling: int) -> None:
        garbage.collect_if_due()

        def profiled() -> Trace:
            self._all += steps + settling
            return self._recorder.profiled(self._step, steps, settling)

        self.traces.append(self._steps_of_loop.measure(profiled, settling))
