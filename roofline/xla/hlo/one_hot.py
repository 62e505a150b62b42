"""Products of which one factor is one-hot: each row, or column, has a single 1, and the rest of it are zeros.

Such a product picks rows of the other factor, and its gradient adds rows up by their index: what a gather and a scatter
do without a product. One-hot is what comes of comparing indices with 0, 1, 2, ... (`iota`), as `jax.nn.one_hot`,
`jnp.eye` and TensorFlow's `OneHot` do, and rows taken from such a matrix. A convolution picks the patches of an image
with a kernel of as many 1 as it has results, each for itself (`jax.lax.conv_general_dilated_patches`).
"""

from __future__ import annotations

from roofline.xla.hlo.module import Instruction
from roofline.xla.hlo.origin import COPIES, Path, number, origin

#: What hands on the elements that it is given, in another place.
REARRANGES = COPIES | {"reshape", "transpose"}
#: What makes a kernel of a matrix.
_ARRANGED = REARRANGES | {"reverse"}
#: Values that are made of each other more often than this are damage.
_MAX_DEPTH = 20


def picks(product: Instruction, path: Path) -> bool:
    """Tell whether an instruction is a product with such a matrix. path: the control instructions around it."""
    if product.opcode == "convolution":
        return _picks_patches(product, path)
    return product.opcode == "dot" and any(_is_one_hot(factor, path) for factor in product.operands[:2])


def _picks_patches(convolution: Instruction, path: Path) -> bool:
    """Tell whether each result of a convolution is one element of its image, or it is the gradient of such a one.

    The kernel is an identity matrix in another shape, in a depthwise convolution once for each channel.
    """
    kernel, numbers = convolution.operands[1], convolution.message.convolution_dimension_numbers
    matrix, path = origin(kernel, path, _ARRANGED)
    if matrix.opcode == "broadcast":
        matrix, path = origin(matrix.operands[0], path, _ARRANGED)
    if matrix.opcode != "compare" or not _is_one_hot(matrix, path):
        return False
    along = next(place for operand in matrix.operands if (place := counts_along(operand, path)) is not None)
    ones = kernel.shape.elements // matrix.shape.dims[along]
    inputs, results = (
        kernel.shape.dims[place]
        for place in (numbers.kernel_input_feature_dimension, numbers.kernel_output_feature_dimension)
    )
    return ones in (results, inputs * (convolution.message.feature_group_count or 1))


def _is_one_hot(value: Instruction, path: Path, depth: int = 0) -> bool:
    value, path = origin(value, path, REARRANGES)
    if depth > _MAX_DEPTH:
        return False
    if value.opcode == "compare":
        first, second = value.operands
        return value.message.comparison_direction == "EQ" and (
            _names_each(first, second, path) or _names_each(second, first, path)
        )
    if value.opcode == "select":
        chosen, first, zero = value.operands
        return number(first, path) == 1 and number(zero, path) == 0 and _is_one_hot(chosen, path, depth + 1)
    # Whole rows of it, or those of a matrix that has a 1 in each row and in each column.
    return value.opcode == "gather" and _is_one_hot(value.operands[0], path, depth + 1)


def _names_each(numbers: Instruction, indices: Instruction, path: Path) -> bool:
    """Tell whether `numbers` counts along a dimension in which each of `indices` is repeated."""
    along = counts_along(numbers, path)
    return along is not None and along not in _varies_along(indices, path)


def counts_along(value: Instruction, path: Path, depth: int = 0) -> int | None:
    """The dimension in which a value is n, n + 1, n + 2, ..., and equal in all others; None where it is not such."""
    value, path = origin(value, path)
    if depth > _MAX_DEPTH:
        return None
    if value.opcode == "iota":
        return int(value.message.dimensions[0])
    if value.opcode == "add":
        first, second = value.operands
        terms = ((first, second), (second, first))
        return next((counts_along(term, path, depth + 1) for term, by in terms if number(by, path) is not None), None)
    if value.opcode not in ("broadcast", "reshape"):
        return None
    inner = counts_along(value.operands[0], path, depth + 1)
    return None if inner is None else _moved(value).get(inner)


def _varies_along(value: Instruction, path: Path, depth: int = 0) -> frozenset[int]:
    """The dimensions in which the elements of a value may differ."""
    value, path = origin(value, path)
    every = frozenset(place for place, size in enumerate(value.shape.dims) if size != 1)
    if value.opcode == "iota":
        return every & {int(value.message.dimensions[0])}
    if depth > _MAX_DEPTH or value.opcode not in ("broadcast", "reshape"):
        return every
    moved = _moved(value)
    inner = _varies_along(value.operands[0], path, depth + 1)
    return frozenset(moved[place] for place in inner) if moved.keys() >= inner else every


def _moved(value: Instruction) -> dict[int, int]:
    """Map dimensions of the operand to those of the broadcast or reshaped value; empty where they are merged."""
    before, after = value.operands[0].shape.dims, value.shape.dims
    if value.opcode == "broadcast":
        return dict(enumerate(value.message.dimensions))
    before_places = [place for place, size in enumerate(before) if size != 1]
    after_places = [place for place, size in enumerate(after) if size != 1]
    if [before[place] for place in before_places] != [after[place] for place in after_places]:
        return {}
    return dict(zip(before_places, after_places, strict=True))
