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
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

import msgspec

from roofline.core.cost import BY_INDEX, INTERPOLATES, Cost, by_index
from roofline.costs.counted import Interner
from roofline.costs.linear_algebra import KIND
from roofline.costs.repeated import repeated_once
from roofline.errors import InputError
from roofline.xla import names as xla_names
from roofline.xla import regions
from roofline.xla.carriers import ROUNDING, Carriers
from roofline.xla.executed import Executed
from roofline.xla.hlo import groups, linear_algebra, loops, one_hot, padded_products, space_to_batch, zero_padding
from roofline.xla.hlo import module as hlo
from roofline.xla.hlo.live import live
from roofline.xla.hlo.recomputed import recomputed
from roofline.xla.hlo.schedule import INLINED, Unit, contractions, inlined, joined, schedule
from roofline.xla.places import Placing, place_of
from roofline.xla.regions import Region
from roofline.xla.scopes import FORWARD, is_gradient, is_recomputed, place, repeating_checkpoint

#: Set where no unoptimised program was found: model FLOPs are then derived from the optimised one.
OPTIMISED_ONLY = "optimised-only"


#: The note of a product of which nobody knows how much is asked for.
_BOUNDED = "asked for as it runs, with as many rows as there can be: how many there are is a number of the run"
#: What Shardy calls the body of what each partition does by itself (openxla/shardy).
_EACH_PARTITION = "manual_computation_body"


@dataclass(slots=True)
class ModelWork:
    """Products of an unoptimised program, FLOPs by op_name.

    fixed: per execution of the program. as_executed: of those inside loops whose trips only a run can tell, and inside
    branches, per execution of that region; what ran counts. once: (op_name, FLOPs of one execution) of all of them,
    zeros around images included: by that a product is known again. regions: the loops and branches around these.
    products, by_index: (op_name, FLOPs of one execution) of those that are asked for, and of those for which none is,
    with why: they have a one-hot matrix, or they interpolate. named: the names that only one region has. inlined: what
    they are called where XLA took away what is around. solving: the names of linear algebra
    (`roofline.costs.linear_algebra`), of which nobody asks for products. bounded: the names of products of as many rows
    as there can be, where only a run knows how many there are.
    """

    fixed: dict[str, float] = field(default_factory=dict)
    as_executed: dict[str, dict[Region, float]] = field(default_factory=dict)
    once: list[tuple[str, float]] = field(default_factory=list)
    regions: dict[tuple[str, float], set[Region]] = field(default_factory=dict)
    products: set[tuple[str, float]] = field(default_factory=set)
    by_index: dict[tuple[str, float], str] = field(default_factory=dict)
    named: dict[str, Region] = field(default_factory=dict)
    inlined: dict[str, str] = field(default_factory=dict)
    solving: set[str] = field(default_factory=set)
    bounded: set[str] = field(default_factory=set)


def asked(module: hlo.Module, partitions: int = 1) -> ModelWork:
    """Count what an unoptimised program asks for of all partitions together, in one execution.

    It is written for all of them at once, but for what `shard_map` and `pmap` have each of them do.

    A product that is done again for the backward pass is asked for where the first one is not there: one whose result
    only the backward pass needs was dropped from the forward pass.
    """
    asked_work = ModelWork()
    repeated: dict[str, float] = {}
    again_as_executed: dict[str, dict[Region, float]] = {}
    checkpoints: dict[str, str] = {}
    by_name: dict[str, set[Region]] = {}
    alive, again_in_tensorflow = live(module), recomputed(module)
    for unit in schedule(module):
        if unit.control or not alive.issuperset((unit.instruction, *unit.path)):
            continue
        region = regions.region(unit)
        by_name.setdefault(unit.op_name, set()).add(region)
        asked_work.inlined |= inlined(unit.path, unit.op_name)
        if any(map(linear_algebra.is_part, (unit.instruction, *unit.path))):
            if unit.op_name:
                asked_work.solving.add(unit.op_name)
            continue
        times = _times(module, unit.path)
        for op_name, flops in contractions(module, unit.instruction):
            # Its own name may be only what follows the name of the call around it, which the unit's has in front.
            is_unit_name = op_name in ("", unit.instruction.op_name)
            name = unit.op_name if is_unit_name else joined(unit.op_name, op_name)
            checkpoint = repeating_checkpoint(name) or again_in_tensorflow.get(unit.instruction)
            if checkpoint is None:
                asked_work.once.append((name, flops))
                asked_work.regions.setdefault((name, flops), set()).add(region)
            else:
                checkpoints[name] = checkpoint
            picks = one_hot.picks(unit.instruction, unit.path)
            if picks or _interpolates(unit):
                asked_work.by_index[name, flops] = BY_INDEX if picks else INTERPOLATES
                continue
            asked_work.products.add((name, flops))
            if _is_bounded(unit.instruction):
                asked_work.bounded.add(name)
            asked_once = _asked_once(module, unit, flops) * (partitions if _is_of_each(unit) else 1)
            if times is None:
                by_region = (asked_work.as_executed if checkpoint is None else again_as_executed).setdefault(name, {})
                by_region[region] = by_region.get(region, 0.0) + asked_once
            else:
                sums = asked_work.fixed if checkpoint is None else repeated
                sums[name] = sums.get(name, 0.0) + times * asked_once
    asked_work.inlined = {longer: name for longer, name in asked_work.inlined.items() if longer not in by_name}
    asked_work.named = {name: only for name, (only, *further) in by_name.items() if not further}
    _add_missing(asked_work, repeated, again_as_executed, checkpoints)
    return asked_work


def _asked_once(module: hlo.Module, unit: Unit, flops: float) -> float:
    """Return what is asked for of a product that executes `flops`; all of it where what is around it is damaged."""
    try:
        return _without_zeros(module, unit, flops)
    except (IndexError, ValueError):  # attributes that do not fit the operands
        return flops


def _without_zeros(module: hlo.Module, unit: Unit, flops: float) -> float:
    product, path = unit.instruction, unit.path
    if product.opcode == "convolution":
        inside = zero_padding.flops(module, product, path)
        share = space_to_batch.share(module, product, path) if inside is None else None
        return flops * share if share is not None else flops if inside is None else inside
    if product.opcode == "dot":
        inside = padded_products.flops(module, product, path)
        return flops / groups.dealt(product, path) if inside is None else inside
    return flops


def _add_missing(
    asked_work: ModelWork,
    repeats: Mapping[str, float],
    as_executed: Mapping[str, Mapping[Region, float]],
    checkpoints: Mapping[str, str],
) -> None:
    """Ask for what is repeated, FLOPs by op_name, where the first one is not there. checkpoints: what repeats each."""
    first = _by_origin({name: flops for name, flops in asked_work.fixed.items() if _is_forward(name)})
    by_checkpoint: dict[str, dict[str, float]] = {}
    for name, flops in repeats.items():
        by_checkpoint.setdefault(checkpoints[name], {})[name] = flops
    once = repeated_once({checkpoint: Counter(_by_origin(sums)) for checkpoint, sums in by_checkpoint.items()})
    repeated = _by_origin(repeats)
    for name, flops in repeats.items():
        origin = _origin(name, flops)
        missing = max(0.0, once[origin] - first.get(origin, 0.0))
        if missing:
            asked_work.fixed[name] = flops * missing / repeated[origin]
            asked_work.once.append((name, asked_work.fixed[name]))
            asked_work.regions.setdefault((name, asked_work.fixed[name]), {()})
    forward_origins = {
        _origin(name, sum(regions_flops.values()))
        for name, regions_flops in asked_work.as_executed.items()
        if _is_forward(name)
    }
    for name, by_region in as_executed.items():
        if _origin(name, sum(by_region.values())) not in forward_origins:
            asked_work.as_executed[name] = dict(by_region)


def _is_forward(op_name: str) -> bool:
    return place(op_name).phase == FORWARD and not is_gradient(op_name)


def _is_of_each(unit: Unit) -> bool:
    """Tell whether a program says it of one partition, as it does inside of `shard_map`."""
    called = (computation.name for control in unit.path for computation in control.called)
    return any(_EACH_PARTITION in name for name in called)


def _interpolates(unit: Unit) -> bool:
    """Tell whether a product is one by which JAX or TensorFlow resizes images."""
    return "jit(_resize)" in unit.op_name or unit.instruction.op_type.startswith("Resize")


def _is_bounded(instruction: hlo.Instruction) -> bool:
    """Tell whether an operand or the result of a product has a size that only a run knows."""
    return any(any(array.message.shape.is_dynamic_dimension) for array in (instruction, *instruction.operands))


def _origin(op_name: str, flops: float) -> tuple[str | None, str | float]:
    """Return what a product and its repetition share: scope and primitive; under TensorFlow's names their FLOPs."""
    scope = place(op_name).scope
    return (None, flops) if scope is None else (scope, op_name.rpartition("/")[2])


def _by_origin(sums: Mapping[str, float]) -> dict[tuple[str | None, str | float], float]:
    by_origin: dict[tuple[str | None, str | float], float] = {}
    for name, flops in sums.items():
        origin = _origin(name, flops)
        by_origin[origin] = by_origin.get(origin, 0.0) + flops
    return by_origin


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
    interner: Interner,
    placing: Placing,
    runs: Mapping[int, float],
) -> tuple[list[Executed], tuple[str, ...]]:
    """`ops` with model FLOPs, and flags.

    before: (number, name, HloProto bytes) of unoptimised programs. placing: from an op_name to its phase and scope.
    runs: how often a step runs each program, each of the devices that share it for itself.
    """
    sources = _sources(programs, before)
    result: dict[int, Executed] = {}
    derived = False
    for program, module in programs.items():
        mine = {row: op for row, op in enumerate(ops) if op.key[0] == program}
        source = sources.get(program)
        wanted = None if source is None else asked(source, module.partitions)
        if wanted is not None:
            module.memo[INLINED] = wanted.inlined
            result |= {row: _as_linear_algebra(mine.pop(row), interner) for row in _solving(module, mine, wanted)}
            counted = {region for by_region in wanted.as_executed.values() for region in by_region}
            ran = regions.runs(module, mine.values(), wanted.named, counted)
            idle_regions = {region for region in counted.difference(ran) if regions.branch(region) is not None}
            idle = {product for product, around in wanted.regions.items() if around <= idle_regions}
            branches = {product: set(map(regions.branch, around)) for product, around in wanted.regions.items()}
            instructions = [op.instruction for op in mine.values()]
            xla_names.find(module, instructions, wanted.once, placing, branches, idle)
        executed = {row: _executed(module, op) for row, op in mine.items()}
        if wanted is None:
            derived |= any(executed.values())
            result |= {row: _with(op, _asked_of_itself(executed[row]), interner) for row, op in mine.items()}
        else:
            indexing = _by_index(module, mine, wanted, placing)
            result |= {row: _noted(mine.pop(row), why, interner) for row, why in indexing.items()}
            expected = _expected(wanted, runs.get(program, 1.0), ran, module.partitions)
            shares = _shares(module, mine, executed, wanted, expected, placing)
            result |= {
                row: _as_bounded(_with(op, shares[row], interner), wanted.bounded & executed[row].keys(), interner)
                for row, op in mine.items()
            }
    return [result.get(row, op) for row, op in enumerate(ops)], (OPTIMISED_ONLY,) if derived else ()


def _solving(module: hlo.Module, ops: Mapping[int, Executed], source: ModelWork) -> list[int]:
    """Return the ops (rows) whose products all are what XLA makes of linear algebra: that bear its name, or none.

    Those that bear none lie in a loop or a call that bears it.
    """
    if not source.solving:
        return []
    around = {unit.instruction: {control.op_name for control in unit.path} for unit in schedule(module)}
    rows = []
    for row, op in ops.items():
        nameless = {""} if source.solving & around.get(op.instruction, set()) else set()
        names = {product.op_name for product in xla_names.products(module, op.instruction)}
        if names and names <= source.solving | nameless:
            rows.append(row)
    return rows


def _as_linear_algebra(op: Executed, interner: Interner) -> Executed:
    """Return an op as one that is asked for as it runs, and is no contraction."""
    cost = msgspec.structs.replace(op.costed.cost, model_flops=op.costed.cost.flops)
    return replace(op, costed=interner(replace(op.costed, cost=cost, kind=KIND, op_class="other", parts=())))


def _as_bounded(op: Executed, names: Set[str], interner: Interner) -> Executed:
    """Return an op, where it has such products with the note that these ask for no more than they run."""
    if not names:
        return op
    cost = op.costed.cost + Cost(quality="assumed", note=_BOUNDED)
    return replace(op, costed=interner(replace(op.costed, cost=cost)))


def _expected(source: ModelWork, runs: float, ran: Mapping[Region, float], partitions: int) -> dict[str, float]:
    """FLOPs that a step asks for by op_name.

    runs: of the program, each partition for itself. ran: of regions, likewise, where only a run can tell.
    """
    expected = {op_name: flops * runs / partitions for op_name, flops in source.fixed.items()}
    for op_name, by_region in source.as_executed.items():
        for region, flops in by_region.items():
            expected[op_name] = expected.get(op_name, 0.0) + flops * ran.get(region, 0.0) / partitions
    return expected


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
    twins = {}
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
            twins[program] = twin
    return twins


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
    for _, op_name, flops, times in xla_names.products(module, op.instruction):
        sums[op_name] = sums.get(op_name, 0.0) + flops * times * op.times
    return sums


def _by_index(module: hlo.Module, ops: Mapping[int, Executed], source: ModelWork, placing: Placing) -> dict[int, str]:
    """The ops (rows) whose products are all such that none is asked for, and why.

    They are known by name and FLOPs, since names are shared.

    One that XLA called otherwise, as a gradient that took in a transpose, is known by its phase and FLOPs, where no
    product that is asked for has these.
    """
    only_by_index = source.by_index.keys() - source.products
    phases = {(placing(name).phase, flops) for name, flops in only_by_index}
    phases -= {(placing(name).phase, flops) for name, flops in source.products}
    named = {name for name, _ in source.products}
    reasons: dict[int, str] = {}
    for row, op in ops.items() if only_by_index else ():
        products = {(product.op_name, product.flops) for product in xla_names.products(module, op.instruction)}
        phase = place_of(module, op.instruction, placing).phase
        if products and all(
            product in only_by_index
            or (product[0] not in named and (phase, product[1]) in phases and not is_recomputed(product[0]))
            for product in products
        ):
            reasons[row] = next(
                (source.by_index[product] for product in products if product in only_by_index), BY_INDEX
            )
    return reasons


def _asked_of_itself(executed: Mapping[str, float]) -> float:
    return sum(flops for op_name, flops in executed.items() if not is_recomputed(op_name))


def _shares(
    module: hlo.Module,
    ops: Mapping[int, Executed],
    executed: Mapping[int, Mapping[str, float]],
    source: ModelWork,
    expected: Mapping[str, float],
    placing: Placing,
) -> dict[int, float]:
    """Model FLOPs of each op (by row) of one program. expected: FLOPs that a step asks it for, by op_name."""
    model = dict.fromkeys(ops, 0.0)
    executed = {row: executed[row] for row in ops}
    executed_by_name: dict[str, float] = {}
    for sums in executed.values():
        for op_name, flops in sums.items():
            executed_by_name[op_name] = executed_by_name.get(op_name, 0.0) + flops
    for row, sums in executed.items():
        for op_name, flops in sums.items():
            if op_name in source.as_executed:
                model[row] += flops
            elif op_name in source.fixed:
                model[row] += (
                    min(expected[op_name] / executed_by_name[op_name], 1.0) * flops
                    if executed_by_name[op_name]
                    else 0.0
                )
    remaining = {op_name: flops - executed_by_name.get(op_name, 0.0) for op_name, flops in expected.items()}
    remaining = {op_name: flops for op_name, flops in remaining.items() if flops > ROUNDING * expected[op_name]}
    if remaining:
        Carriers(module, ops, executed, model, placing).give(remaining)
    return model


def _noted(op: Executed, why: str, interner: Interner) -> Executed:
    if op.costed.cost.model_flops is None:
        return op
    return replace(op, costed=interner(replace(op.costed, cost=by_index(op.costed.cost, why))))


def _with(op: Executed, model: float, interner: Interner) -> Executed:
    costed = op.costed
    if costed.kind == KIND:  # of which XLA makes nothing else: what runs was asked for
        return op
    if costed.cost.model_flops is None or costed.cost.model_flops == model:
        return op
    asked_for = msgspec.structs.replace(costed.cost, model_flops=model)
    return replace(op, costed=interner(replace(costed, cost=asked_for)))
