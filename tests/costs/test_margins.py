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
