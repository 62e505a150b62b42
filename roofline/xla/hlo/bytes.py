"""Compulsory traffic of an HLO instruction: which buffers it reads and writes, and how much of each (docs/counting.md).

Each distinct input element is read once and each output element written once. Which elements of its operands a fusion
needs is found by walking it backwards from its results: element-wise instructions need the same elements of their
operands, slices and gathers only theirs, everything else all. Updates in place write, and read, only their rows. XLA's
own figure differs where it looks at the direct users of a parameter only; tests list the reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from roofline.xla.hlo import custom_calls
from roofline.xla.hlo.buffers import buffer, results, slot, view_source
from roofline.xla.hlo.flops import UNFIT, updates
from roofline.xla.hlo.module import Computation, Instruction, Module
from roofline.xla.hlo.opcodes import CONTROL, ELEMENTWISE, FREE, REORDERED, ends_pair

#: What of a value is needed: all of it (None), or so many elements under each of some keys, equal keys being equal
#: elements. No key at all is nothing.
Need = dict[Any, int] | None
_NOTHING: dict[Any, int] = {}


@dataclass(frozen=True, slots=True)
class Accesses:
    """(buffer, bytes) of each distinct buffer that is read and written. known: False where no rule tells them."""

    reads: tuple[tuple[int, float], ...] = ()
    writes: tuple[tuple[int, float], ...] = ()
    known: bool = True


def accesses(module: Module, instruction: Instruction) -> Accesses:
    """The traffic of one execution. A control instruction moves nothing itself; its units do."""
    key = ("accesses", instruction)
    if key not in module.memo:
        try:
            module.memo[key] = _accesses(module, instruction)
        except UNFIT:
            module.memo[key] = Accesses(known=False)
    traffic: Accesses = module.memo[key]
    return traffic


def _accesses(module: Module, instruction: Instruction) -> Accesses:
    opcode = instruction.opcode
    if opcode in FREE or opcode in CONTROL or ends_pair(opcode):
        return Accesses()
    if opcode == "custom-call" and custom_calls.is_mark(instruction):
        return Accesses()
    in_place = updates_in_place(module, instruction)
    needs = _needs(module, instruction, in_place)
    reads: dict[int, tuple[float, float]] = {}
    for operand, need in needs.items():
        for index, shape in operand.shape.leaves():
            array_bytes = float(shape.bytes)
            part = array_bytes if need is None else min(array_bytes, sum(need.values()) * shape.bits / 8)
            if part:
                number = buffer(module, operand, index)
                before, size = reads.get(number, (0.0, array_bytes))
                reads[number] = (before + part, max(size, array_bytes))
    writes: dict[int, float] = {}
    for index, size in _written(instruction, in_place):
        if size:
            number = buffer(module, instruction, index)
            writes[number] = max(writes.get(number, 0.0), size)
    return Accesses(
        # The same buffer through two operands is read once where the parts are all of it.
        tuple((number, min(part, size)) for number, (part, size) in reads.items()),
        tuple(writes.items()),
    )


# ------------------------------------------------------------------------------------------------ results


def updates_in_place(module: Module, instruction: Instruction) -> Mapping[tuple[int, ...], Instruction]:
    """Results that are an operand with some rows replaced, by index path: the dynamic-update-slice or scatter.

    In place means that the result has the operand's slot, and that only reshapings lie in between; where slots are not
    recorded it is assumed.
    """
    results = {}
    for index, root in _roots(instruction):
        update = view_source(root)
        if update.opcode not in ("dynamic-update-slice", "scatter") or not update.operands:
            continue
        target = view_source(update.operands[0])
        outer = target
        if instruction.opcode == "fusion":
            if target.opcode != "parameter" or target.number >= len(instruction.operands):
                continue
            outer = instruction.operands[target.number]
        if not module.slots or slot(module, outer) == slot(module, instruction, index):
            results[index] = update
    return results


def _roots(instruction: Instruction) -> list[tuple[tuple[int, ...], Instruction]]:
    """The instruction that makes each result, inside a fusion where it is one."""
    if instruction.opcode != "fusion":
        return [((), instruction)]
    root = instruction.called[0].root
    if root.opcode == "tuple":
        return [((number,), operand) for number, operand in enumerate(root.operands)]
    return [((), root)]


def _written(
    instruction: Instruction, in_place: Mapping[tuple[int, ...], Instruction]
) -> Iterable[tuple[tuple[int, ...], float]]:
    """(index path, bytes) of each array that is written."""
    if instruction.opcode == "custom-call":
        leaves = custom_calls.results(instruction)
    elif instruction.opcode.endswith("-start"):
        leaves = results(instruction)
    else:
        leaves = instruction.shape.leaves()
    scratch = (
        {index for index, root in _roots(instruction) if _is_scratch(root)} if instruction.opcode == "fusion" else ()
    )
    for index, shape in leaves:
        if index in scratch:
            continue
        update = in_place.get(index)
        if update is None and index and instruction.opcode == "scatter":
            update = in_place.get(())
        if update is None:
            yield index, float(shape.bytes)
        else:
            yield index, min(float(shape.bytes), _rows(update) * shape.bits / 8)


def _is_scratch(value: Instruction) -> bool:
    """Tell whether a value is a library's workspace: a fusion of such a call and slices returns it, too."""
    value = view_source(value)
    if value.opcode != "get-tuple-element" or value.operands[0].opcode != "custom-call":
        return False
    return (value.number,) not in {index for index, _ in custom_calls.results(value.operands[0])}


def _rows(update: Instruction) -> int:
    """Elements that an update replaces."""
    source = update.operands[1] if update.opcode == "dynamic-update-slice" else updates(update)[0]
    return source.shape.elements


# ------------------------------------------------------------------------------------------------ operands


def _needs(
    module: Module, instruction: Instruction, in_place: Mapping[tuple[int, ...], Instruction]
) -> dict[Instruction, Need]:
    """Return the elements that one execution needs of each distinct operand."""
    updates_done = frozenset(in_place.values())
    if instruction.opcode != "fusion":
        return _of_operands(module, instruction, None, updates_done)
    by_parameter = _of_parameters(module, instruction.called[0], updates_done)
    needs: dict[Instruction, Need] = {}
    for number, operand in enumerate(instruction.operands):
        _add(needs, operand, by_parameter.get(number, _NOTHING))
    return needs


def _of_parameters(
    module: Module, computation: Computation, updates_done: frozenset[Instruction] = frozenset()
) -> dict[int, Need]:
    """Return what a fused computation needs of each parameter. updates_done: those done in place."""
    if ("needs", computation, updates_done) in module.memo:
        remembered: dict[int, Need] = module.memo["needs", computation, updates_done]
        return remembered
    needs: dict[Instruction, Need] = {computation.root: None}
    for instruction in reversed(computation.instructions):  # users come before what they use
        need = needs.get(instruction, _NOTHING)
        if need is None or need:
            for operand, part in _of_operands(module, instruction, need, updates_done).items():
                _add(needs, operand, part)
    by_parameter = {number: needs.get(parameter, _NOTHING) for number, parameter in computation.parameters.items()}
    module.memo["needs", computation, updates_done] = by_parameter
    return by_parameter


def _add(needs: dict[Instruction, Need], value: Instruction, part: Need) -> None:
    before = needs.get(value, _NOTHING)
    needs[value] = None if before is None or part is None else {**before, **part}


def _of_operands(
    module: Module, instruction: Instruction, need: Need, updates_done: frozenset[Instruction]
) -> dict[Instruction, Need]:
    """Return what an instruction needs of its operands, where `need` is what is needed of its result."""
    operands, opcode, shape = instruction.operands, instruction.opcode, instruction.shape
    needs: dict[Instruction, Need] = {}
    if opcode == "fusion":
        inner = _of_parameters(module, instruction.called[0])
        for number, operand in enumerate(operands):
            _add(needs, operand, inner.get(number, _NOTHING))
        return needs
    number = shape.elements if need is None else sum(need.values())
    first: Need = None
    if opcode in ELEMENTWISE and need is not None:
        for operand in operands:
            _add(needs, operand, need if operand.shape.dims == shape.dims else None)
        return needs
    if opcode in REORDERED:
        first = _within(instruction, need)
    elif opcode == "broadcast" and need is not None:
        first = {(instruction, key): min(elements, operands[0].shape.elements) for key, elements in need.items()}
    elif opcode in ("slice", "dynamic-slice", "gather"):
        # Equal slices are equal elements; of a part of one, only how many is known.
        first = {_slice(instruction) if need is None else (instruction, None): number}
    elif opcode == "dynamic-update-slice":
        untouched = max(0, operands[0].shape.elements - _rows(instruction))
        first = _NOTHING if instruction in updates_done else {(instruction, "rest"): min(number, untouched)}
    elif opcode == "scatter":
        return _of_scatter(instruction, updates_done)
    elif opcode == "pad" and need is None:
        first = {(instruction, "kept"): _unpadded(instruction)}
    elif opcode == "get-tuple-element":
        first = need if operands[0].shape.dtype != "tuple" else None
    for place, operand in enumerate(operands):
        _add(needs, operand, first if place == 0 else None)
    return needs


def _within(instruction: Instruction, need: Need) -> Need:
    """Return the same number of elements, in an order of their own."""
    return None if need is None else {(instruction, key): elements for key, elements in need.items()}


def _slice(instruction: Instruction) -> Any:
    """Return a key that equal slices of one value share."""
    if instruction.opcode == "slice":
        return tuple((d.start, d.limit, d.stride) for d in instruction.message.slice_dimensions)
    return (instruction.opcode, instruction.operands[1:], tuple(instruction.shape.dims))


def _unpadded(instruction: Instruction) -> int:
    """Elements of the operand that a pad keeps: negative padding crops."""
    dims = instruction.operands[0].shape.dims
    edges = instruction.message.padding_config.dimensions
    return prod(
        max(0, size + min(0, edge.edge_padding_low) + min(0, edge.edge_padding_high))
        for size, edge in zip(dims, edges, strict=True)
    )


def _of_scatter(instruction: Instruction, updates_done: frozenset[Instruction]) -> dict[Instruction, Need]:
    """Targets: in place, the rows that are combined with what is there; a body that ignores that reads none."""
    number = len(instruction.operands) // 2
    needs: dict[Instruction, Need] = {}
    body = instruction.called[0] if instruction.called else None
    for place, operand in enumerate(instruction.operands):
        part: Need = None
        if place < number and instruction in updates_done:
            rows = updates(instruction)[0].shape.elements
            old = None if body is None else body.parameters.get(place)
            combined = old is None or old is (body and body.root) or _is_used(body, old)
            part = {(instruction, place): min(rows, operand.shape.elements)} if combined else _NOTHING
        _add(needs, operand, part)
    return needs


def _is_used(computation: Computation | None, value: Instruction) -> bool:
    return computation is not None and any(value in user.operands for user in computation.instructions)
