"""Follow a value of a program to its origin: through copies and tuples, into calls and out of their parameters.

Also out of a loop that hands the value on from trip to trip as it is.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from typing import Any

from roofline.xla.hlo.module import Instruction

#: The control instructions around a value, outermost first.
Path = tuple[Instruction, ...]

#: What hands on the elements that it is given, each in its place.
COPIES = frozenset("copy bitcast convert opt-barrier".split())
#: A chain of copies and calls longer than this is damage.
MAX_CHAIN = 1000


def origin(value: Instruction, path: Path, through: Collection[str] = COPIES) -> tuple[Instruction, Path]:
    """The instruction that made a value, and what is around it. through: opcodes that are not taken to have made it."""
    places: list[int] = []  # which parts of tuples are followed, the outermost last
    made = value, path
    for _ in range(MAX_CHAIN):
        if not places:
            made = value, path
        if value.opcode in through:
            value = value.operands[0]
        elif value.opcode == "call":
            value, path = value.called[0].root, (*path, value)
        elif value.opcode == "parameter" and path and path[-1].opcode == "call":
            value, path = path[-1].operands[value.number], path[:-1]
        elif value.opcode == "parameter" and path and places and _hands_on(path[-1], places[-1]):
            value, path = path[-1].operands[0], path[:-1]
        elif value.opcode == "get-tuple-element":
            places.append(value.number)
            value = value.operands[0]
        elif value.opcode == "tuple" and places and places[-1] < len(value.operands):
            value = value.operands[places.pop()]
        else:
            break
    return made


def _hands_on(loop: Instruction, place: int) -> bool:
    """Tell whether a part of the state of a loop is in each trip what the loop was given."""
    state = loop.called[0].root if loop.opcode == "while" else None
    if state is None or state.opcode != "tuple" or place >= len(state.operands):
        return False
    part = state.operands[place]
    return part.opcode == "get-tuple-element" and part.number == place and part.operands[0].opcode == "parameter"


def number(value: Instruction, path: Path) -> float | None:
    """The number that all elements of a value are; None where they are not known, or differ."""
    value, path = origin(value, path)
    if value.opcode == "broadcast":
        value, path = origin(value.operands[0], path)
    if value.opcode != "constant" or value.shape.elements != 1:
        return None
    return _scalar(value.message.literal)


def _scalar(literal: Any) -> float | None:
    for numbers in (literal.f32s, literal.f64s, literal.s32s, literal.s64s, literal.u32s, literal.u64s, literal.preds):
        if numbers:
            return float(numbers[0])
    if len(literal.f16s) == 2:
        return float(struct.unpack("<e", literal.f16s)[0])
    if len(literal.bf16s) == 2:  # the upper half of a float32
        return float(struct.unpack("<f", b"\0\0" + literal.bf16s)[0])
    for packed, signed in ((literal.u8s, False), (literal.s8s, True), (literal.u16s, False), (literal.s16s, True)):
        if packed:
            return float(int.from_bytes(packed, "little", signed=signed))
    return None
