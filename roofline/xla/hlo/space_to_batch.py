"""Count what is asked of a dilated convolution that TensorFlow writes without holes, of an image cut into pieces.

An image is filled up with zeros to a multiple of the dilation, and each offset becomes an image of its own: `pad`,
`reshape`, `transpose`, `reshape`. The results are put together the other way round, and what is too much is cut off.
The gradients take and make such pieces, too (`tensorflow.graph.space_to_batch`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roofline.xla.hlo.module import Instruction, Module
from roofline.xla.hlo.origin import COPIES, MAX_CHAIN, Path, origin
from roofline.xla.hlo.zero_padding import cut_off, filled_up, users


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Cut one dimension of an array: element q of the piece at offset o is element q * block + o of the whole.

    Of the whole what lies in [begin, end) is meant.
    """

    block: int
    begin: int
    end: int

    def meant(self, element: NDArray[np.int64], offset: int) -> NDArray[np.bool_]:
        """Return which elements of the piece at an offset are meant."""
        at = element * self.block + offset
        return (self.begin <= at) & (at < self.end)


#: By dimension of an array.
_Cut = dict[int, _Pieces]


def share(module: Module, convolution: Instruction, path: Path) -> float | None:
    """Return the share of a convolution of pieces that is asked for; None where it is none.

    path: the control instructions around it, outermost first.
    """
    if convolution.message.conv_kind:
        return None
    image, kernel = (_taken(operand, path) for operand in convolution.operands[:2])
    result = _put_together(module, convolution)
    if image is None or (kernel is None and result is None):
        return None
    numbers = convolution.message.convolution_dimension_numbers
    places = zip(
        convolution.message.window.dimensions,
        numbers.input_spatial_dimensions,
        numbers.kernel_spatial_dimensions,
        numbers.output_spatial_dimensions,
        strict=True,
    )
    asked = executed = 1
    for window, of_image, of_kernel, of_result in places:
        sizes = convolution.operands[0].shape.dims[of_image], convolution.first.dims[of_result]
        cuts = [(image or {}).get(of_image), (kernel or {}).get(of_kernel), (result or {}).get(of_result)]
        blocks = {cut.block for cut in cuts if cut is not None}
        if len(blocks) > 1:
            return None
        block = max(blocks, default=1)
        executed *= block * _pairs(window, sizes, (None, None, None), 0)
        asked *= sum(_pairs(window, sizes, cuts, offset) for offset in range(block))
    return asked / executed if executed else None


def _pairs(window: Any, sizes: tuple[int, int], cuts: Sequence[_Pieces | None], offset: int) -> int:
    """Count the elements of image, kernel and result that meet along one dimension, as far as all are meant."""
    result, kernel = np.arange(sizes[1])[:, None], np.arange(window.size)[None]
    spread = window.base_dilation or 1
    at = result * (window.stride or 1) + kernel * (window.window_dilation or 1) - window.padding_low
    meet = (at >= 0) & (at % spread == 0) & (at // spread < sizes[0])
    tap = window.size - 1 - kernel if window.window_reversal else kernel
    for cut, element in zip(cuts, (at // spread, tap, result), strict=True):
        if cut is not None:
            meet = meet & cut.meant(element, offset)
    return int(meet.sum())


def _taken(value: Instruction, path: Path) -> _Cut | None:
    """Return how an operand was cut into pieces; None where it was not."""
    value, path = origin(value, path)
    merged, inner = value, path
    while merged.opcode == "reshape":
        cut = _split(value, merged, inner)
        if cut is not None or not _is_same(merged, merged.operands[0]):
            return cut
        merged, inner = origin(merged.operands[0], inner)
    return None


def _split(value: Instruction, merged: Instruction, path: Path) -> _Cut | None:
    """Return how a `reshape` that makes one dimension of the batch and the offsets cuts a value, behind its others."""
    turned, path = origin(merged.operands[0], path)
    if turned.opcode != "transpose":
        return None
    split, path = origin(turned.operands[0], path)
    if split.opcode != "reshape":
        return None
    source, path = origin(split.operands[0], path)
    margins = filled_up(source, path) or ((0, 0),) * len(source.shape.dims)
    return _by_place(value, merged, split, source, margins)


def _put_together(module: Module, convolution: Instruction) -> _Cut | None:
    """Return how pieces of a result are put together; None where they are not."""
    merged = convolution
    for _ in range(MAX_CHAIN):
        split = _only_user(module, merged)
        if split is None or split.opcode not in COPIES | {"reshape"}:
            return None
        cut = _joined(module, convolution, merged, split) if split.opcode == "reshape" else None
        if cut is not None or not (split.opcode in COPIES or _is_same(split, merged)):
            return cut
        merged = split
    return None


def _joined(module: Module, convolution: Instruction, merged: Instruction, split: Instruction) -> _Cut | None:
    """Return how pieces are put together from where a `reshape` makes batch and offsets of one dimension."""
    turned = _only_user(module, split)
    if turned is None or turned.opcode != "transpose":
        return None
    restored = _only_user(module, turned)
    if restored is None or restored.opcode != "reshape":
        return None
    margins = cut_off(module, restored) or ((0, 0),) * len(restored.shape.dims)
    return _by_place(convolution, merged, turned, restored, margins)


def _only_user(module: Module, value: Instruction) -> Instruction | None:
    takers = {user for user, _ in users(module).get(value, ())}
    return takers.pop() if len(takers) == 1 else None


def _by_place(
    value: Instruction, merged: Instruction, split: Instruction, array: Instruction, margins: Sequence[tuple[int, int]]
) -> _Cut | None:
    """Return the cut by dimension of `value`, which is `merged` with dimensions of one element more or less.

    split: the array with the number of elements in a piece before the number of pieces, dimension by dimension.
    """
    pieces, sizes = merged.shape.dims, array.shape.dims
    if (
        len(pieces) != len(sizes)
        or len(sizes) < 2
        or any(size % max(1, piece) for size, piece in zip(sizes[1:], pieces[1:], strict=False))
    ):
        return None
    blocks = [size // max(1, piece) for size, piece in zip(sizes[1:], pieces[1:], strict=True)]
    expected = [sizes[0], *(number for pair in zip(pieces[1:], blocks, strict=True) for number in pair)]
    if (
        prod(blocks) < 2
        or pieces[0] != sizes[0] * prod(blocks)
        or _ones_left_out(split) != [n for n in expected if n > 1]
    ):
        return None
    cuts: _Cut = {}
    # From behind: TensorFlow makes an image of a sequence by a height of one in front of its places, which may be one.
    places = iter(reversed(range(len(value.shape.dims))))
    for dimension, size in reversed(list(enumerate(pieces))):
        place = next((at for at in places if value.shape.dims[at] == size), None)
        if place is None:
            return None
        if dimension:
            low, high = margins[dimension]
            cuts[place] = _Pieces(blocks[dimension - 1], low, sizes[dimension] - high)
    return cuts


def _is_same(first: Instruction, second: Instruction) -> bool:
    return _ones_left_out(first) == _ones_left_out(second)


def _ones_left_out(value: Instruction) -> list[int]:
    return [size for size in value.shape.dims if size != 1]
