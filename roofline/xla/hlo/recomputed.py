"""What `tf.recompute_grad` has XLA compute again in the backward pass, which the names of instructions do not tell.

To have it wait for the gradient TensorFlow adds to each argument a number that is made of the gradient: 0 or not a
number; what is made of variables alone is known by what takes it (`tensorflow.graph.recomputed`). A cross entropy adds
such numbers to its labels, too, by its own op. JAX says in the names what it repeats (`scopes.is_recomputed`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from math import isnan

from roofline.xla.hlo.module import Instruction, Module
from roofline.xla.hlo.origin import COPIES, number, origin
from roofline.xla.scopes import is_gradient

_PASSED_ON = COPIES | {"broadcast", "reshape"}
#: Which instructions take a value, and as which operand.
_Users = Mapping[Instruction, Sequence[tuple[Instruction, int]]]
#: The op of TensorFlow's that chooses between 0 and not a number for a recomputed function.
_CHOICE = "SelectV2"


def recomputed(module: Module) -> frozenset[Instruction]:
    """Return the instructions that are made of such sums or for what is, and are no gradients."""
    if "recomputed" not in module.memo:
        everything = [each for computation in module.computations for each in computation.instructions]
        starts = [each for each in everything if each.opcode == "add" and any(map(_is_zero_or_nan, each.operands))]
        users = _users(module) if starts else {}
        made = _made_of(module, starts, users)
        module.memo["recomputed"] = frozenset(made | _taken_by(made.difference(starts), frozenset(starts), users))
    found: frozenset[Instruction] = module.memo["recomputed"]
    return found


def _is_zero_or_nan(value: Instruction) -> bool:
    value, _ = origin(value, (), _PASSED_ON)
    if value.opcode != "select" or value.op_type != _CHOICE:
        return False
    zero, other = (number(origin(operand, (), _PASSED_ON)[0], ()) for operand in value.operands[1:])
    return zero == 0 and other is not None and isnan(other)


def _users(module: Module) -> _Users:
    users: dict[Instruction, list[tuple[Instruction, int]]] = {}
    for computation in module.computations:
        for user in computation.instructions:
            for place, operand in enumerate(user.operands):
                users.setdefault(operand, []).append((user, place))
    return users


def _taken_by(takers: Set[Instruction], starts: Set[Instruction], users: _Users) -> set[Instruction]:
    """Return the instructions that are no gradients, and whose results nothing takes but these takers and gradients.

    What the sums at the start are made of is none: a recomputed function is given it, or waits for it.
    """
    recomputed_values = set(takers)
    waiting = list(takers)
    while waiting:
        for operand in waiting.pop().operands:
            if operand in recomputed_values or operand in starts or is_gradient(operand.op_name):
                continue
            if all(user in recomputed_values or is_gradient(user.op_name) for user, _ in users[operand]):
                recomputed_values.add(operand)
                waiting.append(operand)
    return recomputed_values


def _made_of(module: Module, starts: list[Instruction], users: _Users) -> set[Instruction]:
    roots: Mapping[Instruction, list[Instruction]] = {
        computation.root: list(callers) for computation, callers in module.callers.items()
    }
    found: set[Instruction] = set()
    waiting = list(starts)
    while waiting:
        each = waiting.pop()
        if each in found or is_gradient(each.op_name):
            continue
        found.add(each)
        waiting += [caller for caller in roots.get(each, ()) if caller.opcode in ("call", "while", "conditional")]
        for user, place in users.get(each, ()):
            waiting.append(user)
            if user.opcode in ("call", "while", "conditional"):
                given = [computation.parameters for computation in user.called]
                waiting += [some[at] for some in given for at in some if user.opcode != "call" or at == place]
    return found
