"""The T, P and C runs of a step whose framework profiles itself into XSpace bytes: JAX, TensorFlow and Keras on them.

One recorder for all of them: what differs (how to wait, to profile, to read) is a `Framework`. Counting needs no run of
its own: the trace of a profiled step holds the programs that ran and the time of each of their instructions.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date
from statistics import median
from typing import Protocol

from roofline.core.device import Ceiling
from roofline.core.schema import Memory, Wall
from roofline.core.step import Step, scopes_through
from roofline.costs.counted import NOTHING, PHASES, Counted
from roofline.errors import MeasurementError
from roofline.recording import clocks as _clocks
from roofline.recording import contention, notes
from roofline.recording.protocol import SETTLING, profiled_steps, settling
from roofline.recording.recording import Plan, Recording, Say
from roofline.recording.rows import op_rows
from roofline.timing import executor
from roofline.timing.executor import Owned
from roofline.timing.timed import Timed, merge, profiled
from roofline.traces.xplane.reader import XTrace
from roofline.units import seconds

CPU_STEPS, CPU_LEAST, GPU_STEPS = 20, 3, 100
SINGLE_STEPS = 3
WARM_UP = 2
#: Prefix of the annotations that delimit profiled steps.
STEP = "roofline:step"
#: Beside a GPU one step may wait in the queue while another runs.
IN_FLIGHT = 2
#: How often the program of ops that do nothing is run to learn what an op and an event cost.
TRIVIAL_RUNS = 20


@dataclass(frozen=True, slots=True)
class Read:
    """What the traces of a few profiled steps say: the ops of a step, and which op each event belongs to."""

    counted: Counted
    owned: list[Owned]


class Framework(Protocol):
    """What a framework that writes XSpace offers to the recorder."""

    @property
    def mechanism(self) -> str:
        """The executor whose least op is the launch floor: "xla-thunk", "tensorflow-graph"."""

    def first(self, run: Callable[[], float]) -> float:
        """Run the first step, which builds and compiles, and keep what it shows of that; what `run` returned."""

    def compiling(self) -> float | None:
        """How long this process has compiled programs so far [s]; None where nobody counts it."""

    def wait(self, outputs: object) -> None:
        """Block until `outputs` of a step are there."""

    def profiled(self, run: Callable[[], None]) -> bytes:
        """XSpace bytes of what ran inside `run`."""

    def mark(self, name: str) -> AbstractContextManager[object]:
        """An annotation on the host's line of the trace."""

    def scope(self, name: str) -> AbstractContextManager[object]:
        """Names the ops that are made inside it, while a program is traced."""

    def read(self, traces: list[XTrace], prefix: str) -> Read:
        """The ops of the traced steps, which annotations with `prefix` mark."""

    def trivial(self) -> Callable[[], object]:
        """A program of a few hundred ops on one element, compiled."""

    def function(self, name: str, elements: int) -> Callable[[], object] | None:
        """A compiled program that evaluates function `name` (ours: "exp", "tanh", ...) on `elements` float32 numbers;
        None for one that the framework does not have."""

    def versions(self) -> dict[str, str]:
        """Versions of what decides how fast a step is."""

    def switches(self) -> dict[str, str]:
        """The process-wide switches that change what runs."""

    def environment(self) -> dict[str, str]:
        """Threads and affinity of this process, and the variables that steer them."""

    def memory(self, step: Step, device: str) -> Memory:
        """What is known about the memory of the process now."""


def record(step: Step, plan: Plan, say: Say, framework: Framework) -> Recording:
    """Time plain steps (T), profile a few (P), and count what the profiled ones ran (C)."""
    with scopes_through(framework.scope):
        return _record(step, plan, say, framework)


def _record(step: Step, plan: Plan, say: Say, framework: Framework) -> Recording:
    first = framework.first(lambda: _timed(step, framework))
    say(f"first step {seconds(first)}")
    if plan.count_only:
        run = _Plain(
            Wall(steps=(first,), first=first),
            contention.since(contention.start()),
            _clocks.Clocks(None),
            contention.System(),
        )
        counted = _counted(framework, [profiled_step(step, framework, 0)]).counted
        return _assemble(step, plan, framework, run, counted, None, None)
    if not plan.plain_only:
        framework.profiled(lambda: None)  # the first start of a profiler in a process takes its time
    warm = [_timed(step, framework) for _ in range(WARM_UP if first < 5 else 1)]
    pace = min(first, *warm)
    steps = _steps(plan, pace)
    profiled = 0 if plan.plain_only else plan.profiled_steps or profiled_steps(pace, steps)
    whole = seconds((steps + profiled) * pace)
    say(f"{steps} plain steps of about {seconds(pace)}, {profiled} profiled: about {whole}")
    memory = framework.memory(step, plan.device)
    before = _bandwidth(plan)
    run, traces = _run(step, plan, framework, steps, pace, profiled, first)
    ceilings = _best(before, _bandwidth(plan))
    if plan.plain_only:
        return _assemble(step, plan, framework, run, NOTHING, None, memory)
    read = _counted(framework, traces)
    launch, event_cost = _trivial(framework)
    parts = [
        timed
        for trace, owned in zip(traces, read.owned, strict=True)
        for timed in executor.time_steps(trace, owned, len(read.counted.ops), STEP, event_cost)
    ]
    if not parts:
        raise MeasurementError("The profiler recorded no step, so there are no times: run again with fewer --steps.")
    timed = merge(executor.aligned(parts, len(read.counted.ops)), median(run.wall.steps))
    measured = {**ceilings, **launch, **_functions(framework, read.counted)}
    return _assemble(step, plan, framework, run, read.counted, timed, memory, measured)


@dataclass(frozen=True, slots=True)
class _Plain:
    """The T run, and how the machine behaved during it.

    ran: how many steps it ran, of which those that only fill the queue are not timed; compiling: in all of these [s];
    None: not known.
    """

    wall: Wall
    usage: contention.Usage
    clocks: _clocks.Clocks
    system: contention.System
    ran: int = 0
    compiling: float | None = None


def _timed(step: Step, framework: Framework) -> float:
    """One step until its outputs are there [s]."""
    begin = time.perf_counter()
    framework.wait(step.run())
    return time.perf_counter() - begin


def _steady(step: Step, framework: Framework, device: str, steps: int) -> list[float]:
    """`steps` steps back to back [s each].

    On a CPU the host is the device, and a step ends before the next one begins. Beside a GPU two are in flight, and a
    step's boundary is the moment at which its outputs are there.
    """
    if device == "cpu":
        return [_timed(step, framework) for _ in range(steps)]
    times: list[float] = []
    waiting = [step.run() for _ in range(IN_FLIGHT)]
    framework.wait(waiting.pop(0))
    mark = time.perf_counter()
    for _ in range(steps):
        waiting.append(step.run())
        framework.wait(waiting.pop(0))
        now = time.perf_counter()
        times.append(now - mark)
        mark = now
    for outputs in waiting:
        framework.wait(outputs)
    return times


def profiled_step(step: Step, framework: Framework, warm: int) -> XTrace:
    """The trace of one marked step, after `warm` steps that do not count (`settling`)."""
    from roofline.traces.xplane import reader

    def run() -> None:
        for _ in range(warm):
            with framework.mark(SETTLING):
                framework.wait(step.run())
        with framework.mark(f"{STEP}#0"):
            framework.wait(step.run())

    return reader.read(framework.profiled(run))


def _counted(framework: Framework, traces: list[XTrace]) -> Read:
    read = framework.read(traces, STEP)
    if not read.counted.ops:
        raise MeasurementError(
            "The profiler recorded no op of the step: it must run a compiled program, such as a jitted function."
        )
    return read


def _run(
    step: Step, plan: Plan, framework: Framework, steps: int, pace: float, profiled: int, first: float
) -> tuple[_Plain, list[XTrace]]:
    """Plain and profiled steps in turns, so that both see the same of a machine that others use too."""
    times: list[float] = []
    traces: list[XTrace] = []
    gc.collect()
    collecting = gc.isenabled()
    gc.disable()  # a collection in one step would be taken for the step's own time
    system = contention.System()
    ran, compiling = 0, 0.0
    begin = contention.start()
    try:
        with _clocks.watched(plan.device) as clocks:
            for number in range(profiled + 1):
                here = steps * (number + 1) // (profiled + 1) - len(times)
                if here:
                    for _ in range(1 if pace < 1 else 0):
                        framework.wait(step.run())
                    before = framework.compiling() or 0.0
                    with system.counting():
                        times += _steady(step, framework, plan.device, here)
                    compiling += (framework.compiling() or 0.0) - before
                    ran += here + (0 if plan.device == "cpu" else IN_FLIGHT)
                if number < profiled:
                    traces.append(profiled_step(step, framework, settling(pace)))
        usage = contention.since(begin)
        single = [_timed(step, framework) for _ in range(min(SINGLE_STEPS, steps))]
    finally:
        if collecting:
            gc.enable()
    wall = Wall(steps=tuple(times), first=first, single=tuple(single))
    return _Plain(wall, usage, clocks, system, ran, None if framework.compiling() is None else compiling), traces


def _steps(plan: Plan, pace: float) -> int:
    if plan.steps is not None:
        return plan.steps
    if plan.device == "cuda":
        return GPU_STEPS
    return max(CPU_LEAST, min(CPU_STEPS, int(plan.budget / pace) if pace > 0 else CPU_STEPS))


def _bandwidth(plan: Plan) -> dict[str, Ceiling]:
    """Memory bandwidth right before and after the steps, where there is something to measure it with."""
    if plan.device != "cpu" or plan.plain_only:
        return {}
    try:
        import torch

        from roofline.devices import probes_cpu

        before = torch.get_num_threads()
        threads = plan.threads or before
        torch.set_num_threads(threads)
        try:
            return probes_cpu.beside(threads)
        finally:
            torch.set_num_threads(before)
    except (ImportError, RuntimeError, MemoryError):
        return {}  # no torch, or no room for the arrays: the calibrated ceilings stand


def _best(before: Mapping[str, Ceiling], after: Mapping[str, Ceiling]) -> dict[str, Ceiling]:
    return {name: max(before[name], after[name], key=lambda one: one.value) for name in before.keys() & after}


def _trivial(framework: Framework) -> tuple[dict[str, Ceiling], float]:
    """The launch floor of the executor, and what one profiler event adds to the time around it [s].

    Both from a program whose ops do nothing: the least event is the floor; with and without the profiler, in turns, the
    difference of the least times, by event, is the cost.
    """
    from roofline.traces.xplane import reader

    run = framework.trivial()
    framework.wait(run())

    def loop() -> float:
        begin = time.perf_counter()
        for _ in range(TRIVIAL_RUNS):
            framework.wait(run())
        return time.perf_counter() - begin

    plain, watched, durations, events = [], [], [], 1
    for _ in range(3):
        plain.append(loop())

        def marked() -> None:
            with framework.mark(f"{STEP}#0"):
                watched.append(loop())

        trace = reader.read(framework.profiled(marked))
        owned = framework.read([trace], STEP).owned[0]
        ran = (owned.op >= 0) | owned.lost  # whether or not its program is known
        durations += ((owned.end - owned.start)[ran] * executor.PICOSECOND).tolist()
        events = max(events, len(trace.start))
    cost = max(0.0, (min(watched) - min(plain)) / events)
    positive = [duration for duration in durations if duration > 0]
    if not positive:
        return {}, cost
    source = f"measured: least event of an op on one element, {len(positive)} events"
    return {f"launch.{framework.mechanism}": _best_of(positive, min(positive), source)}, cost


#: Numbers that a function is evaluated on: enough that starting the op is little, few enough to stay in a cache. Three
#: sizes, as frameworks give small and large ones to other code and to other numbers of threads.
FUNCTION_ELEMENTS = (1 << 14, 1 << 17, 1 << 19)
FUNCTION_RUNS = 25


def _functions(framework: Framework, counted: Counted) -> dict[str, Ceiling]:
    """The rates of the functions that the step evaluates, by the framework's own code.

    Each library computes a function in its own way, so that one's best is not another's: the device's ceiling is the
    best that any of them was seen at.
    """
    names = sorted({name for op in counted.ops for name in op.costed.cost.functions or ()})
    found: dict[str, Ceiling] = {}
    for name in names:
        rates = [rate for size in FUNCTION_ELEMENTS for rate in _rates(framework, name, size)]
        if rates:
            sizes = ", ".join(map(str, FUNCTION_ELEMENTS))
            source = f"measured: {framework.mechanism} on {sizes} numbers, best of {len(rates)}"
            found[f"function.{name}"] = _best_of(rates, max(rates), source)
    return found


def _rates(framework: Framework, name: str, elements: int) -> list[float]:
    """Evaluations per second of a function in each of a few runs; none where the framework does not have it."""
    from roofline.traces.xplane import reader

    run = framework.function(name, elements)
    if run is None:
        return []
    framework.wait(run())

    def marked() -> None:
        with framework.mark(f"{STEP}#0"):
            for _ in range(FUNCTION_RUNS):
                framework.wait(run())

    trace = reader.read(framework.profiled(marked))
    owned = framework.read([trace], STEP).owned[0]
    ran = (owned.op >= 0) | owned.lost
    # The op that takes the time; beside it a framework may copy its result.
    times = sorted(((owned.end - owned.start)[ran] * executor.PICOSECOND).tolist(), reverse=True)
    times = [time for time in times[:FUNCTION_RUNS] if time > 0]
    return [elements / time for time in times] if len(times) == FUNCTION_RUNS else []


def _best_of(values: list[float], best: float, source: str) -> Ceiling:
    apart = abs(1 - median(values) / best) if median(values) < best else 1 - best / median(values)
    return Ceiling(value=best, source=source, spread=round(apart, 4), date=date.today().isoformat())


def _assemble(
    step: Step,
    plan: Plan,
    framework: Framework,
    run: _Plain,
    counted: Counted,
    timed: Timed | None,
    memory: Memory | None,
    ceilings: Mapping[str, Ceiling] | None = None,
) -> Recording:
    switches = {**framework.switches(), **step.switches}
    rows = op_rows(counted, timed, notes.block_of_scopes(step, counted.scopes), switches, plan.device)
    threads = plan.threads or 1
    return Recording(
        wall=run.wall,
        profiled=None if timed is None else profiled(timed, framework.mechanism),
        scopes=counted.scopes,
        phases=PHASES,
        blocks=rows.blocks,
        signatures=rows.signatures,
        ops=rows.ops,
        kernels=rows.kernels,
        memory=memory or Memory(),
        parameters=step.parameters,
        trainable=step.trainable,
        samples=step.samples,
        tokens=step.tokens,
        mode=step.mode,
        batch=step.batch,
        seq=step.seq,
        versions=framework.versions(),
        switches=switches,
        environment={"threads": str(threads), **framework.environment()},
        conditions={
            "cpu_share": run.usage.share(threads),
            "involuntary_switches_per_second": run.usage.switch_rate,
            "others_cpu": run.usage.others / run.usage.wall if run.usage.wall > 0 else 0.0,
            "load": run.usage.load,
            **run.system.per_step(run.ran),
            **({} if run.compiling is None or not run.ran else {"compiling_seconds_per_step": run.compiling / run.ran}),
            **({} if timed is None or timed.programs is None else {"programs_per_step": timed.programs}),
            **run.clocks.conditions(),
        },
        flags=(*_flags(plan, run, timed, threads), *counted.flags, *_phases_unresolved(step, counted)),
        ceilings=ceilings or {},
        notes=notes.notes(counted, timed),
    )


def _phases_unresolved(step: Step, counted: Counted) -> tuple[str, ...]:
    """A flag where a training step shows no backward pass: ops compiled one by one do not say where they are."""
    backward = (counted.phase == PHASES.index("backward")).any()
    works = any(op.costed.cost.flops for op in counted.ops)
    return ("phases-unresolved",) if step.mode == "train" and works and not backward else ()


def _flags(plan: Plan, run: _Plain, timed: Timed | None, threads: int) -> tuple[str, ...]:
    if timed is None:
        return ()
    flags = []
    if plan.device == "cpu" and run.usage.crowded():
        flags.append("contended")
    if plan.in_process:
        flags.append("in_process")
    flags.extend(run.clocks.flags())
    if timed.joined < 0.999 or timed.unseen:
        flags.append("unjoined")
    return tuple(flags)
