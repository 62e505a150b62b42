"""Views of one storage that share elements: what one argument of a call reads, another need not read again."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor

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
    found: list[Access] = []
    earlier: list[Tensor] = []
    for is_input, number, size in reads:
        tensor = arguments[number]
        element = DTYPES.get(tensor.dtype, ("", 0))[1]
        if size == tensor.distinct * element:  # all of it, and not some rows
            size -= element * max((_shared(tensor, other) for other in earlier), default=0)
            earlier.append(tensor)
        found.append((is_input, number, float(size)))
    return tuple(found)


def _shared(one: Tensor, other: Tensor) -> int:
    """How many elements two tensors have in common."""
    if one.storage < 0 or one.storage != other.storage or one.dtype != other.dtype or not (one.numel and other.numel):
        return 0
    a, b = _box(one), _box(other)
    if a is None or b is None or [stride for _, stride in a] != [stride for _, stride in b]:
        return 0
    return _overlap(other.offset - one.offset, a, b)


def _overlap(apart: int, one: _Box, other: _Box) -> int:
    """How many places two boxes of equal strides have in common; apart: from the first of one to that of the other."""
    if not one:
        return int(apart == 0)
    (size, stride), (other_size, _) = one[0], other[0]
    number = 0
    for shift in {floor(apart / stride), ceil(apart / stride)}:
        common = min(size, shift + other_size) - max(0, shift)
        if common > 0:
            number += common * _overlap(apart - shift * stride, one[1:], other[1:])
    return number


def _box(tensor: Tensor) -> _Box | None:
    """None of a tensor whose strides are not known, or some of whose elements lie in one place."""
    if tensor.stride is None:
        return None
    pairs = [(size, stride) for size, stride in zip(tensor.shape, tensor.stride, strict=True) if size > 1 and stride]
    pairs.sort(key=lambda pair: -pair[1])
    reach = 0
    for size, stride in reversed(pairs):
        if stride <= reach:
            return None
        reach += (size - 1) * stride
    return tuple(pairs)
