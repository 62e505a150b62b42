"""List what an executor runs of a module as units, and what is inside a unit: scopes and contractions.

The units are the instructions of the entry and of the computations that loops, conditionals and calls run; a fusion is
one unit, whatever is in it. Before optimisation nothing is fused, and the units are all that the program says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from roofline.errors import InputError
from roofline.xla.hlo import linear_algebra
from roofline.xla.hlo.flops import work
from roofline.xla.hlo.loops import trips
from roofline.xla.hlo.module import Computation, Instruction, Module
from roofline.xla.hlo.opcodes import CONTROL, FREE, base

#: A program that calls its parts more often than this is damage.
MAX_UNITS = 500_000


@dataclass(frozen=True, slots=True)
class Unit:
    """Hold one place in a program where an instruction runs.

    path: the control instructions around it, outermost first; branches: for each of them, which of the computations
    it calls (of a while 0 is the body and 1 the condition; of a conditional the branch).
    op_name: its scope, with those of the calls around it that its own does not contain.
    control: whether it runs other units (which follow) instead of working itself.
    """

    instruction: Instruction
    path: tuple[Instruction, ...]
    branches: tuple[int, ...]
    op_name: str
    control: bool


def schedule(module: Module) -> tuple[Unit, ...]:
    """All units in order, those of a control instruction after it. A computation called twice is listed twice.

    Raises InputError for a program of more than MAX_UNITS units.
    """
    if "schedule" not in module.memo:
        module.memo["schedule"] = tuple(_units(module))
    units: tuple[Unit, ...] = module.memo["schedule"]
    return units


def _units(module: Module) -> Iterator[Unit]:
    number = 0
    stack = [_of_computation(module.entry, (), (), "")]
    while stack:
        unit = next(stack[-1], None)
        if unit is None:
            stack.pop()
            continue
        number += 1
        if number > MAX_UNITS:
            raise InputError(f"The HLO module {module.name} runs more than {MAX_UNITS} instructions: it is damaged.")
        yield unit
        if unit.control:
            instruction = unit.instruction
            # The last pushed runs first; the condition of a loop follows its body.
            for branch, computation in reversed(list(enumerate(instruction.called))):
                path, branches = (*unit.path, instruction), (*unit.branches, branch)
                stack.append(_of_computation(computation, path, branches, unit.op_name))


def _of_computation(
    computation: Computation, path: tuple[Instruction, ...], branches: tuple[int, ...], scope: str
) -> Iterator[Unit]:
    for instruction in computation.instructions:
        if instruction.opcode not in FREE:
            control = instruction.opcode in CONTROL and bool(instruction.called)
            yield Unit(instruction, path, branches, joined(scope, instruction.op_name), control)


def joined(scope: str, name: str) -> str:
    """The op_name of what is called from `scope`: JAX gives functions that it calls names of their own.

    >>> joined("jit(f)/jvp(jit(relu))", "max")
    'jit(f)/jvp(jit(relu))/max'
    >>> joined("jit(f)/while", "jit(f)/while/body/add")  # is whole
    'jit(f)/while/body/add'
    """
    root = scope.split("/", 1)[0]
    if not name or not root.endswith(")"):
        return name or scope
    return name if name == root or name.startswith(root + "/") else f"{scope}/{name}"


#: Where a module keeps, by op_names that XLA put the names of what was around in front of, those of the program.
INLINED = "inlined names"


def inlined(path: Sequence[Instruction], name: str) -> dict[str, str]:
    """Return what an instruction is called where XLA has its call, loop or conditional no more, with its op_name.

    path: what is around it, outermost first. XLA puts the name of each that it takes away in front of what was in it.
    """
    names, longer = {}, name
    for control in reversed(path):
        longer = f"{control.op_name}/{longer}" if control.op_name else longer
        names[longer] = name
    return names


def original(module: Module, op_name: str) -> str:
    """Return an op_name as the program has it that was not optimised, where the module was told that (`INLINED`)."""
    inlined_names: dict[str, str] = module.memo.get(INLINED, {})
    return inlined_names.get(op_name, op_name)


def inside(instruction: Instruction) -> Iterator[Instruction]:
    """List the instructions of a unit: those of a fusion (and of fusions and calls in it), or itself.

    Bodies of reductions and the like are part of the instruction that applies them. Free instructions are left out.
    """
    return (inner for inner, _ in _inside(instruction, lambda loop: 1))


def repeated(module: Module, instruction: Instruction) -> Iterator[tuple[Instruction, float]]:
    """List the same, each with how often one execution of the unit runs it; loops of unknown trips once."""
    return _inside(instruction, lambda loop: trips(module, loop) or 1)


def _inside(instruction: Instruction, turns: Callable[[Instruction], int]) -> Iterator[tuple[Instruction, float]]:
    stack = [(instruction, 1.0)]
    number = 0
    while stack:
        current, times = stack.pop()
        number += 1
        if number > MAX_UNITS:
            raise InputError(f"The HLO instruction {instruction.name} holds more than {MAX_UNITS} others: damaged.")
        if current.called and (
            current.opcode == "fusion" or current.opcode in CONTROL or base(current.opcode) == "async"
        ):
            inner = times * turns(current) if current.opcode == "while" else times
            for computation in reversed(current.called):
                stack += [(inner_instruction, inner) for inner_instruction in reversed(computation.instructions)]
        elif current.opcode not in FREE:
            yield current, times


def contractions(module: Module, instruction: Instruction) -> list[tuple[str, float]]:
    """(op_name, executed FLOPs) of each product and convolution in an instruction, however deep, library calls too.

    Those of linear algebra are no products (`roofline.costs.linear_algebra`).
    Loops count once. An inner instruction without a name of its own has that of the unit.
    """
    products = []
    for inner in inside(instruction):
        if inner.opcode in ("dot", "ragged-dot", "convolution", "custom-call") and not linear_algebra.routine(inner):
            flops = work(module, inner).flops
            if flops:
                products.append((joined(instruction.op_name, inner.op_name), flops))
    return products
