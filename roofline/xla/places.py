"""Where an optimised instruction stands: its phase and scope, also of one whose name the compiler lost.

And of a training step in which no scope is called an optimizer, which instructions are one all the same: by where data
go. What a step was given and returns in the same shape, changed by a gradient without any product, is updated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from roofline.xla import names
from roofline.xla import scopes as xla_scopes
from roofline.xla.hlo import cost
from roofline.xla.hlo.module import Instruction, Module
from roofline.xla.hlo.opcodes import FREE
from roofline.xla.hlo.schedule import inside, joined
from roofline.xla.scopes import BACKWARD, FORWARD, OPTIMIZER, Place

#: From an op_name to its phase and scope.
Placing = Callable[[str], Place]


def place_of(module: Module, instruction: Instruction, placing: Placing) -> Place:
    """Phase and scope of an instruction: of its products, else its own, else of most of what is fused in it.

    What the compiler added without a name, such as a copy, belongs where its data come from, else where they go. What
    depends on the backward pass is no part of the forward pass.
    """
    named = _named(module, instruction, placing)
    if named.scope is not None:
        return named
    near = names.neighbours(module, instruction, placing)
    if near.above:
        return max(near.above, key=lambda one: one.phase)
    return min(near.below, key=lambda one: one.phase) if near.below else named


def _named(module: Module, instruction: Instruction, placing: Placing) -> Place:
    products = [placing(name) for _, name, _ in names.products(module, instruction)]
    if any(one.scope is not None for one in products):
        return xla_scopes.commonest(products)
    own = placing(instruction.op_name)
    if own.scope is not None:
        return own
    return xla_scopes.commonest(placing(name) for name in cost.op_names(module, instruction))


#: The place of an update that no scope names.
UPDATE = Place(OPTIMIZER, "optimizer")
#: Of so many arrays an optimizer makes the next values at least. By choice.
_LEAST = 2
#: What no op makes: there before the step, or before all of them.
_THERE = frozenset(("parameter", "constant"))


def updates(module: Module, placing: Placing) -> frozenset[Instruction]:
    """The instructions of a program that are an optimizer's though no scope says so, with all that is in them.

    They lie between a gradient and a result that is the next value of a parameter: of its shape and type, reached by it
    without a product or the backward pass on the way, and with something added on the way. Nothing made of them goes
    into a product or the backward pass, as an update that is differentiated itself does. What is made for such
    instructions alone, as a rate, a decay or a moment, goes with them. Only of the entry: what a loop updates is not
    looked for.

    The parameter is one that products or the backward pass are made of, or its next value is made with theirs, as an
    average of weights: a sum of gradients over batches is none. And there are two of the former at least: a single one
    may be an input, moved along its gradient (an adversarial example).
    """
    instructions, root = module.entry.instructions, module.entry.root
    users: dict[Instruction, list[Instruction]] = {one: [] for one in instructions}
    barred: set[Instruction] = set()  # products and the backward pass
    after: set[Instruction] = set()  # made of a gradient
    given: dict[Instruction, frozenset[Instruction]] = {}  # by which parameters it is reached
    for one in instructions:
        for operand in one.operands:
            users.setdefault(operand, []).append(one)
        phase = FORWARD if one.opcode in FREE else place_of(module, one, placing).phase
        if phase == OPTIMIZER:
            return frozenset()
        if phase == BACKWARD or names.products(module, one):
            barred.add(one)
        if not after.isdisjoint(one.operands) or _has_backward(one, placing):
            after.add(one)
        reached = [given.get(operand, frozenset()) for operand in one.operands] if one not in barred else []
        given[one] = frozenset((one,)) if one.opcode == "parameter" else frozenset().union(*reached)
    last: set[Instruction] = set()  # nothing that is made of it is barred
    for one in reversed(instructions):
        if one not in barred and last.issuperset(users[one]):
            last.add(one)
    ways: list[tuple[set[Instruction], set[Instruction]]] = []  # of each next value: of which parameters, and made how
    for end in root.operands if root.opcode == "tuple" else (root,):
        same = {one for one in given[end] if _same_array(end, one)} if end in after & last else set()
        way = _behind(end, after & last) if same else set()
        if any(_adds(one, placing) for one in way):
            ways.append((same - last, way))
    if len(set[Instruction]().union(*(weights for weights, _ in ways))) < _LEAST:
        return frozenset()
    found = set[Instruction]().union(*(way for weights, way in ways if weights))
    found = found.union(*(way for _, way in ways if not way.isdisjoint(found)))
    for one in reversed(instructions):
        if one in last - after and one.opcode not in _THERE and users[one] and found.issuperset(users[one]):
            found.add(one)
    return frozenset(each for one in found for each in _with_all_in(one))


def _has_backward(instruction: Instruction, placing: Placing) -> bool:
    return any(placing(joined(instruction.op_name, one.op_name)).phase == BACKWARD for one in inside(instruction))


def _same_array(one: Instruction, other: Instruction) -> bool:
    """Whether two values are arrays of one shape and floating type, and no single numbers."""
    return (
        bool(one.shape.dims)
        and one.shape.floating
        and (one.shape.dtype, one.shape.dims)
        == (
            other.shape.dtype,
            other.shape.dims,
        )
    )


def _adds(instruction: Instruction, placing: Placing) -> bool:
    """Whether it adds or subtracts, outside of the backward pass."""
    return any(
        one.opcode in ("add", "subtract") and placing(joined(instruction.op_name, one.op_name)).phase != BACKWARD
        for one in inside(instruction)
    )


def _behind(end: Instruction, among: Collection[Instruction]) -> set[Instruction]:
    """An instruction and those among some that it is made of."""
    found, waiting = {end}, [end]
    for one in waiting:
        for operand in one.operands:
            if operand in among and operand not in found:
                found.add(operand)
                waiting.append(operand)
    return found


def _with_all_in(instruction: Instruction) -> Iterator[Instruction]:
    """An instruction and what the computations that it calls are made of, however deep."""
    waiting = [instruction]
    for one in waiting:
        yield one
        waiting += (inner for computation in one.called for inner in computation.instructions)
