"""What `tf.recompute_grad` has XLA compute again in the backward pass, which the names of instructions do not tell.

To have it wait for the gradient TensorFlow adds to each argument a number that is made of the gradient: 0 or not a
number (`tensorflow.graph.recomputed`). JAX says in the names what it repeats (`scopes.is_recomputed`).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan

from roofline.xla.hlo.module import Instruction, Module
from roofline.xla.hlo.origin import COPIES, number, origin

_PASSED_ON = COPIES | {"broadcast", "reshape"}
#: What TensorFlow's gradients have in their names.
GRADIENT = "gradient_tape/"


def recomputed(module: Module) -> frozenset[Instruction]:
    """The instructions that are made of such sums and are no gradients."""
    if "recomputed" not in module.memo:
        everything = [each for computation in module.computations for each in computation.instructions]
        starts = [each for each in everything if each.opcode == "add" and any(map(_is_zero_or_nan, each.operands))]
        module.memo["recomputed"] = frozenset(_made_of(module, starts)) if starts else frozenset()
    found: frozenset[Instruction] = module.memo["recomputed"]
    return found


def _is_zero_or_nan(value: Instruction) -> bool:
    value, _ = origin(value, (), _PASSED_ON)
    if value.opcode != "select":
        return False
    zero, other = (number(origin(operand, (), _PASSED_ON)[0], ()) for operand in value.operands[1:])
    return zero == 0 and other is not None and isnan(other)


def _made_of(module: Module, starts: list[Instruction]) -> set[Instruction]:
    users: dict[Instruction, list[tuple[Instruction, int]]] = {}
    for computation in module.computations:
        for user in computation.instructions:
            for place, operand in enumerate(user.operands):
                users.setdefault(operand, []).append((user, place))
    roots: Mapping[Instruction, list[Instruction]] = {
        computation.root: list(callers) for computation, callers in module.callers.items()
    }
    found: set[Instruction] = set()
    waiting = list(starts)
    while waiting:
        each = waiting.pop()
        if each in found or GRADIENT in each.op_name:
            continue
        found.add(each)
        waiting += [caller for caller in roots.get(each, ()) if caller.opcode in ("call", "while", "conditional")]
        for user, place in users.get(each, ()):
            waiting.append(user)
            if user.opcode in ("call", "while", "conditional"):
                given = [computation.parameters for computation in user.called]
                waiting += [some[at] for some in given for at in some if user.opcode != "call" or at == place]
    return found
