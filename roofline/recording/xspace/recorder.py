"""Record a step whose framework profiles itself into XSpace bytes.

Counting needs no run of its own: the trace of a profiled step holds the programs that ran and the time of each of their
instructions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from statistics import median

from roofline.core.executor import GRAPHS, IN_GRAPHS, ON_CORE, PROGRAMS, WAITED
from roofline.core.schema import Compilation, Memory
from roofline.core.step import Step, scopes_through
from roofline.costs.counted import PHASES, Counted
from roofline.errors import MeasurementError
from roofline.recording import process
from roofline.recording import record as runs
from roofline.recording.assemble import JOINED
from roofline.recording.contention import Usage
from roofline.recording.garbage import collect_if_due
from roofline.recording.protocol import IN_FLIGHT
from roofline.recording.recording import Plan, Recording, Say
from roofline.recording.rows import OpTables
from roofline.recording.step_recorder import Plain, Work
from roofline.recording.xspace import probes, queue
from roofline.recording.xspace.framework import Framework, Read
from roofline.recording.xspace.step_end import run_to_end
from roofline.timing import executor
from roofline.timing.async_dispatch import is_async
from roofline.timing.timed import Timed, merge
from roofline.traces.annotations import SETTLING, STEP
from roofline.traces.xplane import command_buffers, marks, reader
from roofline.traces.xplane.reader import XTrace


def record(step: Step, plan: Plan, say: Say, framework: Framework) -> Recording:
    """Time plain steps (T), profile a few (P), and count the ops of the profiled ones (C)."""
    return runs.record(step, plan, say, XSpaceStepRecorder(plan, framework))


def profiled_step(step: Step, framework: Framework, settling: int, steps: int = 1) -> XTrace:
    """Trace marked steps, after `settling` ones that do not count; a mark ends with its step, as a plain one does."""
    delays: list[float] = []

    def run() -> None:
        for _ in range(settling):
            with framework.mark(SETTLING):
                framework.wait(step.run())
        for number in range(steps):
            ended = run_to_end(step.run, framework, partial(framework.mark, f"{STEP}#{number}"))
            delays.append(ended.notice_delay)

    return marks.shortened(reader.read(framework.profiled(run)), STEP, delays)


class XSpaceStepRecorder:
    """Record steps as a `StepRecorder`; its traces are `XTrace`s."""

    def __init__(self, plan: Plan, framework: Framework) -> None:
        """Begin without knowledge of the memory, which the first step gives."""
        self._plan, self._framework = plan, framework
        self._memory = Memory()
        #: Kernels of the traces that command buffers launched, and of how many.
        self._replayed = (0, 0)
        self._graphs: tuple[float, float] | None = None
        #: For each plain step, how long this thread was on a core, and how long it waited for results [s].
        self._host: list[tuple[float, float]] = []
        #: Conditions of the steps from the traces, and whether all ops ran on other threads.
        self._conditions: Mapping[str, float] = {}
        self._ahead = False

    @property
    def in_turns(self) -> bool:
        """False on a GPU: its queue must stay filled."""
        return self._plan.device == "cpu"

    @property
    def queued(self) -> int:
        """On a GPU, the steps that fill the queue when a stretch begins."""
        return 0 if self._plan.device == "cpu" else IN_FLIGHT

    def scopes(self) -> AbstractContextManager[object]:
        """Name ops by scopes when a program is traced, in whichever step that is."""
        return scopes_through(self._framework.scope)

    def first(self, step: Step) -> float:
        """Time the first step, which traces and compiles [s]; on a GPU run two more, which show how to wait for it."""
        took = self._framework.first(lambda: self.timed(step))
        if self._plan.device != "cpu":
            queue.prepare(step, self._framework)
        return took

    def count(self, step: Step) -> Counted:
        """Count the ops of a profiled step."""
        self._watch_memory(step)
        return self._read([self.profiled(step, 1, 0)]).counted

    def prepare(self, step: Step) -> None:
        """Start the profiler once: its first start in a process takes its time."""
        self._framework.profiled(lambda: None)
        self._watch_memory(step)

    def _watch_memory(self, step: Step) -> None:
        self._framework.watch_memory(lambda: self._framework.wait(step.run()))

    def timed(self, step: Step) -> float:
        """Time a step until its outputs are computed [s]."""
        return run_to_end(step.run, self._framework).seconds

    def note_memory(self, step: Step) -> None:
        """Keep the framework's report of its memory."""
        self._memory = self._framework.memory(step, self._plan.device)

    def probing_threads(self) -> int | None:
        """Return the requested threads, but no more than cores; torch, which measures, has another number."""
        return None if self._plan.threads is None else min(self._plan.threads, int(process.cores()))

    def compiling(self) -> float | None:
        """Return how long this process has compiled programs so far [s]; None where that is not counted."""
        return self._framework.compiling()

    def steady(self, step: Step, steps: int) -> list[float]:
        """Time `steps` steps back to back [s each]; on a CPU a step ends before the next one begins."""
        if self._plan.device == "cpu":
            return [self._alone(step) for _ in range(steps)]
        return queue.steady(step, steps, self._framework)

    def _alone(self, step: Step) -> float:
        """Time a step as `timed` does, and keep the times of this thread."""
        ended = run_to_end(step.run, self._framework)
        self._host.append((ended.on_core, ended.waited))
        collect_if_due()
        return ended.seconds

    def profiled(self, step: Step, steps: int, settling: int) -> XTrace:
        """Trace `steps` steps; on a GPU the first of several fills the queue and is not marked."""
        program = self._framework.token_program
        if self._plan.device == "cpu" or program is None:
            return profiled_step(step, self._framework, settling, steps)
        return queue.profiled(step, steps, self._framework, program)

    def work(self, traces: Sequence[XTrace], typical: float) -> Work:
        """Read the ops of the profiled steps, their times, and measure the ceilings of their executor."""
        read = self._read(list(traces))
        self._conditions = read.conditions
        launch, event_cost = probes.launch(self._framework)
        parts = [
            timed
            for trace, owned in zip(traces, read.owned, strict=True)
            for timed in executor.time_steps(trace, owned, len(read.counted.ops), STEP, event_cost)
        ]
        if not parts:
            raise MeasurementError(
                "The profiler recorded no step, so there are no times: run again with fewer --steps."
            )
        self._ahead = self._plan.device == "cpu" and self._framework.ahead
        self._ahead &= all(is_async(trace, owned, STEP) for trace, owned in zip(traces, read.owned, strict=True))
        timed = merge(executor.aligned(parts, len(read.counted.ops)), typical)
        if "nothing-returned" in self._framework.flags() and (timed.unseen or timed.joined < JOINED):
            raise MeasurementError(self._framework.unseen(list(traces), STEP))  # steps ended before their ops did
        functions = probes.functions(self._framework, read.counted, self._plan.device)
        return Work(read.counted, timed, {**launch, **functions})

    def _read(self, traces: list[XTrace]) -> Read:
        read = self._framework.read(traces, STEP)
        replayed = [command_buffers.replayed(trace) for trace in traces]
        kernels = sum(int(owned.device and ((owned.op >= 0) | owned.lost).sum()) for owned in read.owned)
        self._replayed = (sum(int(launched.sum()) for launched in replayed), kernels)
        self._graphs = command_buffers.per_step(traces, [executor.windows(trace, STEP) for trace in traces])
        if read.counted.ops:
            return read
        if self._replayed[0]:
            raise MeasurementError(
                "All kernels ran in command buffers, which name no op: set XLA_FLAGS=--xla_gpu_enable_command_buffer= "
                "before the framework is imported."
            )
        raise MeasurementError(self._framework.unseen(traces, STEP))

    def threads(self) -> int:
        """Return the threads that the step set in its framework, else the requested ones, which the framework got."""
        return self._framework.threads() or self._plan.threads or 1

    def contended(self, usage: Usage) -> bool:
        """Tell whether the machine was full: with more threads than cores, switches are between our own."""
        return usage.crowded()

    def mechanism(self, timed: Timed) -> str:
        """Name the executor."""
        return self._framework.mechanism

    def memory(self, step: Step) -> Memory:
        """Return the framework's report from before the plain steps."""
        return self._memory

    def versions(self) -> dict[str, str]:
        """Return the versions of the framework and its libraries."""
        return self._framework.versions()

    def switches(self, step: Step) -> dict[str, str]:
        """Return the switches of the framework and of the step."""
        return {**self._framework.switches(), **step.switches}

    def environment(self) -> dict[str, str]:
        """Return the requested threads, and the framework's environment."""
        return {"threads": str(self.threads()), **self._framework.environment()}

    def conditions(self, plain: Plain, work: Work) -> dict[str, float]:
        """Return the CPU use of others, the number of programs, and the times of a host that runs ahead."""
        usage, timed = plain.usage, work.timed
        conditions = {**self._conditions, "others_cpu": usage.others / usage.wall if usage.wall > 0 else 0.0}
        if timed is not None and timed.programs is not None:
            conditions[PROGRAMS] = timed.programs
        if self._graphs is not None:
            conditions[GRAPHS], conditions[IN_GRAPHS] = self._graphs
        if self._ahead and self._host:
            conditions[ON_CORE], conditions[WAITED] = map(median, zip(*self._host, strict=True))
        return conditions

    def flags(self, step: Step, work: Work) -> tuple[str, ...]:
        """Return the flags of counting and of the framework, and one where a training step shows no backward pass.

        Ops that are compiled one by one do not name their phase.
        """
        counted = work.counted
        backward = (counted.phase == PHASES.index("backward")).any()
        products = any(op.costed.cost.flops for op in counted.ops)
        unresolved = (step.mode == "train" or (step.mode == "infer" and counted.updates)) and products and not backward
        replayed, kernels = self._replayed
        flags = (*counted.flags, *self._framework.flags(), *(("phases-unresolved",) if unresolved else ()))
        return (*flags, f"command-buffers: {replayed} of {kernels} kernels") if replayed else flags

    def compilation(self, rows: OpTables) -> Compilation | None:
        """Return None: of XLA's compilations only the time is known."""
        return None
