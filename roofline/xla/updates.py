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
    optimizers: set[Instruction] = set()
    waiting = [module.entry]
    for computation in waiting:
        flow = _flow(module, computation, placing)
        if flow is None:
            return frozenset()
        optimizers |= _next_values(computation, flow, placing)
        loops = (instruction for instruction in computation.instructions if instruction.opcode == "while")
        waiting += (body for loop in loops if flow.last.issuperset(flow.users[loop]) for body in loop.called)
    return frozenset(inner for instruction in optimizers for inner in _with_all_in(instruction))


class _Flow(NamedTuple):
    """Follow data in a computation.

    users: of each instruction. after: made of a gradient. last: it and all that is made of it are no product and no
    part of the backward pass. parameters: those that reach each instruction without one.
    """

    users: Mapping[Instruction, list[Instruction]]
    after: set[Instruction]
    last: set[Instruction]
    parameters: Mapping[Instruction, frozenset[Instruction]]


def _flow(module: Module, computation: Computation, placing: Placing) -> _Flow | None:
    """None where a scope names an optimizer."""
    users: dict[Instruction, list[Instruction]] = {instruction: [] for instruction in computation.instructions}
    barred: set[Instruction] = set()  # products and the backward pass
    after: set[Instruction] = set()
    parameters: dict[Instruction, frozenset[Instruction]] = {}
    for instruction in computation.instructions:
        for operand in instruction.operands:
            users.setdefault(operand, []).append(instruction)
        phase = FORWARD if instruction.opcode in FREE else place_of(module, instruction, placing).phase
        if phase == OPTIMIZER:
            return None
        if phase == BACKWARD or names.products(module, instruction):
            barred.add(instruction)
        if not after.isdisjoint(instruction.operands) or _has_backward(instruction, placing):
            after.add(instruction)
        reached = (
            [parameters.get(operand, frozenset()) for operand in instruction.operands]
            if instruction not in barred
            else []
        )
        parameters[instruction] = frozenset((instruction,)) if _is_given(instruction) else frozenset().union(*reached)
    last: set[Instruction] = set()
    for instruction in reversed(computation.instructions):
        if instruction not in barred and last.issuperset(users[instruction]):
            last.add(instruction)
    return _Flow(users, after, last, parameters)


def _next_values(computation: Computation, flow: _Flow, placing: Placing) -> set[Instruction]:
    """Find what makes the next values of parameters, and what is made for that alone."""
    users, after, last, parameters = flow
    ways: list[tuple[set[Instruction], set[Instruction]]] = []  # of each next value: of which parameters, and made how
    for end in _results(computation):
        previous = (
            {parameter for parameter in parameters[end] if _same_array(end, parameter)}
            if end in after & last
            else set()
        )
        way = _behind(end, after & last) if previous else set()
        if any(_adds(instruction, placing) for instruction in way):
            ways.append((previous - last, way))
    if len(set[Instruction]().union(*(weights for weights, _ in ways))) < _LEAST:
        return set()
    made_for_values = set[Instruction]().union(*(way for weights, way in ways if weights))
    made_for_values = made_for_values.union(*(way for _, way in ways if not way.isdisjoint(made_for_values)))
    for instruction in reversed(computation.instructions):
        is_input = instruction.opcode == "constant" or _is_given(instruction)
        if (
            instruction in last - after
            and not is_input
            and users[instruction]
            and made_for_values.issuperset(users[instruction])
        ):
            made_for_values.add(instruction)
    return made_for_values


def _is_given(instruction: Instruction) -> bool:
    """Tell whether it is an argument of the program, or one of those that a loop carries."""
    source = instruction.operands[0] if instruction.opcode == "get-tuple-element" else instruction
    return source.opcode == "parameter" and instruction.shape.dtype != "tuple"


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
    without_gradients: dict[Module, float] = {}
    for module, runs in programs.items():
        if any(_has_backward(instruction, placing) for instruction in module.entry.instructions):
            gradients |= Counter(_kind(gradient.shape) for gradient in _gradients(module, placing))
        else:
            without_gradients[module] = runs
    sums: Counter[tuple[str, tuple[int, ...]]] = Counter()
    optimizers: list[Instruction] = []
    scaled = False
    for module, runs in without_gradients.items():
        instructions = module.entry.instructions
        arrays = [result for result in _results(module.entry) if _is_array(result.shape)]
        unlike_gradients = any(_kind(result.shape) not in gradients for result in arrays)
        if not arrays or unlike_gradients or any(names.products(module, instruction) for instruction in instructions):
            continue
        every = [inner for instruction in instructions for inner in _with_all_in(instruction)]
        if any(inner.opcode in _NO_RULE for inner in every):
            continue
        for end in arrays:
            if any(_adds(instruction, placing) for instruction in _behind(end, instructions)):
                sums[_kind(end.shape)] += round(runs)
        scaled = scaled or any(inner.opcode in ("multiply", "divide") and _is_array(inner.shape) for inner in every)
        optimizers += every
    return frozenset(optimizers) if scaled and gradients.total() >= _LEAST and gradients <= sums else frozenset()


def _gradients(module: Module, placing: Placing) -> list[Instruction]:
    """The results that are made of the backward pass and have the shape of something given."""
    after: set[Instruction] = set()
    for instruction in module.entry.instructions:
        if not after.isdisjoint(instruction.operands) or _has_backward(instruction, placing):
            after.add(instruction)
    parameter_kinds = {
        _kind(parameter.shape) for parameter in module.entry.instructions if parameter.opcode == "parameter"
    }
    after_backward = (result for result in _results(module.entry) if result in after and _is_array(result.shape))
    return [result for result in after_backward if _kind(result.shape) in parameter_kinds]


def _results(computation: Computation) -> list[Instruction]:
    root = computation.root
    return list(root.operands) if root.opcode == "tuple" else [root]


def _kind(shape: Shape) -> tuple[str, tuple[int, ...]]:
    return shape.dtype, shape.dims


def _is_array(shape: Shape) -> bool:
    """Tell whether a shape is of floating numbers, and of more than a single one."""
    return bool(shape.dims) and shape.floating


def _has_backward(instruction: Instruction, placing: Placing) -> bool:
    return any(placing(joined(instruction.op_name, inner.op_name)).phase == BACKWARD for inner in inside(instruction))


def _same_array(first: Instruction, second: Instruction) -> bool:
    """Tell whether two values are arrays of one shape and floating type, and no single numbers."""
    return _is_array(first.shape) and _kind(first.shape) == _kind(second.shape)


def _adds(instruction: Instruction, placing: Placing) -> bool:
    """Tell whether an instruction adds or subtracts, outside of the backward pass."""
    return any(
        inner.opcode in ("add", "subtract") and placing(joined(instruction.op_name, inner.op_name)).phase != BACKWARD
        for inner in inside(instruction)
    )


def _behind(end: Instruction, among: Collection[Instruction]) -> set[Instruction]:
    """An instruction and those among some that it is made of."""
    reached, waiting = {end}, [end]
    for current in waiting:
        for operand in current.operands:
            if operand in among and operand not in reached:
                reached.add(operand)
                waiting.append(operand)
    return reached


def _with_all_in(instruction: Instruction) -> Iterator[Instruction]:
    """An instruction and what the computations that it calls are made of, however deep."""
    waiting = [instruction]
    for current in waiting:
        yield current
        waiting += (inner for computation in current.called for inner in computation.instructions)
