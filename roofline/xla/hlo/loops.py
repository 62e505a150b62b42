"""Count how often a loop runs, where the program says so before it runs."""

from __future__ import annotations

import json
from typing import Any

from roofline.xla.hlo.module import Instruction, Module

#: A chain of copies and views longer than this is damage.
_MAX_CHAIN = 1000
#: Counts beyond this are no loop that anybody waits for.
_MAX_TRIPS = 10**12
#: Comparisons that a condition asks for at once; more are damage.
_MAX_CONDITIONS = 16
_PASSED_ON = frozenset("copy bitcast convert reshape opt-barrier copy-done".split())
#: An instruction, and the index path of a part of its result.
Value = tuple[Instruction, tuple[int, ...]]


def trips(module: Module, instruction: Instruction) -> int | None:
    """The number of iterations of a `while`: what the compiler noted, or what counter, limit and step say.

    None where it depends on data: then what ran is known only from a trace.
    """
    key = ("trips", instruction)
    if key not in module.memo:
        noted_trips = noted(instruction)
        try:
            module.memo[key] = _read(module, instruction) if noted_trips is None else noted_trips
        except (IndexError, KeyError, ValueError):
            module.memo[key] = None
    remembered: int | None = module.memo[key]
    return remembered


def noted(instruction: Instruction) -> int | None:
    """The number of iterations as the compiler noted it; None where it noted none."""
    try:
        number = int(json.loads(instruction.backend_config)["known_trip_count"]["n"])
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None
    return number if 0 <= number <= _MAX_TRIPS else None


def _read(module: Module, instruction: Instruction) -> int | None:
    """Counter against a limit, from a start, by a step: constants, or what the loop hands on unchanged.

    Of a condition that asks for several at once the first that fails ends the loop.
    """
    _, condition = instruction.called
    waiting = [_origin(module, condition.root)]
    counts: list[int | None] = []
    while waiting:
        value, _ = waiting.pop()
        if value.opcode == "and" and len(counts) < _MAX_CONDITIONS:
            waiting += [_origin(module, operand) for operand in value.operands]
        else:
            counts.append(_compared(module, instruction, value))
    countable = [number for number in counts if number is not None]
    return min(countable) if len(countable) == len(counts) else None


def _compared(module: Module, loop: Instruction, compare: Instruction) -> int | None:
    """Count the trips before a comparison of a counter with a limit fails; None where only a run can tell."""
    if compare.opcode != "compare":
        return None
    direction = compare.message.comparison_direction
    counter, bound = (_origin(module, operand) for operand in compare.operands)
    if not _is_state(loop, counter) or _step(module, loop, counter) is None:
        counter, bound = bound, counter
        direction = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}.get(direction, direction)
    if not _is_state(loop, counter):
        return None
    start, limit = _integer(module, _origin(module, loop.operands[0], counter[1])), _unchanged(module, loop, bound)
    step = _step(module, loop, counter)
    if start is None or limit is None or not step:
        return None
    return _count(start, limit, step, direction)


def _count(start: int, limit: int, step: int, direction: str) -> int | None:
    """Count how many of start, start + step, ... come before the comparison fails; None where it never does."""
    if direction in ("GT", "GE"):
        start, limit, step = -start, -limit, -step
    if direction in ("LE", "GE"):
        limit += 1
    if direction == "NE":
        number, remainder = divmod(limit - start, step)
        return number if not remainder and 0 <= number <= _MAX_TRIPS else None
    if direction not in ("LT", "LE", "GT", "GE") or (step < 0 and start < limit):
        return None
    number = max(0, -((start - limit) // step)) if start < limit else 0
    return number if number <= _MAX_TRIPS else None


def _step(module: Module, loop: Instruction, counter: Value) -> int | None:
    """Return what the body adds to the counter."""
    update, _ = _origin(module, loop.called[0].root, counter[1])
    if update.opcode not in ("add", "subtract"):
        return None
    state, increment = (_origin(module, operand) for operand in update.operands)
    if update.opcode == "add" and not _is_state(loop, state):
        state, increment = increment, state
    step = _unchanged(module, loop, increment)
    if step is None or state[1] != counter[1] or not _is_state(loop, state):
        return None
    return step if update.opcode == "add" else -step


def _is_state(loop: Instruction, value: Value) -> bool:
    """Tell whether a value is what the loop's body or its condition is given."""
    return value[0] in (computation.parameters.get(0) for computation in loop.called) and bool(value[1])


def _unchanged(module: Module, loop: Instruction, value: Value) -> int | None:
    """The integer that a value is in each trip: a constant, or what the loop was given and hands on as it is."""
    if _is_state(loop, value):
        body = loop.called[0]
        if _origin(module, body.root, value[1]) != (body.parameters.get(0), value[1]):
            return None
        value = _origin(module, loop.operands[0], value[1])
    return _integer(module, value)


def _integer(module: Module, value: Value) -> int | None:
    """The integer that a value is: a constant, or what a loop leaves of one that it counts or hands on as it is."""
    maker, index = value
    if maker.opcode != "while":
        return None if index else _constant(maker)
    state = maker.called[0].parameters[0], index
    step = _step(module, maker, state)
    if step is None:
        return _unchanged(module, maker, state)
    start, number = _integer(module, _origin(module, maker.operands[0], index)), trips(module, maker)
    return None if start is None or number is None else start + number * step


def _origin(module: Module, value: Instruction, index: tuple[int, ...] = ()) -> Value:
    """Find what made a part of a value: through copies and tuples, into fusions and calls, out of parameters."""
    for _ in range(_MAX_CHAIN):
        if value.opcode in _PASSED_ON:
            value = value.operands[0]
        elif value.opcode == "get-tuple-element":
            value, index = value.operands[0], (value.number, *index)
        elif value.opcode == "tuple" and index:
            value, index = value.operands[index[0]], index[1:]
        elif value.opcode in ("fusion", "call"):
            value = value.called[0].root
        elif value.opcode == "parameter" and (caller := _caller(module, value)) is not None:
            value = caller.operands[value.number]
        else:
            return value, index
    raise ValueError("an endless chain")


def _caller(module: Module, parameter: Instruction) -> Instruction | None:
    """The fusion or call that a parameter belongs to; None for one of a loop, of the entry, or of several calls."""
    if "called parameters" not in module.memo:
        module.memo["called parameters"] = {
            inner_parameter: sites[0]
            for computation, sites in module.callers.items()
            if sites[0].opcode in ("fusion", "call") and len(sites) == 1
            for inner_parameter in computation.parameters.values()
        }
    caller: Instruction | None = module.memo["called parameters"].get(parameter)
    return caller


def _constant(value: Instruction) -> int | None:
    """The value of an integer constant of one element."""
    if value.opcode != "constant" or value.shape.elements != 1:
        return None
    literal: Any = value.message.literal
    for name in ("s32s", "s64s", "u32s", "u64s"):
        numbers = getattr(literal, name)
        if len(numbers) == 1:
            return int(numbers[0])
    for name, signed in (("s8s", True), ("u8s", False), ("s16s", True), ("u16s", False)):
        data = getattr(literal, name)
        if data:
            return int.from_bytes(data, "little", signed=signed)
    return None
