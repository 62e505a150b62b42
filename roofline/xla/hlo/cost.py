"""The work, traffic, class and constituents of each unit of an HLO module, as the rows of a profile take them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from roofline.core.cost import Cost
from roofline.core.vocabulary import PRODUCTS, OpClass
from roofline.costs.counted import Costed, Interner
from roofline.costs.dtypes import of_most
from roofline.costs.linear_algebra import KIND
from roofline.costs.weight import weight
from roofline.xla.hlo import custom_calls, linear_algebra
from roofline.xla.hlo.buffers import results
from roofline.xla.hlo.buffers import size as buffer_size
from roofline.xla.hlo.bytes import Accesses, accesses
from roofline.xla.hlo.classes import instruction_class
from roofline.xla.hlo.flops import describe, work
from roofline.xla.hlo.loops import trips
from roofline.xla.hlo.module import Instruction, Module
from roofline.xla.hlo.opcodes import BITS, CONTROL, FREE, base, ends_pair
from roofline.xla.hlo.schedule import inside, joined, original

#: Run alone they would be views, which cost nothing: no constituents of a fused kernel.
_VIEWS = frozenset("broadcast slice transpose reshape reverse iota bitcast-convert dynamic-reshape".split())
#: The least rounds of a generator of random bits; threefry has 20.
_ROUNDS = 8
#: Equal layers are equal costs, in all modules of a process.
_interned = Interner()
_SUFFIX = re.compile(r"(\.(\d+|clone|remat\d*))+$")
#: PrecisionConfig.Precision of XLA; and its algorithms for fp32 inputs, by number and name (xla_data.proto).
_HIGHEST = 2
_ALGORITHMS: dict[int | str, str] = {
    **dict.fromkeys((6, 7, 8, 13), "bf16"),
    **dict.fromkeys((9, 10), "tf32"),
    11: "ieee",
    **dict.fromkeys((f"ALG_DOT_BF16_BF16_F32{times}" for times in ("", "_X3", "_X6", "_X9")), "bf16"),
    **dict.fromkeys(("ALG_DOT_TF32_TF32_F32", "ALG_DOT_TF32_TF32_F32_X3"), "tf32"),
    "ALG_DOT_F32_F32_F32": "ieee",
}
#: Kinds that do matrix work.
_KIND: dict[str, str] = {"dot": "matmul", "ragged-dot": "matmul", "convolution": "convolution"}


def cost(module: Module, instruction: Instruction) -> tuple[Costed, tuple[int, ...], tuple[int, ...]]:
    """(work and traffic of one execution, the buffers read, the buffers written), aligned with `Costed.reads/writes`.

    Equal content is one object, so that equal layers share a row's signature. A control instruction has what its units
    do together, by its static number of trips, for executors that run it as one kernel.
    """
    key = ("cost", instruction)
    if key not in module.memo:
        moved = _together(module, instruction) if instruction.opcode in CONTROL else accesses(module, instruction)
        module.memo[key] = (
            _costed(module, instruction, moved),
            tuple(number for number, _ in moved.reads),
            tuple(number for number, _ in moved.writes),
        )
    counted: tuple[Costed, tuple[int, ...], tuple[int, ...]] = module.memo[key]
    return counted


def title(instruction: Instruction) -> str:
    """Its name without its number: "multiply_add_fusion"; of a custom call its target."""
    return instruction.custom_call_target or _SUFFIX.sub("", instruction.name) or instruction.opcode


def op_names(module: Module, instruction: Instruction) -> dict[str, float]:
    """The scopes in a unit, in order, each with how much of its work came from there (`weight`; of views nothing)."""
    amounts: dict[str, float] = {}
    for inner in inside(instruction):
        name = original(module, joined(instruction.op_name, inner.op_name))
        if name:
            amount = 0.0 if inner.opcode in _VIEWS else weight(_alone(module, inner))
            amounts[name] = amounts.get(name, 0.0) + amount
    return amounts


def _costed(module: Module, instruction: Instruction, moved: Accesses) -> Costed:
    total = work(module, instruction)
    read, written = (float(sum(size for _, size in pairs)) for pairs in (moved.reads, moved.writes))
    if not moved.known:
        note = f"no rule for the traffic of this form of {describe(instruction)}"
        total = replace(total, bytes_read=None, bytes_written=None, quality="unknown", note=note)
    elif total.quality != "unknown" or instruction.opcode not in CONTROL:
        total = replace(total, bytes_read=read, bytes_written=written)
    if instruction.opcode == "fusion" or instruction.opcode in CONTROL or base(instruction.opcode) == "async":
        op_class, parts = _of_parts(module, instruction)
    else:
        op_class, parts = instruction_class(module, instruction), ()
    view = instruction.opcode in FREE or ends_pair(instruction.opcode)
    view = view or (instruction.opcode == "custom-call" and custom_calls.is_mark(instruction))
    shared = {number for number, _ in moved.reads} & {number for number, _ in moved.writes}
    dtype, output = _dtypes(module, instruction)
    return _interned(
        Costed(
            cost=total,
            kind=_kind(instruction, op_class),
            op_class=op_class,
            shapes=_shapes(instruction),
            dtype=dtype,
            output=output,
            reads=tuple((True, place, size) for place, (_, size) in enumerate(moved.reads)),
            writes=tuple((False, place, size) for place, (_, size) in enumerate(moved.writes)),
            inplace=bool(shared),
            view=view,
            parts=parts,
            arithmetic=_arithmetic(module, instruction) if total.flops else "",
        )
    )


def _together(module: Module, instruction: Instruction) -> Accesses:
    """Add up what the units of a control instruction read and write: of each buffer no more than there is.

    What a unit reads after another wrote it is on the chip. A loop whose trips are not known counts once.
    """
    reads: dict[int, float] = {}
    writes: dict[int, float] = {}
    for unit, times in _running(module, instruction):
        moved = accesses(module, unit)
        if not moved.known:
            return moved
        for number, size in moved.reads:
            if number not in writes:
                reads[number] = reads.get(number, 0.0) + times * size
        for number, size in moved.writes:
            writes[number] = writes.get(number, 0.0) + times * size
    return Accesses(_capped(module, reads), _capped(module, writes))


def _capped(module: Module, sizes: Mapping[int, float]) -> tuple[tuple[int, float], ...]:
    return tuple((number, min(size, float(buffer_size(module, number)))) for number, size in sizes.items())


def _running(module: Module, instruction: Instruction) -> list[tuple[Instruction, float]]:
    """The units that a control instruction runs, each with how often."""
    repetitions: dict[Instruction, float] = {}
    stack = [(instruction, 1.0)]
    visited = {instruction}
    while stack:
        control, times = stack.pop()
        times *= (trips(module, control) or 1) if control.opcode == "while" else 1
        for computation in control.called:
            for unit in computation.instructions:
                if unit.opcode not in CONTROL:
                    repetitions[unit] = repetitions.get(unit, 0.0) + times
                elif unit not in visited:
                    visited.add(unit)
                    stack.append((unit, times))
    return [(unit, times) for unit, times in repetitions.items() if unit.opcode not in FREE]


# --------------------------------------------------------------------------------------------- constituents


def _alone(module: Module, instruction: Instruction) -> Cost:
    """The work of an instruction and the traffic that it would have as a kernel of its own."""
    key = ("alone", instruction)
    if key not in module.memo:
        computed, opcode = work(module, instruction), instruction.opcode
        results_bytes = float(sum(shape.bytes for _, shape in _results(instruction)))
        operands = {operand: float(operand.shape.bytes) for operand in instruction.operands}
        if opcode in ("gather", "dynamic-slice", "slice") and operands:
            first = instruction.operands[0]
            operands[first] = min(operands[first], results_bytes)
        elif opcode in ("dynamic-update-slice", "scatter") and len(operands) > 1:
            source = instruction.operands[1 if opcode == "dynamic-update-slice" else -1]
            operands[instruction.operands[0]] = 0.0 if opcode == "dynamic-update-slice" else operands[source]
            results_bytes = operands[source]
        module.memo[key] = replace(computed, bytes_read=sum(operands.values()), bytes_written=results_bytes)
    remembered: Cost = module.memo[key]
    return remembered


def _results(instruction: Instruction) -> list[tuple[tuple[int, ...], Any]]:
    if instruction.opcode == "custom-call":
        return custom_calls.results(instruction)
    return results(instruction) if instruction.opcode.endswith("-start") else instruction.shape.leaves()


def _of_parts(module: Module, instruction: Instruction) -> tuple[OpClass, tuple[Costed, ...]]:
    """The dominant class of a fused kernel, and what it is made of by class.

    Contraction or attention if it holds one; otherwise the class with the most work alone (`weight`).
    """
    by_class: dict[OpClass, Cost] = {}
    members: dict[OpClass, list[Instruction]] = {}
    views: OpClass = "movement"
    constituents = list(inside(instruction))
    generates = _generates_bits(constituents)
    for inner in constituents:
        op_class = instruction_class(module, inner)
        if generates and op_class == "pointwise" and not inner.shape.floating:
            op_class = "random"
        if inner.opcode in _VIEWS and op_class == "movement":
            continue
        by_itself = _alone(module, inner)
        by_class[op_class] = by_class[op_class] + by_itself if op_class in by_class else by_itself
        members.setdefault(op_class, []).append(inner)
    if not by_class:
        return views, ()
    dominant = max(by_class, key=lambda op_class: weight(by_class[op_class]))
    dominant = next((op_class for op_class in ("attention", "contraction") if op_class in by_class), dominant)
    if len(by_class) == 1:
        return dominant, ()
    parts = [
        _interned(
            Costed(
                cost=total,
                kind="matmul" if op_class == "contraction" and total.flops else op_class,
                op_class=op_class,
                shapes="",
                dtype=_computed(module, members[op_class]) or _written(members[op_class]),
                output=_written(members[op_class]),
            )
        )
        for op_class, total in by_class.items()
    ]
    return dominant, tuple(parts)


def _generates_bits(instructions: list[Instruction]) -> bool:
    """Tell a counter-based generator without a scope: rounds of shifts and exclusive ors."""
    opcodes = [inner.opcode for inner in instructions if inner.opcode in BITS]
    return min(opcodes.count("xor"), opcodes.count("shift-left")) >= _ROUNDS


# ------------------------------------------------------------------------------------------------ names


def _kind(instruction: Instruction, op_class: OpClass) -> str:
    """Our kind of what it does: "matmul", "convolution", "attention", else the opcode."""
    if op_class in PRODUCTS:
        kinds = [_KIND.get(inner.opcode) or _custom_kind(inner) for inner in inside(instruction)]
        return next((kind for kind in kinds if kind), base(instruction.opcode))
    return KIND if linear_algebra.routine(instruction) else base(instruction.opcode)


def _custom_kind(instruction: Instruction) -> str:
    target = instruction.custom_call_target
    if not target:
        return ""
    op_class = custom_calls.op_class(instruction)
    if op_class == "attention":
        return "attention_backward" if "Backward" in target else "attention"
    if op_class == "contraction":
        return "convolution" if "conv" in target else "matmul"
    return ""


def _shapes(instruction: Instruction) -> str:
    """The shapes of its operands, for people: "[128,768] x [768,768]"; long lists are cut."""
    shapes = [
        "[" + ",".join(map(str, shape.dims)) + "]"
        for operand in instruction.operands
        for _, shape in operand.shape.leaves()
    ]
    return " x ".join(shapes[:3]) + (f" +{len(shapes) - 3}" if len(shapes) > 3 else "")


def _dtypes(module: Module, instruction: Instruction) -> tuple[str | None, str | None]:
    """(type that it computes in, type of most bytes of its results)."""
    output = _written([instruction])
    return _computed(module, inside(instruction)) or output, output


def _computed(module: Module, instructions: Iterable[Instruction]) -> str | None:
    """The type of what is multiplied, where there is a product; else that in which most elements are computed."""
    heaviest: tuple[float, str | None] = (-1.0, None)
    for inner in instructions:
        computed = work(module, inner)
        if not inner.operands:
            continue
        dtype = _input_dtype(inner)
        if computed.flops:
            return dtype
        amount = (computed.vector_flops or 0.0) + sum((computed.functions or {}).values()) or (
            computed.int_ops or 0.0
        ) * 1e-9
        heaviest = max(heaviest, (amount, dtype), key=lambda pair: pair[0])
    return heaviest[1]


def _written(instructions: Iterable[Instruction]) -> str | None:
    """The type of most bytes of some results."""
    leaves = (shape for instruction in instructions for _, shape in _results(instruction))
    return of_most((shape.dtype if shape.bits else None, float(shape.bytes)) for shape in leaves)


def _arithmetic(module: Module, instruction: Instruction) -> str:
    """Name what the first product in it must be computed in; "" where XLA is free to choose.

    Asked for by an algorithm, or by the precision "highest", which rules TF32 out; "default" and "high" do not.
    """
    for inner in inside(instruction):
        if work(module, inner).flops:
            precision, algorithm = custom_calls.asked_precision(inner)
            return _ALGORITHMS.get(algorithm, "ieee" if precision == _HIGHEST else "")
    return ""


def _input_dtype(instruction: Instruction) -> str | None:
    """The type of the first array that it takes."""
    leaves = instruction.operands[0].shape.leaves() if instruction.operands else []
    return leaves[0][1].dtype if leaves and leaves[0][1].bits else None
