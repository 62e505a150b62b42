"""Edges of arrays that are filled up with zeros, or cut off."""

from __future__ import annotations

import pytest

from roofline.costs import margins


@pytest.mark.parametrize(
    ("cut", "zeros", "step", "undone"),
    [
        ((1, 1), (1, 1), 1, (1, 1)),
        ((1, 2), (1, 1), 1, (1, 0)),  # behind, more than the zero added
        ((1, 1), (2, 1), 2, (1, 0)),  # a result for every second element
        ((0, 1), (3, 0), 1, (0, 0)),
    ],
)
def test_what_is_cut_off_is_undone_where_padding_added_as_much(cut, zeros, step, undone) -> None:
    assert margins.undone(cut, zeros, step) == undone


def test_edges_of_what_was_filled_up_twice_add_up() -> None:
    assert margins.added(((1, 2), (0, 0)), ((3, 0), (0, 1))) == ((4, 2), (0, 1))


#: Edges of the second of three dimensions, or of none.
EDGES, NONE = ((0, 0), (1, 2), (0, 0)), ((0, 0), (0, 0), (0, 0))


@pytest.mark.parametrize(
    ("edges", "sizes", "result", "reshaped"),
    [
        (EDGES, (1, 7, 6), (7, 6, 1), ((1, 2), (0, 0), (0, 0))),
        (EDGES, (4, 7, 6), (2, 2, 7, 6), ((0, 0), (0, 0), (1, 2), (0, 0))),
        (EDGES, (4, 7, 6), (2, 2, 7, 3, 2), ((0, 0), (0, 0), (1, 2), (0, 0), (0, 0))),
        (EDGES, (4, 7, 6), (28, 6), None),  # the edges are no longer edges
        (EDGES, (4, 7, 6), (4, 42), None),
        (EDGES, (None, 7, 6), (None, 7, 2, 3), ((0, 0), (1, 2), (0, 0), (0, 0))),
        (EDGES, (None, 7, 6), (2, 7, 6), None),  # nobody knows how the first is split
        (NONE, (4, 7, 6), (14, 12), ((0, 0), (0, 0))),
        (NONE, (4, 7, 6), (5, 7), None),  # damage: other elements
    ],
)
def test_edges_stay_where_dimensions_beside_them_are_joined_or_split(edges, sizes, result, reshaped) -> None:
    assert margins.reshaped(edges, sizes, result) == reshaped


def test_the_order_that_undoes_a_transpose() -> None:
    assert margins.inverted((2, 0, 1)) == (1, 2, 0)
    assert margins.inverted((0, 0)) == ()  # no order: damage
