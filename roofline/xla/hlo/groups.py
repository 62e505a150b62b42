"""Products of rows that are dealt to groups, each with a matrix of its own, where a compiler has no such product.

`jax.lax.ragged_dot` is written on a CPU as a product with every group's matrix, of rows that are set to zero for all
groups but their own: `select(start <= row < end, row, 0)`. Each row is asked to meet one matrix.
"""

from __future__ import annotations

from roofline.xla.hlo.module import Instruction
from roofline.xla.hlo.one_hot import REARRANGES, counts_along
from roofline.xla.hlo.origin import Path, number, origin

#: What is smaller, by direction of a comparison: the left side or the right one.
_LEFT, _RIGHT = ("LT", "LE"), ("GT", "GE")


def dealt(product: Instruction, path: Path) -> int:
    """Count the groups among which a product deals its rows; 1 where it is no such product.

    path: the control instructions around it, outermost first.
    """
    if product.opcode != "dot":
        return 1
    return max(_copies(factor, path) for factor in product.operands[:2])


def _copies(factor: Instruction, path: Path) -> int:
    value, path = origin(factor, path, REARRANGES)
    if value.opcode != "select":
        return 1
    chosen, row, zero = value.operands
    repeated, inner = origin(row, path, REARRANGES)
    if number(zero, path) != 0 or repeated.opcode != "broadcast" or not _is_one_group(chosen, path):
        return 1
    return max(1, repeated.shape.elements // max(1, origin(repeated.operands[0], inner)[0].shape.elements))


def _is_one_group(chosen: Instruction, path: Path) -> bool:
    """Tell whether a place is chosen between two limits, where a group ends as the next one begins."""
    value, path = origin(chosen, path, REARRANGES)
    if value.opcode != "and":
        return False
    limits: dict[str, tuple[Instruction, Path]] = {}
    for comparison in value.operands:
        compare, at = origin(comparison, path, REARRANGES)
        if compare.opcode != "compare":
            return False
        direction = compare.message.comparison_direction
        small, large = compare.operands if direction in _LEFT else reversed(compare.operands)
        if direction not in (*_LEFT, *_RIGHT):
            return False
        if counts_along(large, at) is not None:
            limits["start"] = _repeated(small, at)
        elif counts_along(small, at) is not None:
            limits["end"] = _repeated(large, at)
    return len(limits) == 2 and _follows(*limits["start"], *limits["end"])


def _follows(start: Instruction, path: Path, end: Instruction, end_path: Path) -> bool:
    """Tell whether starts are the ends of the groups before: behind a first one, or less the sizes that they add up."""
    if start.opcode == "subtract":
        (ends, inner), (sizes, _) = (origin(operand, path) for operand in start.operands)
        return ends is origin(end, end_path)[0] and _adds_up(ends, inner, sizes)
    if start.opcode != "concatenate" or len(start.operands) != 2:
        return False
    before, path = origin(start.operands[1], path)
    return before.opcode == "slice" and origin(before.operands[0], path)[0] is origin(end, end_path)[0]


def _adds_up(sums: Instruction, path: Path, sizes: Instruction) -> bool:
    """Tell whether these are running sums of sizes: `jax.lax.cumsum` is a window that reaches back to the first one."""
    if sums.opcode != "reduce-window" or origin(sums.operands[0], path)[0] is not sizes:
        return False
    windows, length = sums.message.window.dimensions, sums.shape.elements
    reaches = [(window.size, window.padding_low) for window in windows] == [(length, length - 1)]
    return reaches and [reducer.root.opcode for reducer in sums.called] == ["add"]


def _repeated(value: Instruction, path: Path) -> tuple[Instruction, Path]:
    """Return the value that a value repeats along other dimensions."""
    value, path = origin(value, path, REARRANGES)
    while value.opcode == "broadcast":
        value, path = origin(value.operands[0], path, REARRANGES)
    return value, path
