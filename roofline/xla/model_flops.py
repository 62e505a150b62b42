"""Model FLOPs of executed HLO instructions: what the program asked for before XLA optimised it.

The framework names every product (`op_name`), and an optimised instruction mostly keeps the name of the product it
does. So what was asked for under a name is divided over the instructions that run under it, in proportion to what they
execute: a padded or repeated product then shows as executed / model. None gets more than it executes while another one
executes what nobody asked for: XLA gives a product the name of a transpose that it took in, and several that it merged
the name of one, so that what a name has left over belongs to such an op (`carriers`). One that became a multiplication
keeps its model FLOPs, in the phase where it was asked for, and the sum over a step is what the unoptimised program
holds. Recomputation (`jax.checkpoint`) is executed, not asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from roofline.core.cost import by_index
from roofline.costs.counted import Interner
from roofline.costs.linear_algebra import KIND
from roofline.errors import InputError
from roofline.xla import names as xla_names
from roofline.xla.carriers import ROUNDING, Carriers
from roofline.xla.executed import Executed
from roofline.xla.hlo import loops, one_hot, zero_padding
from roofline.xla.hlo import module as hlo
from roofline.xla.hlo.schedule import contractions, joined, live, schedule
from roofline.xla.places import Placing, place_of
from roofline.xla.scopes import FORWARD, is_recomputed, place

#: Set where no unoptimised program was found: model FLOPs are then derived from the optimised one.
OPTIMISED_ONLY = "optimised-only"


@dataclass(slots=True)
class ModelWork:
    """Products of an unoptimised program, FLOPs by op_name.

    fixed: per execution of the program. as_executed: names inside loops whose trips only a run can tell, and inside
    branches: what ran counts. once: all of them, per execution of the product itself, zeros around images included:
    by that a product is known again. products, by_index: (op_name, FLOPs of one execution) of those that are asked for,
    and of those with a one-hot matrix, for which none is.
    """

    fixed: dict[str, float] = field(default_factory=dict)
    as_executed: set[str] = field(default_factory=set)
    once: dict[str, float] = field(default_factory=dict)
    products: set[tuple[str, float]] = field(default_factory=set)
    by_index: set[tuple[str, float]] = field(default_factory=set)


def asked(module: hlo.Module) -> ModelWork:
    """What an unoptimised program asks for.

    A product that is done again for the backward pass is asked for where the first one is not there: one whose result
    only the backward pass needs was dropped from the forward pass.
    """
    found = ModelWork()
    again: dict[str, float] = {}
    alive = live(module)
    for unit in schedule(module):
        if unit.control or not alive.issuperset((unit.instruction, *unit.path)):
            continue
        times = _times(module, unit.path)
        inside = None
        if unit.instruction.opcode == "convolution":
            inside = zero_padding.flops(module, unit.instruction, unit.path)
        for op_name, flops in contractions(module, unit.instruction):
            # Its own name may be only what follows the name of the call around it, which the unit's has in front.
            own = op_name in ("", unit.instruction.op_name)
            name = unit.op_name if own else joined(unit.op_name, op_name)
            if not is_recomputed(name):
                found.once[name] = found.once.get(name, 0.0) + flops
            picks = one_hot.picks(unit.instruction, unit.path)
            (found.by_index if picks else found.products).add((name, flops))
            if picks:
                continue
            if times is None:
                found.as_executed.add(name)
            else:
                sums = again if is_recomputed(name) else found.fixed
                sums[name] = sums.get(name, 0.0) + times * (flops if inside is None else inside)
    first = _by_origin({name: flops for name, flops in found.fixed.items() if place(name).phase == FORWARD})
    repeated = _by_origin(again)
    for name, flops in again.items():
        origin = _origin(name)
        missing = max(0.0, repeated[origin] - first.get(origin, 0.0))
        if missing:
            found.fixed[name] = found.once[name] = flops * missing / repeated[origin]
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
        trips = loops.trips(module, control) if control.opcode == "while" else None
        if trips is None and control.opcode in ("while", "conditional"):
            return None
        times *= 1 if trips is None else trips
    return times


def assign(
    ops: Sequence[Executed],
    programs: Mapping[int, hlo.Module],
    before: Iterable[tuple[int, str, bytes]],
    same: Interner,
    placing: Placing,
    runs: Mapping[int, float],
) -> tuple[list[Executed], tuple[str, ...]]:
    """`ops` with model FLOPs, and flags.

    before: (number, name, HloProto bytes) of unoptimised programs. placing: from an op_name to its phase and scope.
    runs: how often a step runs each program.
    """
    sources = _sources(programs, before)
    result: dict[int, Executed] = {}
    derived = False
    for program, module in programs.items():
        mine = {row: op for row, op in enumerate(ops) if op.key[0] == program}
        source = sources.get(program)
        wanted = None if source is None else asked(source)
        if wanted is not None:
            xla_names.find(module, [op.instruction for op in mine.values()], wanted.once, placing)
        executed = {row: _executed(module, op) for row, op in mine.items()}
        if wanted is None:
            derived |= any(executed.values())
            result |= {row: _with(op, _asked_of_itself(executed[row]), same) for row, op in mine.items()}
        else:
            indexing = _by_index(module, mine, wanted, placing)
            result |= {row: _noted(mine.pop(row), same) for row in indexing}
            shares = _shares(module, mine, executed, wanted, runs.get(program, 1.0), placing)
            result |= {row: _with(op, shares[row], same) for row, op in mine.items()}
    return [result.get(row, op) for row, op in enumerate(ops)], (OPTIMISED_ONLY,) if derived else ()


def _sources(programs: Mapping[int, hlo.Module], before: Iterable[tuple[int, str, bytes]]) -> dict[int, hlo.Module]:
    """The unoptimised twin of each program: of the same number and name, else of the same name and arguments where
    only one program and one twin have that name.

    A program that came from a compilation cache left no twin, but another one may have its name.
    """
    names = Counter(module.name for module in programs.values())
    by_number: dict[tuple[int, str], bytes] = {}
    by_name: dict[str, list[bytes]] = {}
    for number, name, data in before:
        by_number[number, name] = data
        by_name.setdefault(name, []).append(data)
    found = {}
    for program, module in programs.items():
        mine, same_name = by_number.get((program, module.name)), by_name.get(module.name, [])
        if mine is not None:
            twin = _read(mine)
        elif len(same_name) == names[module.name] == 1:
            twin = _read(same_name[0])
            if twin is not None and _arguments(twin) != _arguments(module):
                twin = None
        else:
            twin = None
        if twin is not None:
            found[program] = twin
    return found


def _read(data: bytes) -> hlo.Module | None:
    """A dumped program; None for one that was cut short, as by a full disk: the optimised one is still there."""
    try:
        return hlo.read(data)
    except InputError:
        return None


def _arguments(module: hlo.Module) -> list[tuple[str, tuple[int, ...]]]:
    """Types of the arrays that a program is given."""
    parameters = [parameter for _, parameter in sorted(module.entry.parameters.items())]
    return [(shape.dtype, shape.dims) for parameter in parameters for _, shape in parameter.shape.leaves()]


def _executed(module: hlo.Module, op: Executed) -> dict[str, float]:
    """Executed FLOPs of an op by op_name."""
    sums: dict[str, float] = {}
    for _, op_name, flops in xla_names.products(module, op.instruction):
        sums[op_name] = sums.get(op_name, 0.0) + flops * op.times
    return sums


def _by_index(module: hlo.Module, ops: Mapping[int, Executed], source: ModelWork, placing: Placing) -> list[int]:
    """The ops (rows) whose products are all such that an index would do: by name and FLOPs, since names are shared.

    One that XLA called otherwise, as a gradient that took in a transpose, is known by its phase and FLOPs, where no
    product that is asked for has these.
    """
    alone = source.by_index - source.products
    phases = {(placing(name).phase, flops) for name, flops in alone}
    phases -= {(placing(name).phase, flops) for name, flops in source.products}
    named = {name for name, _ in source.products}
    found = []
    for row, op in ops.items() if alone else ():
        here = {(op_name, flops) for _, op_name, flops in xla_names.products(module, op.instruction)}
        phase = place_of(module, op.instruction, placing).phase
        if here and all(
            one in alone or (one[0] not in named and (phase, one[1]) in phases and not is_recomputed(one[0]))
            for one in here
        ):
            found.append(row)
    return found


def _asked_of_itself(executed: Mapping[str, float]) -> float:
    return sum(flops for op_name, flops in executed.items() if not is_recomputed(op_name))


def _shares(
    module: hlo.Module,
    ops: Mapping[int, Executed],
    executed: Mapping[int, Mapping[str, float]],
    source: ModelWork,
    runs: float,
    placing: Placing,
) -> dict[int, float]:
    """Model FLOPs of each op (by row) of one program that a step runs `runs` times."""
    fixed = {op_name: flops * runs for op_name, flops in source.fixed.items()}
    model = dict.fromkeys(ops, 0.0)
    executed = {row: executed[row] for row in ops}
    whole: dict[str, float] = {}
    for sums in executed.values():
        for op_name, flops in sums.items():
            whole[op_name] = whole.get(op_name, 0.0) + flops
    for row, sums in executed.items():
        for op_name, flops in sums.items():
            if op_name in fixed:
                model[row] += min(fixed[op_name] / whole[op_name], 1.0) * flops if whole[op_name] else 0.0
            elif op_name in source.as_executed:
                model[row] += flops
    left = {op_name: flops - whole.get(op_name, 0.0) for op_name, flops in fixed.items()}
    left = {op_name: flops for op_name, flops in left.items() if flops > ROUNDING * fixed[op_name]}
    if left:
        Carriers(module, ops, executed, model, placing).give(left)
    return model


def _noted(op: Executed, same: Interner) -> Executed:
    if op.costed.cost.model_flops is None:
        return op
    return replace(op, costed=same(replace(op.costed, cost=by_index(op.costed.cost))))


def _with(op: Executed, model: float, same: Interner) -> Executed:
    costed = op.costed
    if costed.kind == KIND:  # of which XLA makes nothing else: what runs was asked for
        return op
    if costed.cost.model_flops is None or costed.cost.model_flops == model:
        return op
    cost = msgspec.structs.replace(costed.cost, model_flops=model)
    return replace(op, costed=same(replace(costed, cost=cost)))
