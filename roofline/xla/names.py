"""Names for products that lost theirs: some of XLA's rewrites make a new product and forget what it was called.

The unoptimised program still has the name of every product. What is asked for under a name that optimised products do
not carry, or not all of it, belongs to a product of as many FLOPs that has no name, or that of an op which is no
product (as a convolution by which a weight's gradient is computed has that of what laid its image out anew): in the
same phase (what depends on the backward pass is backward), among whose neighbours its scope is most at home.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from roofline.xla.hlo import linear_algebra
from roofline.xla.hlo.flops import work
from roofline.xla.hlo.module import Instruction, Module
from roofline.xla.hlo.schedule import inside, joined
from roofline.xla.scopes import Place

#: An instruction without a name of its own is looked for among so many of its neighbours.
_NEIGHBOURS = 256
_PRODUCTS = frozenset(("dot", "ragged-dot", "convolution", "custom-call"))


def products(module: Module, instruction: Instruction) -> list[tuple[Instruction, str, float]]:
    """(product, op_name, executed FLOPs) of each product in an instruction, however deep; loops once.

    The op_name is "" where XLA kept none, unless `find` has found it.
    """
    found = []
    known: Mapping[Instruction, str] = module.memo.get("found names", {})
    for each in inside(instruction):
        is_one = each.opcode in _PRODUCTS and not linear_algebra.routine(each)
        flops = work(module, each).flops if is_one else 0.0
        if flops:
            found.append((each, known.get(each) or joined(instruction.op_name, each.op_name), flops))
    return found


def find(
    module: Module, instructions: Iterable[Instruction], asked: Mapping[str, float], placing: Callable[[str], Place]
) -> None:
    """Find names for the nameless products in `instructions` and keep them for `products`.

    asked: FLOPs by op_name of the unoptimised program, loops once. placing: from an op_name to its phase and scope.
    """
    everything = [one for instruction in instructions for one in products(module, instruction)]
    lost = dict(asked)
    for _, name, flops in everything:
        if name in lost:
            lost[name] -= flops
    names: dict[Instruction, str] = {}
    for product, name, flops in everything:
        own = placing(name)
        if own.scope is not None and name in asked:
            continue
        near = neighbours(module, product, placing)
        phase = max((one.phase for one in (own, *near.above) if one.scope is not None), default=0)
        # Where the data come from says more than where they go: a layer's result goes to the next layer.
        scopes = [one.scope.split("/") for one in (own, *near.above, *near.above, *near.below) if one.scope]
        as_large = [one for one, size in lost.items() if abs(size - flops) < 0.5]
        likely = [one for one in as_large if placing(one).phase == phase]
        # A gradient that is taken of forward values alone depends on nothing that says so.
        likely = likely or [one for one in as_large if placing(one).phase > phase]
        if likely:
            best = max(likely, key=lambda one: at_home((placing(one).scope or "").split("/"), scopes))
            names[product] = best
            lost[best] -= flops
    module.memo["found names"] = names


def at_home(scope: Sequence[str], others: Sequence[Sequence[str]]) -> int:
    """How much of its path a scope shares with others."""
    shared = 0
    for other in others:
        for one, two in zip(scope, other, strict=False):
            if one != two:
                break
            shared += 1
    return shared


class Neighbours:
    """Places of the nearest named instructions that one takes its data from (above) and gives them to (below)."""

    __slots__ = ("above", "below")

    def __init__(self, above: list[Place], below: list[Place]) -> None:
        self.above, self.below = above, below


def neighbours(module: Module, instruction: Instruction, placing: Callable[[str], Place]) -> Neighbours:
    """The nearest named instructions around one; inside a fusion the fusion's own operands and users count too."""
    users = _users(module)
    return Neighbours(
        _nearest(instruction, lambda one: _sources(module, one), placing),
        _nearest(instruction, lambda one: users.get(one, ()), placing),
    )


def _nearest(
    start: Instruction, step: Callable[[Instruction], Sequence[Instruction]], placing: Callable[[str], Place]
) -> list[Place]:
    found, seen, waiting = [], {start}, [start]
    for one in waiting:
        for near in step(one):
            if near in seen or len(seen) > _NEIGHBOURS:
                continue
            seen.add(near)
            place = placing(near.op_name)
            if place.scope is None:
                waiting.append(near)
            else:
                found.append(place)
    return found


def _sources(module: Module, instruction: Instruction) -> Sequence[Instruction]:
    """Where its data come from: its operands; of a parameter inside a fusion, what the fusion is given."""
    if instruction.opcode != "parameter" or instruction.operands:
        return instruction.operands
    owner: Mapping[Instruction, tuple[Instruction, ...]] = module.memo.get("owners") or _owners(module)
    return owner.get(instruction, ())


def _owners(module: Module) -> Mapping[Instruction, tuple[Instruction, ...]]:
    found: dict[Instruction, tuple[Instruction, ...]] = {}
    for computation, callers in module.callers.items():
        for number, parameter in computation.parameters.items():
            given = [caller.operands[number] for caller in callers if number < len(caller.operands)]
            found[parameter] = tuple(given)
    module.memo["owners"] = found
    return found


def _users(module: Module) -> Mapping[Instruction, Sequence[Instruction]]:
    if "users" not in module.memo:
        users: dict[Instruction, list[Instruction]] = {}
        for computation in module.computations:
            for one in computation.instructions:
                for operand in one.operands:
                    users.setdefault(operand, []).append(one)
        # What a fusion computes goes where the fusion's result goes.
        for computation, callers in module.callers.items():
            users.setdefault(computation.root, []).extend(callers)
        module.memo["users"] = users
    found: Mapping[Instruction, Sequence[Instruction]] = module.memo["users"]
    return found
