"""Views of one storage that share elements: what one argument of a call reads, another need not read again."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor

from roofline.costs import strides
from roofline.costs.calls import Tensor
from roofline.costs.counted import Access
from roofline.costs.dtypes import DTYPES

#: (size, stride) of each dimension with several elements, those of the longest stride first.
_Box = tuple[tuple[int, int], ...]


def read_once(reads: Sequence[Access], arguments: Sequence[Tensor]) -> tuple[Access, ...]:
    """The reads of a call without what an earlier one of them, of the same storage, holds already.

    Views are compared that have the same strides, as shifted windows have. arguments: by the numbers in `reads`.
    """
    if len({arguments[number].storage for _, number, _ in reads}) == len(reads):
        return tuple(reads)
    unshared: list[Access] = []
    earlier: list[Tensor] = []
    for is_input, number, size in reads:
        tensor = arguments[number]
        element = DTYPES.get(tensor.dtype, ("", 0))[1]
        if size == tensor.distinct * element:  # all of it, and not some rows
            size -= element * max((_shared(tensor, earlier_tensor) for earlier_tensor in earlier), default=0)
            earlier.append(tensor)
        unshared.append((is_input, number, float(size)))
    return tuple(unshared)


def _shared(tensor: Tensor, other_tensor: Tensor) -> int:
    """Count the elements that two tensors have in common."""
    if (
        tensor.storage < 0
        or tensor.storage != other_tensor.storage
        or tensor.dtype != other_tensor.dtype
        or not (tensor.numel and other_tensor.numel)
    ):
        return 0
    a, b = _box(tensor), _box(other_tensor)
    if a is None or b is None or [stride for _, stride in a] != [stride for _, stride in b]:
        return 0
    return _overlap(other_tensor.offset - tensor.offset, a, b)


def _overlap(distance: int, box: _Box, other_box: _Box) -> int:
    """Count the places that two boxes of equal strides share; distance: from the first of one to that of the other."""
    if not box:
        return int(distance == 0)
    (size, stride), (other_size, _) = box[0], other_box[0]
    number = 0
    for shift in {floor(distance / stride), ceil(distance / stride)}:
        common = min(size, shift + other_size) - max(0, shift)
        if common > 0:
            number += common * _overlap(distance - shift * stride, box[1:], other_box[1:])
    return number


def _box(tensor: Tensor) -> _Box | None:
    """None of a tensor whose strides are not known, or whose elements lie in places that repeat without a rule."""
    if tensor.stride is None:
        return None
    dimensions = strides.merged(tensor.shape, tensor.stride)
    return dimensions[::-1] if strides.is_nested(dimensions) else None
