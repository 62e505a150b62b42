"""Follow the buffers of a step from the op that makes each to the last one that uses it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: Buffers that an op touches: number, bytes of each.
Touches = Sequence[tuple[int, float]]


@dataclass(slots=True)
class Lifetime:
    """What a buffer holds from the op `first` to the op `last`, both included.

    bytes: as far as ops touch it at once. made: whether the step makes it; else it was there before. read: whether
    any op reads it.
    """

    bytes: float
    first: int
    last: int
    made: bool
    read: bool = False


def lifetimes(ops: Iterable[tuple[Touches, Touches]]) -> list[Lifetime]:
    """Find what buffers hold during a step, in the order in which it is made. ops: reads and writes of each, in order.

    A buffer that an op writes and does not read holds something new, in memory that may have been released and taken
    again meanwhile. What was there before the step stays, whoever writes it.
    """
    lives: list[Lifetime] = []
    current: dict[int, Lifetime] = {}
    for row, (reads, writes) in enumerate(ops):
        taken = {buffer for buffer, _ in reads}
        for is_write, touches in enumerate((reads, writes)):
            for buffer, size in touches:
                life = current.get(buffer)
                anew = bool(is_write) and buffer not in taken and (life is None or (life.made and life.last < row))
                if life is None or anew:
                    life = current[buffer] = Lifetime(0.0, row, row, made=bool(is_write))
                    lives.append(life)
                life.last, life.bytes = row, max(life.bytes, size)
                life.read |= not is_write
    return lives
