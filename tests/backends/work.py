"""The work of one block of a model, as its closed form has it."""

from __future__ import annotations

from typing import NamedTuple


class Work(NamedTuple):
    """Matrix FLOPs of one block in one forward pass.

    backward: those of its backward pass. Each product of two operands has two gradients, and each gradient is a
    product of as many multiply-adds, so it is twice `forward`, less the gradients that nobody asks for.
    useful: of the forward pass, what a causal mask leaves; None: all of it.
    ran: of the backward pass, what is executed, where that is not what is asked for. useful_backward: of that.
    ran_forward: the same of the forward pass, which is all useful.
    """

    forward: int
    backward: int
    useful: int | None = None
    ran: int | None = None
    useful_backward: int | None = None
    ran_forward: int | None = None


def twice(forward: int, useful: int | None = None) -> Work:
    return Work(forward, 2 * forward, useful)
