"""The recorder of a PyTorch step: Kineto profiles it, and one step more under the execution trace counts it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import torch
from torch.autograd.profiler import profile
from torch.optim.optimizer import register_optimizer_step_post_hook

from roofline.core.executor import COMPILED_CODE, MADE, MAKING, READS
from roofline.core.schema import Compilation, Memory
from roofline.core.step import Step
from roofline.costs.counted import Counted
from roofline.errors import MeasurementError
from roofline.pytorch import time_cpu, time_cuda
from roofline.pytorch.aten.engine import Engine
from roofline.pytorch.count import count, reads_of_host
from roofline.pytorch.recording import anomaly, compile_time, counting, host_cost, process, profiler, turned
from roofline.pytorch.recording.allocations import with_storages
from roofline.pytorch.recording.compile_time import CompileTime
from roofline.pytorch.recording.memory import of_model, of_optimizers, peak_on_gpu
from roofline.recording import contention
from roofline.recording import record as measurement
from roofline.recording.recording import Plan, Recording, Say
from roofline.recording.rows import OpTables
from roofline.recording.step_recorder import NO_WORK, Plain, Work
from roofline.timing.timed import Timed, merge
from roofline.traces.annotations import STEP
from roofline.traces.kineto.reader import KinetoTrace


def eager(step: Step) -> Counted:
    """The C run of a step that PyTorch dispatches op by op."""
    return _eager(step, compiled=False)


def _eager(step: Step, compiled: bool) -> Counted:
    nodes = counting.record(step, compiled=compiled)
    counted = with_storages(count(nodes, Engine(), addresses=nodes.addresses), nodes)
    if any(name.startswith("Torch-Compiled Region") for name in counted.names):
        return replace(counted, flags=(*counted.flags, COMPILED_CODE))
    return counted


def as_it_is(step: Step) -> Counted:
    """The C run of a step of a program that goes on: compiled code in it stays as it is, and is not compiled anew.

    Then neither modules nor scopes are marked. Where a program compiled something, but not of this step, one more step
    is run, with the marks.
    """
    if compile_time.anything_compiled():
        counted = _eager(step, compiled=True)
        if COMPILED_CODE in counted.flags:
            return counted
    return _eager(step, compiled=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """Holds what is not as in eager PyTorch where a compiler or another library runs the step.

    count: the C run. switches: of the compiler, beside those of process and step. compilation: what it did, asked for
    when the rows of the profile are made. reference: the step profiled without CUDA graphs, where it runs with them.
    libraries: distributions that decide how fast a step is, beside PyTorch's. layers: makes some around one op, called
    as those of the step are; None where no Python dispatches the ops one by one.
    """

    count: Callable[[Step], Counted] = eager
    switches: Mapping[str, str] = field(default_factory=dict)
    compilation: Callable[[OpTables], Compilation | None] = lambda rows: None
    reference: Callable[[], KinetoTrace | None] = lambda: None
    libraries: tuple[str, ...] = ()
    layers: Callable[[], host_cost.Layer] | None = None


def record(step: Step, plan: Plan, say: Say, variant: Variant | None = None) -> Recording:
    """Time plain steps (T), profile a few (P) and count one (C); they are never mixed."""
    if variant is None:
        variant = Variant(count=as_it_is if plan.others_profile else eager, layers=host_cost.modules)
    return measurement.record(step, plan, say, TorchStepRecorder(plan, variant))


class TorchStepRecorder:
    """See `StepRecorder`; its traces are those of Kineto, beside a GPU profilers that have stopped.

    What a profiler has recorded takes thousands of small pieces of memory, 2.1 MB for 858 ops, and at most 0.14 MB once
    it is read. So it is read at once, but beside a GPU, which would cool down and change its clock meanwhile.
    """

    def __init__(self, plan: Plan, variant: Variant) -> None:
        """Nothing is known before the first step."""
        self._plan, self._variant, self._device = plan, variant, plan.device
        self._optimizers: list[Any] = []
        self._memory = Memory()
        self._anomaly: Mapping[str, str] = {}
        self._counted: Counted | None = None
        self._reference: KinetoTrace | None = None
        self._compile_time = CompileTime()

    @property
    def in_turns(self) -> bool:
        """A GPU's queue must stay filled."""
        return self._device != "cuda"

    @property
    def queued(self) -> int:
        """Beside a GPU, the one that fills the queue when a stretch begins."""
        return int(self._device == "cuda")

    def scopes(self) -> AbstractContextManager[object]:
        """Nothing, as scopes are marked in the counting run alone; at its end compiling is no longer timed."""
        return self._compile_time.watched()

    def first(self, step: Step) -> float:
        """The first step [s]; the optimizers that step in it are kept."""

        def keep(optimizer: Any, *_: object) -> None:
            if optimizer not in self._optimizers:
                self._optimizers.append(optimizer)

        handle = register_optimizer_step_post_hook(keep)
        try:
            no_other = nullcontext() if self._plan.others_profile else profiler.no_other()
            with no_other, anomaly.noted() as self._anomaly:
                return self.timed(step)
        finally:
            handle.remove()

    def count(self, step: Step) -> Counted:
        """The C run."""
        counted = self._variant.count(step)
        if not counted.ops:
            raise MeasurementError(NO_WORK)
        return counted

    def prepare(self, step: Step) -> None:
        """The C run, and the first start of the profiler in this process, which takes its time."""
        self._counted = self.count(step)
        self._reference = self._variant.reference()
        profiler.profiled(lambda: None, self._device, 1)

    def timed(self, step: Step) -> float:
        """Time one step with a synchronisation before and after [s]."""
        return profiler.timed(step, self._device)

    def note_memory(self, step: Step) -> None:
        """On a GPU the allocator's peak since the last call; on a CPU the process's, before ceilings take memory."""
        if self._device == "cuda":
            peak, source = peak_on_gpu()
            self._memory = Memory(peak=peak, source=source)
        else:
            self._memory = Memory(resident=contention.peak_memory())

    def probing_threads(self) -> int | None:
        """Return those of this process."""
        return None

    def compiling(self) -> float | None:
        """Return how long torch.compile has compiled since the last call [s]; None as long as no Dynamo is imported."""
        return self._compile_time.seconds()

    def steady(self, step: Step, steps: int) -> list[float]:
        """`steps` steps by the steady protocol [s each]."""
        return profiler.steady(step, self._device, steps)

    def profiled(self, step: Step, steps: int, settling: int) -> profile | KinetoTrace:
        """Profile `steps` steps."""
        recorded = profiler.profiled(step.run, self._device, steps, settling)
        return recorded if self._device == "cuda" else profiler.read(recorded)

    def work(self, traces: Sequence[profile | KinetoTrace], typical: float) -> Work:
        """The ops that were counted, with times from what the profilers recorded."""
        assert self._counted is not None  # `prepare` goes before profiled steps
        read = [profiler.read(trace) if isinstance(trace, profile) else trace for trace in traces]
        if self._device == "cuda":
            timed: Timed = time_cuda.time_cuda(read[0], self._counted, STEP, reference=self._reference)
            return Work(self._counted, timed)
        cost = profiler.event_cost()
        parts = [time_cpu.time_cpu(kineto_trace, self._counted, STEP, cost) for kineto_trace in read]
        return Work(self._counted, merge(parts, typical))

    def threads(self) -> int:
        """PyTorch's."""
        return torch.get_num_threads()

    def contended(self, usage: contention.Usage) -> bool:
        """By the switches between threads: PyTorch has no more of them than cores."""
        return usage.contended(self.threads())

    def mechanism(self, timed: Timed) -> str:
        """Python's dispatch, or the replay of graphs."""
        return time_cuda.mechanism(timed)

    def memory(self, step: Step) -> Memory:
        """The peak of the plain steps, and what the model and the optimizers hold."""
        parameters, gradients = of_model(step.model)
        optimizer = of_optimizers(self._optimizers, step.model)
        return msgspec.structs.replace(self._memory, parameters=parameters, gradients=gradients, optimizer=optimizer)

    def versions(self) -> dict[str, str]:
        """PyTorch's and those of the libraries around it."""
        return process.versions(self._variant.libraries)

    def switches(self, step: Step) -> dict[str, str]:
        """Return those of the process, of the step and of the compiler."""
        return {
            **process.switches(),
            **self._anomaly,
            **turned.forms(self._optimizers),
            **step.switches,
            **self._variant.switches,
        }

    def environment(self) -> dict[str, str]:
        """Threads and affinity of this process, and the variables that steer them."""
        return process.process_environment()

    def conditions(self, plain: Plain, work: Work) -> dict[str, float]:
        """Time away, reads of the host, and tensors that it makes of numbers."""
        # Beside a GPU the thread waits for the device, which says nothing.
        away = plain.system.away_per_step(plain.ran if self._device == "cpu" else 0)
        # On a CPU such a read is no op: it waits for nothing and moves nothing, but it is Python all the same.
        layers = self._variant.layers if self._device == "cpu" and work.timed is not None else None
        around = {} if layers is None else host_cost.conditions(layers())
        times_made = None if work.timed is None else work.timed.made
        conversions = {} if times_made is None else dict(zip((MADE, MAKING), times_made, strict=True))
        return {
            **away,
            **around,
            **conversions,
            **time_cuda.conditions(work.timed),
            READS: float(reads_of_host(work.counted)),
        }

    def flags(self, step: Step, work: Work) -> tuple[str, ...]:
        """Return what timing and counting say."""
        return (*(() if work.timed is None else time_cuda.flags(work.timed)), *work.counted.flags)

    def compilation(self, rows: OpTables) -> Compilation | None:
        """Return what the compiler did, if there was one."""
        return self._variant.compilation(rows)
