"""The T, P and C runs of a torch step put together into a recording."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from roofline.core.device import Ceiling
from roofline.core.schema import Compilation, Memory, Wall
from roofline.core.step import Step
from roofline.costs.counted import NOTHING, PHASES, Counted
from roofline.devices import probes_cpu
from roofline.errors import MeasurementError
from roofline.pytorch import time_cpu, time_cuda
from roofline.pytorch.aten.engine import Engine
from roofline.pytorch.count import count, reads_of_host
from roofline.pytorch.recording import counting as torch_counting
from roofline.pytorch.recording import process
from roofline.pytorch.recording import profiler as torch_running
from roofline.recording import clocks as _clocks
from roofline.recording import contention, notes
from roofline.recording.protocol import profiled_steps
from roofline.recording.recording import Plan, Recording, Say
from roofline.recording.rows import Rows, op_rows
from roofline.timing.timed import Timed, merge, profiled
from roofline.traces.kineto.reader import KinetoTrace
from roofline.units import seconds

CPU_STEPS, CPU_LEAST, GPU_STEPS = 20, 3, 100
SINGLE_STEPS = 3
#: A fresh process runs its first steps slower: kernels are chosen, memory is mapped.
WARM_UP = 2


@dataclass(frozen=True, slots=True)
class Plain:
    """The T run: wall times, and how the machine behaved during it."""

    wall: Wall
    usage: contention.Usage
    peak: float | None
    optimizer: float | None
    ceilings: Mapping[str, Ceiling]
    clocks: _clocks.Clocks
    system: contention.System


@dataclass(frozen=True, slots=True)
class Beside:
    """What a backend knows of the step beside what is recorded of it."""

    switches: Mapping[str, str]
    compilation: Callable[[Rows], Compilation | None]
    reference: Callable[[], KinetoTrace | None]


def eager(step: Step) -> Counted:
    """The C run of a step that PyTorch dispatches op by op."""
    counted = count(torch_counting.record(step), Engine())
    if any(name.startswith("Torch-Compiled Region") for name in counted.names):
        return replace(counted, flags=(*counted.flags, "compiled-code"))
    return counted


def record(
    step: Step,
    plan: Plan,
    say: Say,
    counting: Callable[[Step], Counted] = eager,
    switches: Mapping[str, str] | None = None,
    compilation: Callable[[Rows], Compilation | None] = lambda rows: None,
    reference: Callable[[], KinetoTrace | None] = lambda: None,
) -> Recording:
    """See `backends.torch.record`.

    counting: the C run. switches: those of the backend, beside the step's own. compilation: what a compiler did, asked
    for when the rows of the profile are made. reference: the step profiled without CUDA graphs, where it
    runs with them.
    """
    beside = Beside(switches or {}, compilation, reference)
    optimizers: list[Any] = []
    handle = register_optimizer_step_post_hook(
        lambda optimizer, *_: None if optimizer in optimizers else optimizers.append(optimizer)
    )
    try:
        first = torch_running.timed(step.run, plan.device)
    finally:
        handle.remove()
    say(f"first step {seconds(first)}")
    if plan.plain_only:
        plain, _ = _run(step, plan, None, first, say, _state_bytes(optimizers))
        return _assemble(step, plan, NOTHING, None, plain, (), beside)
    counted = counting(step)
    if not counted.ops:
        raise MeasurementError("The step ran no op that does work, so there is nothing to profile.")
    if plan.count_only:
        return _assemble(
            step, plan, counted, None, Plain(Wall(steps=(first,), first=first), *_nothing()), counted.flags, beside
        )
    plain, timed = _run(step, plan, counted, first, say, _state_bytes(optimizers), beside.reference())
    assert timed is not None  # there are counted ops
    return _assemble(step, plan, counted, timed, plain, (*_flags(plan, plain, timed), *counted.flags), beside)


def _nothing() -> tuple[contention.Usage, None, None, Mapping[str, Ceiling], _clocks.Clocks, contention.System]:
    return contention.since(contention.start()), None, None, {}, _clocks.Clocks(None), contention.System()


def _run(
    step: Step,
    plan: Plan,
    counted: Counted | None,
    first: float,
    say: Say,
    optimizer: float | None,
    reference: KinetoTrace | None = None,
) -> tuple[Plain, Timed | None]:
    """The plain steps, and the profiled ones among them; `counted` None: plain steps only."""
    if counted is not None:
        # The first start of the profiler in a process takes its time, which must not fall into the measurement.
        torch_running.profiled(lambda: None, plan.device, 1)
    warm = [torch_running.timed(step.run, plan.device) for _ in range(WARM_UP if first < 5 else 1)]
    pace = min(first, *warm)
    steps = _steps(plan, pace)
    profiled = 0 if counted is None else plan.profiled_steps or profiled_steps(pace, steps)
    whole = seconds((steps + profiled) * pace)
    say(f"{steps} plain steps of about {seconds(pace)}, {profiled} profiled: about {whole}")
    if plan.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    peak_on_cpu = contention.peak_memory()  # of the warm steps: measuring ceilings takes memory of its own
    before = _ceilings(plan)
    gc.collect()
    collecting = gc.isenabled()
    gc.disable()  # a collection in one step would be taken for the step's own time
    system = contention.System()
    begin = contention.start()
    try:
        with _clocks.watched(plan.device) as clocks:
            run = _run_on_gpu if plan.device == "cuda" else _run_on_cpu
            times, profilers, peak = run(step, plan, steps, pace, profiled, system)
        usage = contention.since(begin)
        single = [torch_running.timed(step.run, plan.device) for _ in range(min(SINGLE_STEPS, steps))]
    finally:
        if collecting:
            gc.enable()
    after = _ceilings(plan)
    best = {name: max(before[name], after[name], key=lambda ceiling: ceiling.value) for name in before.keys() & after}
    wall = Wall(steps=tuple(times), first=first, single=tuple(single))
    timed = None if counted is None else _timed(plan, counted, profilers, median(times), reference)
    return Plain(wall, usage, peak or peak_on_cpu, optimizer, best, clocks, system), timed


def _run_on_cpu(
    step: Step, plan: Plan, steps: int, pace: float, profiled: int, system: contention.System
) -> tuple[list[float], list[Any], float | None]:
    """Plain and profiled steps in turns: (times [s], what the profiler recorded, no peak of its own)."""
    times, profilers = torch_running.interleaved(step.run, steps, profiled, pace, system)
    return times, profilers, None


def _run_on_gpu(
    step: Step, plan: Plan, steps: int, pace: float, profiled: int, system: contention.System
) -> tuple[list[float], list[Any], float | None]:
    """Half of the plain steps, the profiled ones, and the other half: the queue must stay filled, so no turns.

    What the profiler recorded is read afterwards: meanwhile the device would cool down and lower its clock.
    """
    with system.counting():
        times = torch_running.steady(step.run, "cuda", (steps + 1) // 2)
    peak = float(torch.cuda.max_memory_allocated())
    # The first profiled step fills the queue and is not used.
    profilers = [torch_running.profiled(step.run, "cuda", profiled + 1)] if profiled else []
    with system.counting():
        times += torch_running.steady(step.run, "cuda", steps - len(times))
    return times, profilers, peak


def _timed(plan: Plan, counted: Counted, profilers: list[Any], typical: float, reference: KinetoTrace | None) -> Timed:
    """Op times from what the profiler recorded; `typical`: the median plain step [s]."""
    traces = [torch_running.read(profiler) for profiler in profilers]
    if plan.device == "cuda":
        return time_cuda.time_cuda(traces[0], counted, torch_running.STEP, reference=reference)
    cost = torch_running.event_cost()
    parts = [time_cpu.time_cpu(one, counted, torch_running.STEP, cost) for one in traces]
    return merge(parts, typical)


def _ceilings(plan: Plan) -> dict[str, Ceiling]:
    """Memory bandwidth right before and after the steps: on a CPU it is shared with whoever else is there."""
    if plan.device != "cpu" or plan.plain_only:
        return {}
    try:
        return probes_cpu.beside(torch.get_num_threads())
    except (RuntimeError, MemoryError):
        return {}  # no room for the arrays: the calibrated ceilings stand


def _steps(plan: Plan, pace: float) -> int:
    if plan.steps is not None:
        return plan.steps
    if plan.device == "cuda":
        return GPU_STEPS
    return max(CPU_LEAST, min(CPU_STEPS, int(plan.budget / pace) if pace > 0 else CPU_STEPS))


def _state_bytes(optimizers: list[Any]) -> float | None:
    """Bytes of the optimizers' state; None where no optimizer stepped."""
    if not optimizers:
        return None
    return float(
        sum(
            value.numel() * value.element_size()
            for optimizer in optimizers
            for state in optimizer.state.values()
            for value in state.values()
            if isinstance(value, torch.Tensor)
        )
    )


def _flags(plan: Plan, plain: Plain, timed: Timed) -> tuple[str, ...]:
    flags = []
    if plan.device == "cpu" and plain.usage.contended(torch.get_num_threads()):
        flags.append("contended")
    if plan.in_process:
        flags.append("in_process")
    flags.extend(plain.clocks.flags())
    if timed.joined < 0.999 or timed.unseen:
        flags.append("unjoined")
    flags.extend(time_cuda.flags(timed))
    return tuple(flags)


def _assemble(
    step: Step,
    plan: Plan,
    counted: Counted,
    timed: Timed | None,
    plain: Plain,
    flags: tuple[str, ...],
    beside: Beside,
) -> Recording:
    switches = {**process.switches(), **step.switches, **beside.switches}
    rows = op_rows(counted, timed, notes.block_of_scopes(step, counted.scopes), switches, plan.device)
    model_bytes = None
    if isinstance(step.model, torch.nn.Module):
        model_bytes = float(sum(p.numel() * p.element_size() for p in step.model.parameters()))
    usage = plain.usage
    threads = torch.get_num_threads()
    plain_steps = 0 if plan.count_only else len(plain.wall.steps)
    return Recording(
        wall=plain.wall,
        profiled=None if timed is None else profiled(timed, time_cuda.mechanism(timed)),
        scopes=counted.scopes,
        phases=PHASES,
        blocks=rows.blocks,
        signatures=rows.signatures,
        ops=rows.ops,
        kernels=rows.kernels,
        memory=Memory(
            peak=plain.peak,
            parameters=model_bytes,
            optimizer=plain.optimizer,
            source="allocator's peak"
            if plan.device == "cuda"
            else "peak resident set of the process, libraries included",
        ),
        parameters=step.parameters,
        trainable=step.trainable,
        samples=step.samples,
        tokens=step.tokens,
        mode=step.mode,
        batch=step.batch,
        seq=step.seq,
        versions=process.versions(),
        switches=switches,
        environment=process.process_environment(),
        conditions={
            "cpu_share": usage.share(threads),
            "involuntary_switches_per_second": usage.switch_rate,
            "load": usage.load,
            **plain.system.per_step(plain_steps),
            # Beside a GPU the thread waits for the device, which says nothing.
            **plain.system.away_per_step(plain_steps if plan.device == "cpu" else 0),
            # On a CPU such a read is no op: it waits for nothing and moves nothing, but it is Python all the same.
            "host_reads_per_step": float(reads_of_host(counted)),
            **plain.clocks.conditions(),
        },
        flags=flags,
        ceilings=plain.ceilings,
        notes=notes.notes(counted, timed),
        compilation=beside.compilation(rows),
    )
