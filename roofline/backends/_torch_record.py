"""The T, P and C runs of a torch step put together into a recording."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from roofline.backends import Plan, Recording, Say, _contention, _torch_counting, _torch_running
from roofline.backends import torch as backend
from roofline.core.profile import Memory, Profiled, Wall
from roofline.core.step import Step
from roofline.errors import MeasurementError
from roofline.traces import timing, timing_cuda
from roofline.traces.aten import Engine
from roofline.traces.counting import NOTHING, PHASES, Counted, count
from roofline.traces.op_rows import op_rows
from roofline.traces.timing import Timed
from roofline.units import seconds

CPU_STEPS, CPU_LEAST, GPU_STEPS = 20, 3, 100
SINGLE_STEPS = 3
#: A fresh process runs its first steps slower: kernels are chosen, memory is mapped.
WARM_UP = 2


@dataclass(frozen=True, slots=True)
class Plain:
    """The T run: wall times, and how the machine behaved during it."""

    wall: Wall
    usage: _contention.Usage
    peak: float | None
    optimizer: float | None


def record(step: Step, plan: Plan, say: Say) -> Recording:
    """See `backends.torch.record`."""
    optimizers: list[Any] = []
    handle = register_optimizer_step_post_hook(
        lambda optimizer, *_: None if optimizer in optimizers else optimizers.append(optimizer)
    )
    try:
        first = _torch_running.timed(step.run, plan.device)
    finally:
        handle.remove()
    say(f"first step {seconds(first)}")
    if plan.plain_only:
        plain, _ = _run(step, plan, first, say, _state_bytes(optimizers))
        return _assemble(step, plan, NOTHING, None, plain, ())
    counted = count(_torch_counting.record(step), Engine())
    if not counted.ops:
        raise MeasurementError("The step ran no op that does work, so there is nothing to profile.")
    if plan.count_only:
        return _assemble(step, plan, counted, None, Plain(Wall(steps=(first,), first=first), *_nothing()), ())
    plain, trace = _run(step, plan, first, say, _state_bytes(optimizers))
    cost = _torch_running.event_cost("cpu")
    if plan.device == "cuda":
        timed = timing_cuda.time_cuda(trace, counted, _torch_running.STEP)
    else:
        timed = timing.time_cpu(trace, counted, _torch_running.STEP, cost)
    return _assemble(step, plan, counted, timed, plain, _flags(plan, plain, timed), cost)


def _nothing() -> tuple[_contention.Usage, None, None]:
    return _contention.since(_contention.start()), None, None


def _run(step: Step, plan: Plan, first: float, say: Say, optimizer: float | None) -> tuple[Plain, Any]:
    """Warm up, then half of the plain steps, the profiled ones, and the other half: a drift shows in neither alone."""
    if not plan.plain_only:
        # The profiler's first start in a process takes a second and must not fall into the measurement.
        _torch_running.profiled(lambda: None, plan.device, 1)
    warm = [_torch_running.timed(step.run, plan.device) for _ in range(WARM_UP if first < 5 else 1)]
    pace = min(first, *warm)
    steps = _steps(plan, pace)
    watched = 0 if plan.plain_only else plan.profiled_steps + (1 if plan.device == "cuda" else 0)
    say(
        f"{steps} plain steps of about {seconds(pace)}, {watched} under the profiler: "
        f"about {seconds((steps + watched) * pace)}"
    )
    if plan.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    gc.collect()
    gc.disable()  # a collection in one step would be taken for the step's own time
    begin = _contention.start()
    try:
        times = _torch_running.steady(step.run, plan.device, (steps + 1) // 2)
        usage = _contention.since(begin)
        peak = torch.cuda.max_memory_allocated() if plan.device == "cuda" else _contention.peak_memory()
        trace = _torch_running.profiled(step.run, plan.device, watched) if watched else None
        times += _torch_running.steady(step.run, plan.device, steps - len(times)) if steps > len(times) else []
        single = [_torch_running.timed(step.run, plan.device) for _ in range(min(SINGLE_STEPS, steps))]
    finally:
        gc.enable()
    wall = Wall(steps=tuple(times), first=first, single=tuple(single))
    return Plain(wall, usage, float(peak), optimizer), trace


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
    if timed.joined < 0.999:
        flags.append("unjoined")
    return tuple(flags)


def _assemble(
    step: Step,
    plan: Plan,
    counted: Counted,
    timed: Timed | None,
    plain: Plain,
    flags: tuple[str, ...],
    event_cost: float = 0.0,
) -> Recording:
    switches = {**backend.switches(), **step.switches}
    rows = op_rows(counted, timed, _block_of_scopes(step, counted), switches, plan.device)
    profiled = None
    if timed is not None:
        profiled = Profiled(
            walls=tuple(timed.walls.tolist()),
            corrected=tuple(timed.corrected.tolist()),
            dropped=timed.dropped,
            events=timed.events,
            event_cost=event_cost,
            idle=tuple(timed.idle.tolist()),
            idle_causes=timed.causes,
            joined=timed.joined,
        )
    model_bytes = None
    if isinstance(step.model, torch.nn.Module):
        model_bytes = float(sum(p.numel() * p.element_size() for p in step.model.parameters()))
    usage = plain.usage
    threads = torch.get_num_threads()
    return Recording(
        wall=plain.wall,
        profiled=profiled,
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
        batch=step.batch,
        seq=step.seq,
        versions=backend.versions(),
        switches=switches,
        environment=backend.process_environment(),
        conditions={
            "cpu_share": usage.share(threads),
            "involuntary_switches_per_second": usage.switch_rate,
            "load": usage.load,
        },
        flags=flags,
        notes=tuple(f"{name}: {why}" for name, why in sorted(counted.unknown.items())),
    )


def _block_of_scopes(step: Step, counted: Counted) -> list[str]:
    """The block of each scope: by the model's map, else the scope's first part."""
    if not step.blocks:
        return [path.partition("/")[0] or "(top)" for path in counted.scopes]
    return [
        next((block for pattern, block in step.blocks if fnmatchcase(path, pattern)), "other")
        for path in counted.scopes
    ]
