"""Model FLOPs of executed HLO instructions: what the program asked for before XLA optimised it.

The framework names every product (`op_name`), and an optimised instruction keeps the name of the product it does. So
what was asked for under a name is divided over the instructions that run under it, in proportion to what they execute:
a padded or repeated product then shows as executed / model, one that became a multiplication keeps its model FLOPs, and
the sum over a step is what the unoptimised program holds. Recomputation (`jax.checkpoint`) is executed, not asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import msgspec

from roofline.traces import hlo, hlo_cost, hlo_loops, xla_names
from roofline.traces.counted import Same
from roofline.traces.hlo_schedule import contractions, joined, schedule
from roofline.traces.xla_scopes import FORWARD, Place, is_recomputed, place

if TYPE_CHECKING:
    from roofline.traces.xla import Executed

#: Set where no unoptimised program was found: model FLOPs are then derived from the optimised one.
OPTIMISED_ONLY = "optimised-only"


@dataclass(slots=True)
class Asked:
    """Products of an unoptimised program, FLOPs by op_name.

    fixed: per execution of the program. as_executed: names inside loops whose trips only a run can tell, and inside
    branches: what ran counts.
    """

    fixed: dict[str, float] = field(default_factory=dict)
    as_executed: set[str] = field(default_factory=set)


def asked(module: hlo.Module) -> Asked:
    """What an unoptimised program asks for.

    A product that is done again for the backward pass is asked for where the first one is not there: one whose result
    only the backward pass needs was dropped from the forward pass.
    """
    found = Asked()
    again: dict[str, float] = {}
    for unit in schedule(module):
        if unit.control:
            continue
        times = _times(module, unit.path)
        for op_name, flops in contractions(module, unit.instruction):
            name = joined(unit.op_name, op_name)
            if times is None:
                found.as_executed.add(name)
            else:
                sums = again if is_recomputed(name) else found.fixed
                sums[name] = sums.get(name, 0.0) + times * flops
    first = _by_origin({name: flops for name, flops in found.fixed.items() if place(name).phase == FORWARD})
    repeated = _by_origin(again)
    for name, flops in again.items():
        origin = _origin(name)
        missing = max(0.0, repeated[origin] - first.get(origin, 0.0))
        if missing:
            found.fixed[name] = flops * missing / repeated[origin]
    return found


def _origin(op_name: str) -> tuple[str | None, str]:
    """What a product and its repetition share: the scope and the primitive."""
    return place(op_name).scope, op_name.rpartition("/")[2]


def _by_origin(sums: Mapping[str, float]) -> dict[tuple[str | None, str], float]:
    found: dict[tuple[str | None, str], float] = {}
    for name, flops in sums.items():
        found[_origin(name)] = found.get(_origin(name), 0.0) + flops
    return found


def _times(module: hlo.Module, path: Sequence[hlo.Instruction]) -> float | None:
    """Executions of what lies inside `path` per execution of the program; None where only a run can tell."""
    times = 1.0
    for control in path:
        trips = hlo_loops.trips(module, control) if control.opcode == "while" else None
        if trips is None and control.opcode in ("while", "conditional"):
            return None
        times *= 1 if trips is None else trips
    return times


def assign(
    ops: Sequence[Executed],
    programs: Mapping[int, hlo.Module],
    before: Iterable[tuple[int, str, bytes]],
    same: Same,
    placing: Callable[[str], Place],
) -> tuple[list[Executed], tuple[str, ...]]:
    """`ops` with model FLOPs, and flags.

    before: (number, name, HloProto bytes) of unoptimised programs. placing: from an op_name to its phase and scope.
    """
    sources = _sources(programs, before)
    result: dict[int, Executed] = {}
    derived = False
    for program, module in programs.items():
        mine = {row: op for row, op in enumerate(ops) if op.key[0] == program}
        source = sources.get(program)
        wanted = None if source is None else asked(source)
        if wanted is not None:
            xla_names.find(module, [op.instruction for op in mine.values()], wanted.fixed, placing)
        executed = {row: _executed(module, op) for row, op in mine.items()}
        if wanted is None:
            derived |= any(executed.values())
            result |= {row: _with(op, _asked_of_itself(executed[row]), same) for row, op in mine.items()}
        else:
            shares = _shares(module, mine, executed, wanted, _runs(module, mine.values()), placing)
            result |= {row: _with(op, shares[row], same) for row, op in mine.items()}
    return [result.get(row, op) for row, op in enumerate(ops)], (OPTIMISED_ONLY,) if derived else ()


def _sources(programs: Mapping[int, hlo.Module], before: Iterable[tuple[int, str, bytes]]) -> dict[int, hlo.Module]:
    """The unoptimised twin of each program: of the same number and name, else of the same name if only one has it."""
    by_number: dict[tuple[int, str], bytes] = {}
    by_name: dict[str, list[bytes]] = {}
    for number, name, data in before:
        by_number[number, name] = data
        by_name.setdefault(name, []).append(data)
    found = {}
    for program, module in programs.items():
        same_name = by_name.get(module.name, [])
        data = by_number.get((program, module.name)) or (same_name[-1] if len(same_name) == 1 else None)
        if data is not None:
            found[program] = hlo.read(data, f"the unoptimised program {module.name}")
    return found


def _executed(module: hlo.Module, op: Executed) -> dict[str, float]:
    """Executed FLOPs of an op by op_name."""
    sums: dict[str, float] = {}
    for _, op_name, flops in xla_names.products(module, op.instruction):
        sums[op_name] = sums.get(op_name, 0.0) + flops * op.times
    return sums


def _asked_of_itself(executed: Mapping[str, float]) -> float:
    return sum(flops for op_name, flops in executed.items() if not is_recomputed(op_name))


def _runs(module: hlo.Module, ops: Iterable[Executed]) -> float:
    """How often a step runs the program: as often as most of what lies in no loop and no branch."""
    entry = {instruction.name for instruction in module.entry.instructions}
    times = sorted(op.times for op in ops if op.key[1] in entry)
    return times[len(times) // 2] if times else 1.0


def _shares(
    module: hlo.Module,
    ops: Mapping[int, Executed],
    executed: Mapping[int, Mapping[str, float]],
    source: Asked,
    runs: float,
    placing: Callable[[str], Place],
) -> dict[int, float]:
    """Model FLOPs of each op (by row) of one program that a step runs `runs` times."""
    fixed = {op_name: flops * runs for op_name, flops in source.fixed.items()}
    model = dict.fromkeys(ops, 0.0)
    whole: dict[str, float] = {}
    for sums in executed.values():
        for op_name, flops in sums.items():
            whole[op_name] = whole.get(op_name, 0.0) + flops
    for row, sums in executed.items():
        for op_name, flops in sums.items():
            if op_name in fixed and whole[op_name]:
                model[row] += fixed[op_name] * flops / whole[op_name]
            elif op_name in source.as_executed:
                model[row] += flops
    lost = {op_name: flops for op_name, flops in fixed.items() if not whole.get(op_name)}
    for op_name, flops in lost.items():
        row = _home(module, ops, executed, op_name, placing)
        if row is not None:
            model[row] += flops
    return model


def _home(
    module: hlo.Module,
    ops: Mapping[int, Executed],
    executed: Mapping[int, Mapping[str, float]],
    op_name: str,
    placing: Callable[[str], Place],
) -> int | None:
    """The op that stands for a product of which no product is left: one that carries its name (XLA made it a
    multiplication), else the largest product of its scope and phase (XLA merged it), else of its phase."""
    for row, op in ops.items():
        if op_name in hlo_cost.op_names(module, op.instruction):
            return row
    wanted = placing(op_name)

    def nearness(row: int) -> tuple[bool, bool, float]:
        places = [placing(name) for name in executed[row]]
        return (
            any(one == wanted for one in places),
            any(one.phase == wanted.phase for one in places),
            sum(executed[row].values()),
        )

    rows = [row for row in ops if executed[row]]
    return max(rows, key=nearness) if rows else None


def _with(op: Executed, model: float, same: Same) -> Executed:
    costed = op.costed
    if costed.cost.model_flops is None or costed.cost.model_flops == model:
        return op
    cost = msgspec.structs.replace(costed.cost, model_flops=model)
    return replace(op, costed=same(replace(costed, cost=cost)))
