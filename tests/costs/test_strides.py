"""Places of strided views, against all of them listed."""

from __future__ import annotations

import itertools

import pytest

from roofline.costs.strides import distinct, is_nested, merged

#: shape, stride, places, and whether what is left when windows are joined repeats none.
VIEWS = [
    ((4, 3), (3, 1), 12, True),
    ((4, 3), (0, 1), 3, True),
    ((0, 3), (0, 1), 0, True),
    ((10, 7), (1, 1), 16, True),
    ((7, 8), (3, 1), 26, True),  # windows of 8, 3 apart
    ((5, 7, 8), (40, 3, 1), 5 * 26, True),  # of 5 rows of 40
    ((2, 6, 7, 3, 3), (100, 10, 1, 10, 1), 2 * 8 * 9, True),  # 3 x 3 of images of 8 x 9, in rows of 10
    ((6, 4), (2, 2), 9, True),
    ((5, 4), (3, 2), 20 - 3 * 1, False),  # (a, b) and (a + 2, b - 3) lie in one place
    ((2, 5, 4, 3), (90, 9, 6, 1), 2 * 17 * 3, False),  # of pixels of 3 channels
    ((2, 2), (5, 3), 4, True),
    ((), (), 1, True),
]


@pytest.mark.parametrize(("shape", "stride", "places", "nested"), VIEWS)
def test_distinct_places(shape: tuple[int, ...], stride: tuple[int, ...], places: int, nested: bool) -> None:
    assert distinct(shape, stride) == places == len(listed(shape, stride))
    joined = merged(shape, stride)
    assert is_nested(joined) is nested
    if places:
        assert listed([size for size, _ in joined], [step for _, step in joined]) == listed(shape, stride)


def test_what_overlaps_without_a_rule_has_at_most_its_elements_or_what_lies_between_them() -> None:
    """27 elements within 0 to 2 x (6 + 10 + 15), and 729 within 0 to 8 x 31, which leave 30 places out."""
    assert distinct((3, 3, 3), (6, 10, 15)) == 27 == len(listed((3, 3, 3), (6, 10, 15)))
    assert distinct((9, 9, 9), (6, 10, 15)) == 249 == len(listed((9, 9, 9), (6, 10, 15))) + 30


def listed(shape: tuple[int, ...] | list[int], stride: tuple[int, ...] | list[int]) -> set[int]:
    return {
        sum(number * step for number, step in zip(element, stride, strict=True))
        for element in itertools.product(*map(range, shape))
    }
