"""Places that the elements of a strided view lie in: fewer than there are elements where windows overlap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd, prod

#: (size, stride) of each dimension with several places, those of the shortest stride first.
Dimensions = tuple[tuple[int, int], ...]


def distinct(shape: Sequence[int], stride: Sequence[int]) -> int:
    """Count the places that a view has elements in.

    Exact but where dimensions overlap whose strides are no multiples of each other, three or more of them, or two that
    overlap what lies within them, too: then all places from the first to the last, or all elements where these are
    fewer.
    """
    if 0 in shape:
        return 0
    dimensions = merged(shape, stride)
    places, reach = 1, 0
    for group in _overlapping(dimensions):
        unit = gcd(*(step for _, step in group))
        own_places = prod(size for size, _ in group)
        if len(group) == 2 and unit > reach:
            # Element (a, b) lies where (a + other_step / unit, b - step / unit) does.
            (size, step), (other_size, other_step) = group
            own_places -= max(0, size - other_step // unit) * max(0, other_size - step // unit)
        elif len(group) > 1:
            return min(prod(size for size, _ in dimensions), 1 + _reach(dimensions))
        places *= own_places
        reach += _reach(group)
    return places


def merged(shape: Sequence[int], stride: Sequence[int]) -> Dimensions:
    """Describe a view without repeated places: windows that begin within each other, whole steps apart, are one."""
    dimensions: list[tuple[int, int]] = []
    steps = sorted((abs(step), size) for size, step in zip(shape, stride, strict=True) if size > 1 and step)
    for step, size in steps:
        inner_size, inner_step = dimensions[-1] if dimensions else (0, 1)
        if step % inner_step == 0 and step // inner_step < inner_size:
            dimensions[-1] = (inner_size + step // inner_step * (size - 1), inner_step)
        else:
            dimensions.append((size, step))
    return tuple(dimensions)


def is_nested(dimensions: Dimensions) -> bool:
    """Tell whether each dimension steps over all that lies within it, so that no two elements share a place."""
    return all(len(group) == 1 for group in _overlapping(dimensions))


def _overlapping(dimensions: Dimensions) -> Iterator[Dimensions]:
    """Split dimensions where one steps over all places before it."""
    begin = 0
    for number in range(1, len(dimensions)):
        if dimensions[number][1] > _reach(dimensions[:number]):
            yield dimensions[begin:number]
            begin = number
    if dimensions:
        yield dimensions[begin:]


def _reach(dimensions: Dimensions) -> int:
    """Return the distance from the first place to the last one."""
    return sum((size - 1) * step for size, step in dimensions)
