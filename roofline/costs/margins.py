"""Edges of arrays that are filled up with zeros, or cut off: (elements before, elements behind) of each dimension."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, takewhile
from operator import mul

Edges = tuple[int, int]
Margins = tuple[Edges, ...]


def common(first: Edges, second: Edges) -> int:
    """Return how many elements lie in both edges of one dimension."""
    return min(first[0], second[0]) + min(first[1], second[1])


def added(first: Margins, second: Margins) -> Margins:
    """Return the edges of an array that was filled up twice."""
    return tuple((a + c, b + d) for (a, b), (c, d) in zip(first, second, strict=True))


def undone(cut: Edges, zeros: Edges, step: int) -> Edges:
    """Return results of a convolution that are cut off of one dimension, as far as padding added them at that edge.

    zeros: what the padding put around the image. step: the elements of the image from one result to the next.
    """
    low, high = (lost if lost * step <= around else 0 for lost, around in zip(cut, zeros, strict=True))
    return low, high


def inverted(order: Sequence[int]) -> tuple[int, ...]:
    """Return the order of dimensions that undoes another; empty where that is none."""
    is_order = sorted(order) == list(range(len(order)))
    return tuple(sorted(range(len(order)), key=order.__getitem__)) if is_order else ()


def reshaped(margins: Margins, sizes: Sequence[int | None], result: Sequence[int | None]) -> Margins | None:
    """Return the edges of an array in another shape; None where dimensions with edges are joined or split.

    sizes, result: its dimensions before and after; None: not known.
    """
    edges: list[Edges] = []
    place = behind = 0
    while behind < len(result):
        size = result[behind]
        while place < len(sizes) and sizes[place] != size and sizes[place] == 1:
            place += 1
        if place < len(sizes) and sizes[place] == size:
            edges.append(margins[place])
            place, behind = place + 1, behind + 1
        elif size == 1:
            edges.append((0, 0))
            behind += 1
        else:
            joined, split = _same_elements(sizes[place:], result[behind:])
            if not joined or any(edge != (0, 0) for edge in margins[place : place + joined]):
                return None
            edges += [(0, 0)] * split
            place, behind = place + joined, behind + split
    return tuple(edges) if all(size == 1 for size in sizes[place:]) else None


def _same_elements(sizes: Sequence[int | None], result: Sequence[int | None]) -> tuple[int, int]:
    """Return how many dimensions of two shapes, from the first on, have as many elements; (0, 0) where none do."""
    known = (takewhile(lambda size: size is not None, shape) for shape in (sizes, result))
    before, after = (list(accumulate(shape, mul)) for shape in known)
    total = next((total for total in before if total in after), None)
    return (0, 0) if total is None else (before.index(total) + 1, after.index(total) + 1)
