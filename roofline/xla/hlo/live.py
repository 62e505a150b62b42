"""Find the instructions of a program on which its result depends.

A program that was not optimised yet holds work that nobody asked for, such as the gradient of an input. In a branch or
a loop it may stand beside work that is needed, so that parts of results are followed one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from roofline.xla.hlo.module import Computation, Instruction, Module

#: What has an effect beside its result.
_EFFECTS = frozenset(
    (
        "infeed outfeed send send-done recv recv-done all-reduce all-gather all-to-all reduce-scatter "
        "collective-permute collective-broadcast ragged-all-to-all rng-get-and-update-state"
    ).split()
)
#: An instruction, and which part of its result; None: all of it.
_Part = tuple[Instruction, int | None]
#: No part of a result: it runs, for the sake of an effect or of another part, and what decides so is needed.
_RUNS = -1


def live(module: Module) -> frozenset[Instruction]:
    """Return the instructions on which the result of a program depends, or that have an effect of their own."""
    if "live" not in module.memo:
        module.memo["live"] = frozenset(instruction for instruction, _ in _needed(module))
    needed: frozenset[Instruction] = module.memo["live"]
    return needed


def _needed(module: Module) -> set[_Part]:
    owners = {
        instruction: computation for computation in module.computations for instruction in computation.instructions
    }
    effects = [instruction for instruction in owners if _has_effect(instruction)]
    waiting: list[_Part] = [(instruction, None) for instruction in (module.entry.root, *effects)]
    needed: set[_Part] = set()
    while waiting:
        part = waiting.pop()
        if part not in needed:
            needed.add(part)
            waiting += _sources(module, owners, *part)
    return needed


def _sources(
    module: Module, owners: Mapping[Instruction, Computation], value: Instruction, place: int | None
) -> Iterator[_Part]:
    """Yield what a part of a value depends on directly. owners: of instructions, their computations."""
    operands, called, callers = value.operands, value.called, module.callers.get(owners[value], ())
    yield from ((caller, _RUNS) for caller in callers)
    match value.opcode:
        case "get-tuple-element":
            yield operands[0], value.number
        case "tuple":
            yield from ((operand, None) for number, operand in enumerate(operands) if place in (None, number))
        case "parameter":
            for caller in callers:
                yield from _arguments(caller, owners[value], value.number, place)
        case "call" | "conditional" | "while" if place == _RUNS:
            predicates = operands[:1] if value.opcode == "conditional" else [loop.root for loop in called[1:]]
            yield from ((predicate, None) for predicate in predicates)
        case "call":
            yield from ((computation.root, place) for computation in called)
        case "conditional":
            yield operands[0], None
            yield from ((branch.root, place) for branch in called)
        case "while":
            yield operands[0], place
            yield from ((computation.root, None if number else place) for number, computation in enumerate(called))
        case _:
            yield from ((operand, None) for operand in (*operands, *(computation.root for computation in called)))


def _arguments(caller: Instruction, computation: Computation, number: int, place: int | None) -> Iterator[_Part]:
    """Yield what gives a part of a parameter to a computation; what applies one to elements needs all operands."""
    if caller.opcode == "call" and number < len(caller.operands):
        yield caller.operands[number], place
    elif caller.opcode == "conditional":
        branches = zip(caller.called, caller.operands[1:], strict=False)
        yield from ((operand, place) for branch, operand in branches if branch is computation)
    elif caller.opcode == "while":
        yield caller, place


def _has_effect(instruction: Instruction) -> bool:
    if instruction.opcode == "custom-call":
        return bool(instruction.message.custom_call_has_side_effect)
    return instruction.opcode in _EFFECTS
