"""Loops and branches of a program: which of them an instruction lies in, and how often a step runs them.

XLA rewrites what is in a loop or a branch, and mostly keeps the name of the instruction that holds it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from roofline.xla.executed import Executed
from roofline.xla.hlo import cost
from roofline.xla.hlo.module import Instruction, Module
from roofline.xla.hlo.schedule import Unit, schedule

#: The loops and conditionals around an instruction, outermost first, each with which of its computations is meant.
Region = tuple[tuple[Instruction, int], ...]
#: The name and the op_name of a loop or a conditional, and which of its computations is meant.
Part = tuple[str, str, int]


def region(unit: Unit) -> Region:
    """Return the loops and conditionals around a unit; calls are none."""
    around = zip(unit.path, unit.branches, strict=True)
    return tuple((control, branch) for control, branch in around if control.opcode != "call")


def branch(around: Region) -> Part | None:
    """Return the innermost branch of a region; None where it lies in none."""
    return _innermost(tuple(part for part in around if part[0].opcode == "conditional"))


def branches(module: Module) -> Mapping[Instruction, Part | None]:
    """Return the innermost branch that each instruction lies in."""
    return {unit.instruction: branch(region(unit)) for unit in schedule(module)}


def _innermost(around: Region) -> Part | None:
    if not around:
        return None
    control, number = around[-1]
    return control.name, control.op_name, number


def runs(
    module: Module, ops: Iterable[Executed], named: Mapping[str, Region], regions: Collection[Region]
) -> dict[Region, float]:
    """Return how often a step ran those of `regions`, of the unoptimised program, of which something ran.

    module: the optimised program. named: the regions of op_names that no other region has.

    A region ran as often as any op that has a name of it alone, or lies in a loop or a branch of its name: what XLA
    moved out of a loop ran less often.
    """
    around = {unit.instruction: _innermost(region(unit)) for unit in schedule(module)}
    alike: dict[Part | None, list[Region]] = {}
    for op_region in regions:
        alike.setdefault(_innermost(op_region), []).append(op_region)
    ran: dict[Region, float] = {}
    for op in ops:
        candidates = alike.get(around.get(op.instruction), [])
        by_name = {named[name] for name in cost.op_names(module, op.instruction) if name in named}
        for op_region in (*by_name, *(candidates if len(candidates) == 1 else ())):
            ran[op_region] = max(ran.get(op_region, 0.0), op.times)
    return ran
