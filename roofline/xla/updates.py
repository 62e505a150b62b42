"""Updates that no scope calls an optimizer's: in a training step, by where data go.

What a step was given and returns in the same shape, changed by a gradient without any product, is updated: in the
program that makes the gradients, or in programs beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from roofline.xla import names
from roofline.xla.hlo.module import Computation, Instruction, Module, Shape
from roofline.xla.hlo.opcodes import FREE
from roofline.xla.hlo.schedule import inside, joined
from roofline.xla.places import Placing, place_of
from roofline.xla.scopes import BACKWARD, FORWARD, OPTIMIZER, Place

#: The place of an update that no scope names.
UPDATE = Place(OPTIMIZER, "optimizer")
#: Of so many arrays an optimizer makes the next values at least. By choice.
_LEAST = 2
#: What no rule of an optimizer computes, and models do.
_NO_RULE = frozenset(("tanh", "exponential", "exponential-minus-one", "logistic", "erf", "log", "sine", "cosine"))


def updates(module: Module, placing: Placing) -> frozenset[Instruction]:
    """The instructions of a program that are an optimizer's though no scope says so, with all that is in them.

    They lie between a gradient and a result that is the next value of a parameter: of its shape and type, reached by it
    without a product or the backward pass on the way, and with something added on the way. Nothing made of them goes
    into a product or the backward pass, as an update that is differentiated itself does. What is made for such
    instructions alone, as a rate, a decay or a moment, goes with them. A loop over whole steps of a training is looked
    into: one of whose results no product or gradient is made.

    The parameter is one that products or the backward pass are made of, or its next value is made with theirs, as an
    average of weights: a sum of gradients over batches is none. And there are two of the former at least: a single one
    may be an input, moved along its gradient (an adversarial example).
    """
    found: set[Instruction] = set()
    waiting = [module.entry]
    for computation in waiting:
        flow = _flow(module, computation, placing)
        if flow is None:
            return frozenset()
        found |= _next_values(computation, flow, placing)
        loops = (one for one in computation.instructions if one.opcode == "while")
        waiting += (body for one in loops if flow.last.issuperset(flow.users[one]) for body in one.called)
    return frozenset(each for one in found for each in _with_all_in(one))


class _Flow(NamedTuple):
    """Where data go in a computation. users: of each instruction. after: made of a gradient. last: it and all that is
    made of it are no product and no part of the backward pass. given: which parameters reach it without one.
    """

    users: Mapping[Instruction, list[Instruction]]
    after: set[Instruction]
    last: set[Instruction]
    given: Mapping[Instruction, frozenset[Instruction]]


def _flow(module: Module, computation: Computation, placing: Placing) -> _Flow | None:
    """None where a scope names an optimizer."""
    users: dict[Instruction, list[Instruction]] = {one: [] for one in computation.instructions}
    barred: set[Instruction] = set()  # products and the backward pass
    after: set[Instruction] = set()
    given: dict[Instruction, frozenset[Instruction]] = {}
    for one in computation.instructions:
        for operand in one.operands:
            users.setdefault(operand, []).append(one)
        phase = FORWARD if one.opcode in FREE else place_of(module, one, placing).phase
        if phase == OPTIMIZER:
            return None
        if phase == BACKWARD or names.products(module, one):
            barred.add(one)
        if not after.isdisjoint(one.operands) or _has_backward(one, placing):
            after.add(one)
        reached = [given.get(operand, frozenset()) for operand in one.operands] if one not in barred else []
        given[one] = frozenset((one,)) if _is_given(one) else frozenset().union(*reached)
    last: set[Instruction] = set()
    for one in reversed(computation.instructions):
        if one not in barred and last.issuperset(users[one]):
            last.add(one)
    return _Flow(users, after, last, given)


def _next_values(computation: Computation, flow: _Flow, placing: Placing) -> set[Instruction]:
    """What makes the next values of parameters, and what is made for that alone."""
    users, after, last, given = flow
    ways: list[tuple[set[Instruction], set[Instruction]]] = []  # of each next value: of which parameters, and made how
    for end in _results(computation):
        same = {one for one in given[end] if _same_array(end, one)} if end in after & last else set()
        way = _behind(end, after & last) if same else set()
        if any(_adds(one, placing) for one in way):
            ways.append((same - last, way))
    if len(set[Instruction]().union(*(weights for weights, _ in ways))) < _LEAST:
        return set()
    found = set[Instruction]().union(*(way for weights, way in ways if weights))
    found = found.union(*(way for _, way in ways if not way.isdisjoint(found)))
    for one in reversed(computation.instructions):
        there = one.opcode == "constant" or _is_given(one)
        if one in last - after and not there and users[one] and found.issuperset(users[one]):
            found.add(one)
    return found


def _is_given(one: Instruction) -> bool:
    """Whether it is an argument of the program, or one of those that a loop carries."""
    source = one.operands[0] if one.opcode == "get-tuple-element" else one
    return source.opcode == "parameter" and one.shape.dtype != "tuple"


def in_other_programs(programs: Mapping[Module, float], placing: Placing) -> frozenset[Instruction]:
    """The instructions of programs that update what another program made gradients for: a jitted function of its own,
    or operations one by one. Programs are an optimizer's as a whole or not at all.

    programs: each with how often a step runs it. In which order says nothing: a host that runs ahead waits for a loss,
    and the updates of one step run in the next. They hold no product and no backward pass, and every array that they
    return has the shape of a gradient. Together they make by adding at least as many arrays of each shape as there are
    gradients of it, two at least, and scale some: a plain sum of gradients over batches scales none. A mean of
    gradients, of which no weight is made, looks the same.
    """
    gradients: Counter[tuple[str, tuple[int, ...]]] = Counter()
    others: dict[Module, float] = {}
    for module, runs in programs.items():
        if any(_has_backward(one, placing) for one in module.entry.instructions):
            gradients |= Counter(_kind(one.shape) for one in _gradients(module, placing))
        else:
            others[module] = runs
    made: Counter[tuple[str, tuple[int, ...]]] = Counter()
    found: list[Instruction] = []
    scaled = False
    for module, runs in others.items():
        instructions = module.entry.instructions
        arrays = [one for one in _results(module.entry) if _is_array(one.shape)]
        other = any(_kind(one.shape) not in gradients for one in arrays)
        if not arrays or other or any(names.products(module, one) for one in instructions):
            continue
        every = [each for one in instructions for each in _with_all_in(one)]
        if any(one.opcode in _NO_RULE for one in every):
            continue
        for end in arrays:
            if any(_adds(one, placing) for one in _behind(end, instructions)):
                made[_kind(end.shape)] += round(runs)
        scaled = scaled or any(one.opcode in ("multiply", "divide") and _is_array(one.shape) for one in every)
        found += every
    return frozenset(found) if scaled and gradients.total() >= _LEAST and gradients <= made else frozenset()


def _gradients(module: Module, placing: Placing) -> list[Instruction]:
    """The results that are made of the backward pass and have the shape of something given."""
    after: set[Instruction] = set()
    for one in module.entry.instructions:
        if not after.isdisjoint(one.operands) or _has_backward(one, placing):
            after.add(one)
    given = {_kind(one.shape) for one in module.entry.instructions if one.opcode == "parameter"}
    made = (one for one in _results(module.entry) if one in after and _is_array(one.shape))
    return [one for one in made if _kind(one.shape) in given]


def _results(computation: Computation) -> list[Instruction]:
    root = computation.root
    return list(root.operands) if root.opcode == "tuple" else [root]


def _kind(shape: Shape) -> tuple[str, tuple[int, ...]]:
    return shape.dtype, shape.dims


def _is_array(shape: Shape) -> bool:
    """Whether it is of floating numbers, and of more than a single one."""
    return bool(shape.dims) and shape.floating


def _has_backward(instruction: Instruction, placing: Placing) -> bool:
    return any(placing(joined(instruction.op_name, one.op_name)).phase == BACKWARD for one in inside(instruction))


def _same_array(one: Instruction, other: Instruction) -> bool:
    """Whether two values are arrays of one shape and floating type, and no single numbers."""
    return _is_array(one.shape) and _kind(one.shape) == _kind(other.shape)


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
