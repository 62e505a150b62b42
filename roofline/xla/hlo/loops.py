"""How often a loop runs, where the program says so before it runs."""

from __future__ import annotations

import json
from typing import Any

from roofline.xla.hlo.module import Instruction, Module

#: A chain of copies and views longer than this is damage.
_MAX_CHAIN = 1000
#: Counts beyond this are no loop that anybody waits for.
_MAX_TRIPS = 10**12
_PASSED_ON = frozenset("copy bitcast convert reshape opt-barrier copy-done".split())


def trips(module: Module, instruction: Instruction) -> int | None:
    """The number of iterations of a `while`: what the compiler noted, or what counter, limit and step say.

    None where it depends on data: then what ran is known only from a trace.
    """
    key = ("trips", instruction)
    if key not in module.memo:
        known = noted(instruction)
        try:
            module.memo[key] = _read(module, instruction) if known is None else known
        except (IndexError, KeyError, ValueError):
            module.memo[key] = None
    found: int | None = module.memo[key]
    return found


def noted(instruction: Instruction) -> int | None:
    """The number of iterations as the compiler noted it; None where it noted none."""
    try:
        number = int(json.loads(instruction.backend_config)["known_trip_count"]["n"])
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None
    return number if 0 <= number <= _MAX_TRIPS else None


def _read(module: Module, instruction: Instruction) -> int | None:
    """Counter against a constant, from a constant start, by a constant step."""
    body, condition = instruction.called
    compare = _origin(module, condition.root)
    if compare.opcode != "compare":
        return None
    direction = compare.message.comparison_direction
    left, right = (_origin(module, operand) for operand in compare.operands)
    if left.opcode == "constant":
        left, right = right, left
        direction = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}.get(direction, direction)
    limit = _integer(right)
    if left.opcode != "get-tuple-element" or left.operands[0].opcode != "parameter" or limit is None:
        return None
    place = left.number
    start = _integer(_origin(module, _element(instruction.operands[0], place)))
    step = _step(module, body.root, place)
    if start is None or not step:
        return None
    return _count(start, limit, step, direction)


def _count(start: int, limit: int, step: int, direction: str) -> int | None:
    """How many of start, start + step, ... come before the comparison fails; None where it never does."""
    if direction in ("GT", "GE"):
        start, limit, step = -start, -limit, -step
    if direction in ("LE", "GE"):
        limit += 1
    if direction == "NE":
        number, rest = divmod(limit - start, step)
        return number if not rest and 0 <= number <= _MAX_TRIPS else None
    if direction not in ("LT", "LE", "GT", "GE") or (step < 0 and start < limit):
        return None
    number = max(0, -((start - limit) // step)) if start < limit else 0
    return number if number <= _MAX_TRIPS else None


def _step(module: Module, root: Instruction, place: int) -> int | None:
    """What the body adds to the counter."""
    update = _origin(module, _element(root, place))
    if update.opcode not in ("add", "subtract"):
        return None
    left, right = (_origin(module, operand) for operand in update.operands)
    if update.opcode == "add" and left.opcode == "constant":
        left, right = right, left
    step = _integer(right)
    is_counter = left.opcode == "get-tuple-element" and left.number == place
    if step is None or not is_counter or left.operands[0].opcode != "parameter":
        return None
    return step if update.opcode == "add" else -step


def _element(value: Instruction, place: int) -> Instruction:
    for _ in range(_MAX_CHAIN):
        if value.opcode == "tuple":
            return value.operands[place]
        if value.opcode not in _PASSED_ON:
            break
        value = value.operands[0]
    raise ValueError("a loop whose state is no tuple")


def _origin(module: Module, value: Instruction) -> Instruction:
    """The instruction that made a value: through copies and views, into fusions and out of their parameters."""
    for _ in range(_MAX_CHAIN):
        if value.opcode in _PASSED_ON:
            value = value.operands[0]
        elif value.opcode == "fusion" and value.called[0].root.opcode != "tuple":
            value = value.called[0].root
        elif value.opcode == "parameter" and (fusion := _fusion_around(module, value)) is not None:
            value = fusion.operands[value.number]
        else:
            return value
    raise ValueError("an endless chain")


def _fusion_around(module: Module, parameter: Instruction) -> Instruction | None:
    """The fusion that a parameter belongs to; None for a parameter of a loop's body or the entry."""
    if "fused parameters" not in module.memo:
        module.memo["fused parameters"] = {
            each: sites[0]
            for computation, sites in module.callers.items()
            if sites[0].opcode == "fusion"
            for each in computation.parameters.values()
        }
    fusion: Instruction | None = module.memo["fused parameters"].get(parameter)
    return fusion


def _integer(value: Instruction) -> int | None:
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
