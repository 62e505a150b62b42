"""Check that the attributes of an instruction fit its arrays, as XLA's own verifier does, so that no rule need ask.

One that does not fit is damaged, or newer than this reader. Instructions of opcodes without a form here fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from roofline.xla.hlo.opcodes import ARITHMETIC

#: Behind the opcode of an instruction that does not fit: no rule knows such an opcode, and what it does is unknown.
OTHER = " of another form"
#: The HloInstructionProto, and the numbers of dimensions of its result and of its operands.
_Form = Callable[[Any, int, Sequence[int]], bool]


def fits(message: Any, rank: int, operand_ranks: Sequence[int]) -> bool:
    """Return whether the operands and dimension numbers of an instruction are those that its opcode takes.

    message: the HloInstructionProto, with as many operands as `opcodes.ARITY` asks for. rank, operand_ranks: numbers
    of dimensions of the result and of each operand; 0 of what is no array.
    """
    form = _FORMS.get(message.opcode)
    return form is None or form(message, rank, operand_ranks)


def _inside(places: Iterable[int], rank: int) -> bool:
    return all(0 <= place < rank for place in places)


def _dot(message: Any, rank: int, ranks: Sequence[int]) -> bool:
    numbers = message.dot_dimension_numbers
    left = (*numbers.lhs_contracting_dimensions, *numbers.lhs_batch_dimensions)
    right = (*numbers.rhs_contracting_dimensions, *numbers.rhs_batch_dimensions)
    return (
        len(numbers.lhs_contracting_dimensions) == len(numbers.rhs_contracting_dimensions)
        and len(numbers.lhs_batch_dimensions) == len(numbers.rhs_batch_dimensions)
        and _inside(left, ranks[0])
        and _inside(right, ranks[1])
        # Each pair of dimensions is summed over, or is one of the result.
        and rank == ranks[0] + ranks[1] - len(left) - len(numbers.rhs_contracting_dimensions)
    )


def _convolution(message: Any, rank: int, ranks: Sequence[int]) -> bool:
    numbers, spatial = message.convolution_dimension_numbers, len(message.window.dimensions)
    arrays = (
        (ranks[0], numbers.input_batch_dimension, numbers.input_feature_dimension, numbers.input_spatial_dimensions),
        (
            ranks[1],
            numbers.kernel_input_feature_dimension,
            numbers.kernel_output_feature_dimension,
            numbers.kernel_spatial_dimensions,
        ),
        (rank, numbers.output_batch_dimension, numbers.output_feature_dimension, numbers.output_spatial_dimensions),
    )
    return all(
        len(places) == spatial and _inside((first, second, *places), dims) for dims, first, second, places in arrays
    )


_FORMS: dict[str, _Form] = {
    **dict.fromkeys(
        ("compare", *sorted(ARITHMETIC.keys() - {"abs", "negate"})), lambda message, rank, ranks: len(ranks) == 2
    ),
    "select": lambda message, rank, ranks: len(ranks) == 3,
    "iota": lambda message, rank, _: len(message.dimensions) == 1 and _inside(message.dimensions, rank),
    "broadcast": lambda message, rank, ranks: len(message.dimensions) == ranks[0] and _inside(message.dimensions, rank),
    "transpose": lambda message, rank, ranks: sorted(message.dimensions) == list(range(rank)) == list(range(ranks[0])),
    "slice": lambda message, rank, ranks: len(message.slice_dimensions) == rank == ranks[0],
    "pad": lambda message, rank, ranks: len(message.padding_config.dimensions) == rank == ranks[0],
    "dot": _dot,
    "convolution": _convolution,
}
