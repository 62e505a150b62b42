"""Edges of arrays that are filled up with zeros, or cut off: (elements before, elements behind) of each dimension."""

from __future__ import annotations

from collections.abc import Sequence

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


def reshaped(margins: Margins, sizes: Sequence[int | None], result: Sequence[int | None]) -> Margins | None:
    """Return the edges of an array whose dimensions of one element are put in or left out; None of any other reshape.

    sizes, result: its dimensions before and after; None: not known.
    """
    edges: list[Edges] = []
    place = 0
    for size in result:
        while place < len(sizes) and sizes[place] != size and sizes[place] == 1:
            place += 1
        if place < len(sizes) and sizes[place] == size:
            edges.append(margins[place])
            place += 1
        elif size == 1:
            edges.append((0, 0))
        else:
            return None
    return tuple(edges) if all(size == 1 for size in sizes[place:]) else None
