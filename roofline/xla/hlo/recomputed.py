"""Find what `tf.recompute_grad` has XLA compute again in the backward pass: names of instructions do not tell it.

To have it wait for the gradient TensorFlow adds to each argument a number that is made of the gradient: 0 or not a
number; what is made of variables alone is known by what takes it, and what is a gradient by its name, also in that of a
loop (`tensorflow.graph.recomputed`). A cross entropy adds such numbers to its labels, too, by its own op. JAX says in
the names what it repeats (`scopes.is_recomputed`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from math import isnan

from roofline.costs.repeated import named_from_outside
from roofline.xla.hlo.module import Instruction, Module
from roofline.xla.hlo.origin import COPIES, number, origin
from roofline.xla.scopes import gradient_order

_PASSED_ON = COPIES | {"broadcast", "reshape"}
#: Which instructions take a value, and as which operand.
_Users = Mapping[Instruction, Sequence[tuple[Instruction, int]]]
#: The op of TensorFlow's that chooses between 0 and not a number for a recomputed function.
_CHOICE = "SelectV2"


def recomputed(module: Module) -> Mapping[Instruction, str]:
    """Map the instructions that are made of such sums or for what is, and are no gradients, to a checkpoint.

    It is named by the choices of the recomputed functions around one (`costs.repeated`).
    """
    if "recomputed" not in module.memo:
        barriers = _barriers(module)
        starts = frozenset[Instruction]().union(*barriers.values())
        users = _users(module) if barriers else {}
        members: dict[str, set[Instruction]] = {}
        for choice, sums in barriers.items():
            order = gradient_order(sums[0].op_name)
            results = _made_of(module, sums, order, users)
            members[choice.name] = results | _taken_by(results - starts, starts, order, users)
        module.memo["recomputed"] = named_from_outside(members)
    instructions: Mapping[Instruction, str] = module.memo["recomputed"]
    return instructions


def _barriers(module: Module) -> dict[Instruction, list[Instruction]]:
    """List the sums by which a recomputed function waits, by what chooses between 0 and not a number for it."""
    barriers: dict[Instruction, list[Instruction]] = {}
    for computation in module.computations:
        for addition in computation.instructions:
            if addition.opcode == "add":
                for choice in filter(_is_zero_or_nan, (origin(term, (), _PASSED_ON)[0] for term in addition.operands)):
                    barriers.setdefault(choice, []).append(addition)
    return barriers


def _is_zero_or_nan(value: Instruction) -> bool:
    if value.opcode != "select" or value.op_type != _CHOICE:
        return False
    zero, nan = (number(origin(operand, (), _PASSED_ON)[0], ()) for operand in value.operands[1:])
    return zero == 0 and nan is not None and isnan(nan)


def _users(module: Module) -> _Users:
    users: dict[Instruction, list[tuple[Instruction, int]]] = {}
    for computation in module.computations:
        for user in computation.instructions:
            for place, operand in enumerate(user.operands):
                users.setdefault(operand, []).append((user, place))
    return users


def _taken_by(takers: Set[Instruction], starts: Set[Instruction], order: int, users: _Users) -> set[Instruction]:
    """Return the instructions that are no gradients, and whose results nothing takes but these takers and gradients.

    What the sums at the start are made of is none: a recomputed function is given it, or waits for it. order: of these.
    """
    recomputed_values = set(takers)
    waiting = list(takers)
    while waiting:
        for operand in waiting.pop().operands:
            if operand in recomputed_values or operand in starts or gradient_order(operand.op_name) > order:
                continue
            if all(user in recomputed_values or gradient_order(user.op_name) > order for user, _ in users[operand]):
                recomputed_values.add(operand)
                waiting.append(operand)
    return recomputed_values


def _made_of(module: Module, starts: Sequence[Instruction], order: int, users: _Users) -> set[Instruction]:
    """Return the sums at the start and what is made of them without another gradient. order: of these sums."""
    roots: Mapping[Instruction, list[Instruction]] = {
        computation.root: list(callers) for computation, callers in module.callers.items()
    }
    results: set[Instruction] = set()
    waiting = list(starts)
    while waiting:
        value = waiting.pop()
        if value in results or gradient_order(value.op_name) > order:
            continue
        results.add(value)
        waiting += [caller for caller in roots.get(value, ()) if caller.opcode in ("call", "while", "conditional")]
        for user, place in users.get(value, ()):
            waiting.append(user)
            if user.opcode in ("call", "while", "conditional"):
                waiting += [
                    parameter
                    for computation in user.called
                    for at, parameter in computation.parameters.items()
                    if user.opcode != "call" or at == place
                ]
    return results
