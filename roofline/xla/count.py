"""Executed HLO instructions: from traces and the programs in them to the ops of a step.

JAX, TensorFlow and Keras run what XLA compiles in the same way: one event per executed instruction, named as in the
optimised program, which the trace holds too. So one reader serves them all and needs none of them.

An instruction that a step runs more than once is one op with the work of all its executions. A control instruction
(while, conditional, call) whose body has events of its own is no op; one without is charged with its body.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from roofline.costs.counted import Access, Costed, Counted, CountedOp, Interner
from roofline.timing import executor
from roofline.timing.executor import NO_WAITS, Owned, Waits
from roofline.traces.xplane.reader import Line as TraceLine
from roofline.traces.xplane.reader import XTrace
from roofline.xla import model_flops
from roofline.xla import scopes as xla_scopes
from roofline.xla.executed import Executed, Key
from roofline.xla.hlo import buffers as hlo_buffers
from roofline.xla.hlo import cost
from roofline.xla.hlo import module as hlo
from roofline.xla.hlo.opcodes import FREE
from roofline.xla.places import Placing, place_of
from roofline.xla.scopes import BACKWARD, FORWARD
from roofline.xla.storages import storages
from roofline.xla.tails import Tails, tails
from roofline.xla.updates import UPDATE, in_other_programs, updates

#: Program id -> its optimised module.
Programs = Mapping[int, hlo.Module]
Accesses = tuple[Access, ...]
#: From an instruction to the line of the user's program that asked for it; None: not known.
Line = Callable[[hlo.Module, hlo.Instruction], str | None]

#: Lines of a device plane that are no stream of it: derived by a viewer from the others, and what profiling cost.
_DERIVED = re.compile(
    r"(Async )?XLA (Async )?(Ops|Modules|TraceMe)|Steps|Framework (Ops|Name Scope)|Source code|.*overhead.*",
    re.IGNORECASE,
)
#: Set where devices share the work of a program.
SEVERAL_DEVICES = "several-devices"
CONTROL = frozenset(("while", "conditional", "call", "async-start"))


@dataclass(frozen=True, slots=True, eq=False)
class _Events:
    """The executor's events of one trace, columns of one length; code: number of the key, -1 where there is none.

    row: in the trace. start, end: [ps], an asynchronous tail included; waits: when it only stood in a queue.
    """

    row: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    waits: Waits
    code: NDArray[np.int64]
    keys: tuple[Key, ...]
    device: bool


def count(
    traces: Sequence[XTrace],
    prefix: str,
    before: Sequence[tuple[int, str, bytes]] = (),
    optimizers: tuple[str, ...] = ("optimizer",),
    placing: Placing | None = None,
    line: Line | None = None,
) -> tuple[Counted, list[Owned]]:
    """The ops of the steps that `prefix` marks in `traces`, and whose each event is.

    before: (number, name, HloProto bytes) of programs as they were before optimisation, for model FLOPs; without them
    model FLOPs are what the optimised program holds, recomputation left out, and the flag `optimised-only` says so.
    optimizers: top scopes whose ops are the optimizer's. placing: reads op_names; by default those of JAX.
    line: names that of an instruction; None: none is known.
    """
    events = [_events(trace) for trace in traces]
    times, order = _times(traces, events, prefix)
    programs = _programs(traces, order)
    in_programs = [key for key in order if key[0] in programs and key[1] in programs[key[0]].instructions]
    runs = {program: _runs(module, program, times) for program, module in programs.items()}
    # All devices that share a program run it, in one execution.
    executions = _executions(traces, events, prefix)
    runs |= {program: executions[program] * programs[program].devices for program in runs.keys() & executions.keys()}
    times |= _capped(in_programs, programs, times, runs)
    times_of_known = {key: times[key] for key in in_programs}
    devices = {program: programs[program].devices for program in runs.keys() & executions.keys()}
    counted = of_instructions(times_of_known, programs, runs, before, optimizers, placing, devices, line)
    if counted.devices > 1:
        counted = replace(counted, flags=(*counted.flags, SEVERAL_DEVICES))
    rows = _without_parents(in_programs, programs)
    number = {key: row for row, key in enumerate(rows)}
    parents = set(in_programs) - set(rows)
    return counted, [
        _owned(trace, trace_events, number, parents) for trace, trace_events in zip(traces, events, strict=True)
    ]


def of_instructions(
    times: Mapping[Key, float],
    programs: Programs,
    runs: Mapping[int, float],
    before: Sequence[tuple[int, str, bytes]] = (),
    optimizers: tuple[str, ...] = ("optimizer",),
    placing: Placing | None = None,
    devices: Mapping[int, int] = MappingProxyType({}),
    line: Line | None = None,
) -> Counted:
    """The ops of a step that runs each of these instructions so often, in order; the rest is as in `count`.

    runs: how often it runs each program, each device that does for itself. devices: how many do, by program; else 1.
    """
    keys = _without_parents(list(times), programs)
    interner = Interner()
    ops = [_executed(key, programs[key[0]], times[key], devices.get(key[0], 1), interner) for key in keys]
    place = placing or (lambda op_name: xla_scopes.place(op_name, optimizers))
    ops, flags = model_flops.assign(ops, programs, before, interner, place, runs)
    return _tables(ops, programs, runs, place, flags, devices, line)


def executed_instructions(trace: XTrace, prefix: str) -> dict[int, list[str]]:
    """Program id -> names of the instructions that ran in the steps marked with `prefix`, of programs in the trace."""
    _, order = _times([trace], [_events(trace)], prefix)
    executed: dict[int, list[str]] = {}
    for program, name in order:
        if program in trace.modules:
            executed.setdefault(program, []).append(name)
    return executed


# ---------------------------------------------------------------------------------------------- events


def is_stream(line: TraceLine) -> bool:
    """Tell whether a line holds what a device ran, as it was recorded."""
    return line.plane.startswith("/device:") and not _DERIVED.fullmatch(line.name)


def _events(trace: XTrace) -> _Events:
    """The events of executed instructions: kernels where there is a device, thunks where there is none."""
    on_device = np.asarray([is_stream(line) for line in trace.lines])
    device = bool(on_device.any() and on_device[trace.line].any())
    rows = np.flatnonzero(on_device[trace.line] if device else trace.hlo_op >= 0)
    pairs = np.stack((trace.program[rows], trace.hlo_op[rows].astype(np.int64)), axis=1)
    distinct, code = np.unique(pairs, axis=0, return_inverse=True) if len(rows) else (pairs, np.zeros(0, np.int64))
    keys = tuple((program, trace.names[name] if name >= 0 else "") for program, name in distinct.tolist())
    named = np.asarray([bool(name) for _, name in keys], bool)
    code = np.where(named[code], code, -1) if len(rows) else code
    end, waits = Tails(trace.end[rows], NO_WAITS) if device else tails(trace, rows)
    return _Events(rows, trace.start[rows], end, waits, code, keys, device)


def _times(traces: Sequence[XTrace], events: Sequence[_Events], prefix: str) -> tuple[dict[Key, float], list[Key]]:
    """Count how often a step runs each instruction; list the instructions in the order in which they first began."""
    totals: dict[Key, float] = {}
    steps = 0
    for trace, trace_events in zip(traces, events, strict=True):
        for low, high in executor.windows(trace, prefix):
            steps += 1
            inside = np.flatnonzero(
                (trace_events.start >= low) & (trace_events.start < high) & (trace_events.code >= 0)
            )
            # Several kernels may serve one instruction: it ran as often as the most frequent of them.
            pairs = np.stack((trace_events.code[inside], trace.name[trace_events.row[inside]].astype(np.int64)), axis=1)
            distinct, number = np.unique(pairs, axis=0, return_counts=True)
            runs: dict[int, int] = {}
            for code, times in zip(distinct[:, 0].tolist(), number.tolist(), strict=True):
                runs[code] = max(runs.get(code, 0), times)
            codes = trace_events.code[inside]
            first = np.unique(codes, return_index=True)
            for code in first[0][np.argsort(trace_events.start[inside][first[1]], kind="stable")].tolist():
                totals[trace_events.keys[code]] = totals.get(trace_events.keys[code], 0.0) + runs[code]
    return {key: total / max(1, steps) for key, total in totals.items()}, list(totals)


def _owned(trace: XTrace, events: _Events, number: Mapping[Key, int], parents: set[Key]) -> Owned:
    """Assign each event to its op. Parents' events hold their children's; what has no op at all is lost."""
    op_of = np.asarray([number.get(key, -1) for key in events.keys] + [-1], np.int64)
    parent = np.asarray([key in parents for key in events.keys] + [False], bool)
    size = len(trace.start)
    op, lost = np.full(size, -1, np.int64), np.zeros(size, bool)
    start, end = trace.start.copy(), trace.end.copy()
    op[events.row] = op_of[events.code]
    lost[events.row] = (op_of[events.code] < 0) & ~parent[events.code]
    start[events.row], end[events.row] = events.start, events.end
    return Owned(op=op, start=start, end=end, lost=lost, waits=events.waits, device=events.device)


# ---------------------------------------------------------------------------------------------- instructions


def _programs(traces: Sequence[XTrace], keys: Sequence[Key]) -> dict[int, hlo.Module]:
    """The modules of the programs that ran."""
    modules: dict[int, hlo.Module] = {}
    for program in dict.fromkeys(program for program, _ in keys):
        for trace in traces:
            if program in trace.modules:
                name, data = trace.modules[program]
                modules[program] = hlo.read(data, f"the program {name}")
                break
    return modules


def _without_parents(keys: Sequence[Key], programs: Programs) -> list[Key]:
    """The keys without those of control instructions whose body has events of its own, or had nothing to run."""
    ran = set(keys)
    return [key for key in keys if not _has_children(programs[key[0]], key, ran) and not _ran_nothing(programs, key)]


def _ran_nothing(programs: Programs, key: Key) -> bool:
    """Tell whether a conditional none of whose branches has events may have run one that hands on what it got."""
    instruction = programs[key[0]].instructions[key[1]]
    return instruction.opcode == "conditional" and any(
        all(inner.opcode in FREE for inner in branch.instructions) for branch in instruction.called
    )


def _has_children(module: hlo.Module, key: Key, ran: set[Key]) -> bool:
    instruction = module.instructions[key[1]]
    if instruction.opcode not in CONTROL:
        return False
    waiting, visited = list(instruction.called), set()
    while waiting:
        computation = waiting.pop()
        if id(computation) in visited:
            continue
        visited.add(id(computation))
        for inner in computation.instructions:
            if (key[0], inner.name) in ran and inner.name != key[1]:
                return True
            if inner.opcode in CONTROL:
                waiting += inner.called
    return False


def _executed(key: Key, module: hlo.Module, times: float, devices: int, interner: Interner) -> Executed:
    """Count an instruction. times: how often it runs, on all of the devices together."""
    instruction = module.instructions[key[1]]
    costed, reads, writes = cost.cost(module, instruction)
    turns = times / devices
    if turns > 1:
        array_bytes = _whole_arrays(module, instruction)
        swept = (_swept(costed.reads, reads, turns, array_bytes), _swept(costed.writes, writes, turns, array_bytes))
        costed = replace(costed, reads=swept[0], writes=swept[1])
    if devices > 1:  # each has a memory, or a part of it, of its own
        costed = replace(costed, reads=_of_all(costed.reads, devices), writes=_of_all(costed.writes, devices))
    return Executed(key, instruction, times, _scaled(costed, times, interner), reads, writes)


def _scaled(costed: Costed, times: float, interner: Interner) -> Costed:
    """The work of `times` executions. What the first one fetched, the next one finds: accesses keep their size."""
    if times == 1:
        return costed
    parts = tuple(_scaled(part, times, interner) for part in costed.parts)
    return interner(replace(costed, cost=costed.cost * times, parts=parts))


def _whole_arrays(module: hlo.Module, instruction: hlo.Instruction) -> dict[int, float]:
    """Bytes of the arrays that an instruction is given and makes, by buffer."""
    array_bytes: dict[int, float] = {}
    for value in (*instruction.operands, instruction):
        for index, shape in value.shape.leaves():
            number = hlo_buffers.buffer(module, value, index)
            array_bytes[number] = max(array_bytes.get(number, 0.0), float(shape.bytes))
    return array_bytes


def _swept(
    accesses: Sequence[Access], buffers: Sequence[int], times: float, array_bytes: Mapping[int, float]
) -> Accesses:
    """Return what several executions touch: where each takes a slice of an array, up to all of it.

    A loop over layers takes the weights of another layer each time; what it takes whole stays what it was.
    """
    return tuple(
        (argument, place, max(size, min(size * times, array_bytes.get(number, 0.0))))
        for (argument, place, size), number in zip(accesses, buffers, strict=True)
    )


def _of_all(accesses: Sequence[Access], devices: int) -> Accesses:
    return tuple((argument, place, size * devices) for argument, place, size in accesses)


def _runs(module: hlo.Module, program: int, times: Mapping[Key, float]) -> float:
    """Count how often a step runs a program: as often as most of what lies in no loop and no branch."""
    entry_keys = ((program, instruction.name) for instruction in module.entry.instructions)
    counts = sorted(times[key] for key in entry_keys if key in times)
    return counts[len(counts) // 2] if counts else 1.0


def _executions(traces: Sequence[XTrace], events: Sequence[_Events], prefix: str) -> dict[int, float]:
    """Count how often a step runs each program whose events say which execution they are of."""
    executions: dict[int, int] = {}
    unsaid: set[int] = set()
    steps = 0
    for trace, trace_events in zip(traces, events, strict=True):
        for low, high in executor.windows(trace, prefix):
            steps += 1
            rows = trace_events.row[
                (trace_events.start >= low) & (trace_events.start < high) & (trace_events.code >= 0)
            ]
            pairs = np.unique(np.stack((trace.program[rows], trace.run[rows]), axis=1), axis=0)
            unsaid.update(pairs[np.isin(pairs[:, 1], (0, -1)), 0].tolist())
            for program, number in zip(*np.unique(pairs[:, 0], return_counts=True), strict=True):
                executions[int(program)] = executions.get(int(program), 0) + int(number)
    return {program: number / steps for program, number in executions.items() if program not in unsaid}


def _capped(
    keys: Sequence[Key], programs: Programs, times: Mapping[Key, float], runs: Mapping[int, float]
) -> dict[Key, float]:
    """Cap how often instructions ran: a sort is several events, or many equal kernels, and ran as its neighbours.

    In the entry that is as often as its program; in a loop or a branch as most of what lies in it.
    """
    capped: dict[Key, float] = {}
    for program, module in programs.items():
        mine = {name for of, name in keys if of == program}
        for computation in module.computations:
            keys_inside = [
                (program, instruction.name) for instruction in computation.instructions if instruction.name in mine
            ]
            counts = sorted(times[key] for key in keys_inside)
            if counts:
                limit = runs[program] if computation is module.entry else counts[(len(counts) - 1) // 2]
                capped |= {key: min(times[key], limit) for key in keys_inside}
    return capped


# ---------------------------------------------------------------------------------------------- tables


def _tables(
    ops: Sequence[Executed],
    programs: Programs,
    runs: Mapping[int, float],
    place: Placing,
    flags: tuple[str, ...],
    devices: Mapping[int, int],
    line: Line | None,
) -> Counted:
    scopes: dict[str, int] = {}
    buffers: dict[tuple[int, int], int] = {}
    carried = {key: value for program, module in programs.items() for key, value in _carried(program, module).items()}
    reasons: dict[str, str] = {}
    rows, scope, phase = [], [], []
    places = [place_of(programs[op.key[0]], op.instruction, place) for op in ops]
    updated: frozenset[hlo.Instruction] = frozenset()
    if {BACKWARD} <= {op_place.phase for op_place in places} <= {FORWARD, BACKWARD}:
        updated = frozenset().union(*(updates(module, place) for module in programs.values()))
        often = {module: runs.get(program, 1.0) for program, module in programs.items()}
        updated = updated or in_other_programs(often, place)

    def buffer(program: int, number: int) -> int:
        key = (program, number)
        return buffers.setdefault(carried.get(key, key), len(buffers))

    for row, op in enumerate(ops):
        program = op.key[0]
        where = UPDATE if op.instruction in updated else places[row]
        scope.append(scopes.setdefault(where.scope or "", len(scopes)))
        phase.append(where.phase)
        rows.append(
            CountedOp(
                node=row,
                costed=op.costed,
                reads=tuple(buffer(program, number) for number in op.reads),
                writes=tuple(buffer(program, number) for number in op.writes),
                times=max(1, round(op.times / devices.get(program, 1))),
                line=None if line is None else line(programs[program], op.instruction),
            )
        )
        if op.costed.cost.quality == "unknown":
            reasons[cost.title(op.instruction)] = op.costed.cost.note
    return Counted(
        names=tuple(op.key[1] for op in ops),
        thread=np.zeros(len(ops), np.int64),
        parent=np.full(len(ops), -1, np.int64),
        op_of=np.arange(len(ops)),
        view_of=np.zeros(len(ops), bool),
        ops=tuple(rows),
        names_of_ops=tuple(cost.title(op.instruction) for op in ops),
        scopes=tuple(scopes) or ("",),
        scope=np.asarray(scope, np.int64),
        phase=np.asarray(phase, np.int64),
        unknown=reasons,
        flags=flags,
        addresses=_addresses(programs, buffers, devices),
        storages=storages(ops, phase, programs, devices),
        devices=max((devices.get(op.key[0], 1) for op in ops), default=1),
    )


def _addresses(
    programs: Programs, buffers: Mapping[tuple[int, int], int], devices: Mapping[int, int]
) -> dict[int, int]:
    """Buffer -> address [byte]; the programs' allocations lie one behind the other. buffers: (program, its number).

    What devices that share a program each have of a buffer is taken as one behind the other.
    """
    by_program: dict[tuple[int, int], int] = {}
    begin = 0
    for program, module in programs.items():
        first, many = begin, devices.get(program, 1)
        in_module, end = hlo_buffers.addresses(module, first)
        by_program |= {(program, number): first + (at - first) * many for number, at in in_module.items()}
        begin = first + (end - first) * many
    return {number: by_program[place] for place, number in buffers.items() if place in by_program}


def _carried(program: int, module: hlo.Module) -> dict[tuple[int, int], tuple[int, int]]:
    """Result buffers that the next step takes as parameters: a training step returns what it was given, updated.

    A result that XLA did not put in place of a parameter is taken for the next value of the first parameter of its
    type and shape that no other result is; where no parameter is of that shape it is a result and nothing else.
    """
    parameters, outputs = hlo_buffers.entry_buffers(module)
    free: dict[object, list[int]] = {}
    in_place = {number for number, _, _ in outputs}
    for number, _, shape in parameters:
        if number not in in_place:
            free.setdefault((shape.dtype, shape.dims), []).append(number)
    parameter_buffers = {number for number, _, _ in parameters}
    pairs = {}
    for number, _, shape in outputs:
        waiting = free.get((shape.dtype, shape.dims))
        if number not in parameter_buffers and waiting and shape.dims:
            pairs[program, number] = (program, waiting.pop(0))
    return pairs
