"""Names for products that lost theirs: some of XLA's rewrites make a new product and forget what it was called.

The unoptimised program still has the name of every product. What is asked for under a name that optimised products do
not carry, or not all of it, belongs to a product of as many FLOPs that has no name, or that of an op which is no
product (as a convolution by which a weight's gradient is computed has that of what laid its image out anew): in the
same phase (what depends on the backward pass is backward), among whose neighbours its scope is most at home.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from roofline.xla import regions
from roofline.xla.hlo import linear_algebra
from roofline.xla.hlo.flops import work
from roofline.xla.hlo.module import Instruction, Module
from roofline.xla.hlo.schedule import joined, original, repeated
from roofline.xla.regions import Part
from roofline.xla.scopes import Place

#: An instruction without a name of its own is looked for among so many of its neighbours.
_NEIGHBOURS = 256
_PRODUCTS = frozenset(("dot", "ragged-dot", "convolution", "custom-call"))


class Product(NamedTuple):
    """A product in an instruction. op_name: "" where XLA kept none. flops: of one execution.

    times: how often the instruction runs it; in a loop whose trips only a run can tell, once.
    """

    instruction: Instruction
    op_name: str
    flops: float
    times: float


def products(module: Module, instruction: Instruction) -> list[Product]:
    """Each product in an instruction, however deep, by its name or, where it lost that, the one that `find` found."""
    products_found = []
    names_found: Mapping[Instruction, str] = module.memo.get("found names", {})
    for inner, times in repeated(module, instruction):
        is_one = inner.opcode in _PRODUCTS and not linear_algebra.routine(inner)
        flops = work(module, inner).flops if is_one else 0.0
        if flops:
            name = names_found.get(inner) or original(module, joined(instruction.op_name, inner.op_name))
            products_found.append(Product(inner, name, flops, times))
    return products_found


def find(
    module: Module,
    instructions: Iterable[Instruction],
    asked: Collection[tuple[str, float]],
    placing: Callable[[str], Place],
    branches: Mapping[tuple[str, float], Collection[Part | None]],
    idle: Collection[tuple[str, float]],
) -> None:
    """Find names for the nameless products in `instructions` and keep them for `products`.

    asked: (op_name, FLOPs of one execution) of the products of the unoptimised program. placing: from an op_name to its
    phase and scope. branches: of each of these those that it stands in; None: it stands in none. idle: those that only
    stand in branches of which nothing was seen to run: a product outside of branches is none of them.
    """
    around = regions.branches(module)
    everything = [
        (product, around.get(instruction)) for instruction in instructions for product in products(module, instruction)
    ]
    lost: dict[str, list[float]] = {}
    for name, flops in asked:
        lost.setdefault(name, []).append(flops)
    named = {name for name, _ in asked}
    for named_product, _ in everything:
        _strike(lost, named_product.op_name, named_product.flops)
    names: dict[Instruction, str] = {}
    for (product, name, flops, _), branch in everything:
        own_place = placing(name)
        if own_place.scope is not None and name in named:
            continue
        near = neighbours(module, product, placing)
        phase = max((place.phase for place in (own_place, *near.above) if place.scope is not None), default=0)
        # Where the data come from says more than where they go: a layer's result goes to the next layer.
        scopes = [place.scope.split("/") for place in (own_place, *near.above, *near.above, *near.below) if place.scope]
        sized = [(candidate, size) for candidate, sizes in lost.items() for size in dict.fromkeys(sizes)]
        as_large = [candidate for candidate in sized if abs(candidate[1] - flops) < 0.5]
        if branch is None:
            as_large = [candidate for candidate in as_large if candidate not in idle]
        likely = [candidate for candidate in as_large if placing(candidate[0]).phase == phase]
        # A gradient that is taken of forward values alone depends on nothing that says so.
        likely = likely or [candidate for candidate in as_large if placing(candidate[0]).phase > phase]
        if likely:
            # Of one scope that of its branch, as the name of what it took in tells it.
            path = [name.split("/")]
            best, _ = max(
                likely,
                key=lambda candidate: (
                    branch in branches[candidate],
                    at_home((placing(candidate[0]).scope or "").split("/"), scopes),
                    at_home(candidate[0].split("/"), path),
                ),
            )
            names[product] = best
            _strike(lost, best, flops)
    module.memo["found names"] = names


def _strike(lost: Mapping[str, list[float]], name: str, flops: float) -> None:
    """Take the product that is nearest in size off those of a name."""
    sizes = lost.get(name)
    if sizes:
        sizes.remove(min(sizes, key=lambda size: abs(size - flops)))


def at_home(scope: Sequence[str], scopes: Sequence[Sequence[str]]) -> int:
    """Count how many parts of its path a scope shares with other scopes."""
    shared = 0
    for scope_compared in scopes:
        for part, part_compared in zip(scope, scope_compared, strict=False):
            if part != part_compared:
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
        _nearest(instruction, lambda neighbour: _sources(module, neighbour), placing),
        _nearest(instruction, lambda neighbour: users.get(neighbour, ()), placing),
    )


def _nearest(
    start: Instruction, step: Callable[[Instruction], Sequence[Instruction]], placing: Callable[[str], Place]
) -> list[Place]:
    places, visited, waiting = [], {start}, [start]
    for current in waiting:
        for near in step(current):
            if near in visited or len(visited) > _NEIGHBOURS:
                continue
            visited.add(near)
            place = placing(near.op_name)
            if place.scope is None:
                waiting.append(near)
            else:
                places.append(place)
    return places


def _sources(module: Module, instruction: Instruction) -> Sequence[Instruction]:
    """Return where its data come from: its operands; of a fusion what is in it, and of a parameter what it is given."""
    if instruction.opcode == "fusion":
        return [computation.root for computation in instruction.called]
    if instruction.opcode != "parameter" or instruction.operands:
        return instruction.operands
    owner: Mapping[Instruction, tuple[Instruction, ...]] = module.memo.get("owners") or _owners(module)
    return owner.get(instruction, ())


def _owners(module: Module) -> Mapping[Instruction, tuple[Instruction, ...]]:
    owners: dict[Instruction, tuple[Instruction, ...]] = {}
    for computation, callers in module.callers.items():
        for number, parameter in computation.parameters.items():
            arguments = [caller.operands[number] for caller in callers if number < len(caller.operands)]
            owners[parameter] = tuple(arguments)
    module.memo["owners"] = owners
    return owners


def _users(module: Module) -> Mapping[Instruction, Sequence[Instruction]]:
    if "users" not in module.memo:
        users: dict[Instruction, list[Instruction]] = {}
        for computation in module.computations:
            for user in computation.instructions:
                for operand in user.operands:
                    users.setdefault(operand, []).append(user)
        # What a fusion computes goes where the fusion's result goes.
        for computation, callers in module.callers.items():
            users.setdefault(computation.root, []).extend(callers)
        module.memo["users"] = users
    remembered: Mapping[Instruction, Sequence[Instruction]] = module.memo["users"]
    return remembered
