"""Rows of a step with as many different kernels as ops: none is held against all others."""

from __future__ import annotations

from collections.abc import Iterator

from roofline.core.cost import unknown
from roofline.costs.counted import Costed
from roofline.recording.rows import _relative_addresses, _Tables


class Names(dict[str, int]):
    """Names of which each can be looked up; to go through all of them for each op takes their square."""

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("all names are gone through")


def test_the_names_of_kernels_are_looked_up() -> None:
    table = _Tables({}, "cuda", ("first", "Memcpy HtoD (Pageable -> Device)"))
    table._kernels = Names()
    costed = Costed(unknown("not known"), "other", "other", "", None, None)
    found = [table.signature("op", costed, table.renamed([(number, 5)])) for number in (1, 0, 1)]
    assert found == [0, 1, 0]
    assert [one.op_class for one in table.rows().signatures] == ["transfer", "other"]
    assert table.rows().kernels == ("Memcpy HtoD (Pageable -> Device)", "first")


def test_addresses_are_counted_from_a_page_and_left_out_where_most_are_not_known() -> None:
    # The lowest lies 16 bytes behind the begin of a page of 4096.
    assert _relative_addresses([7 * 4096 + 16, None, 9 * 4096]) == (16, None, 2 * 4096)
    assert _relative_addresses([4096, None]) == ()
    assert _relative_addresses([]) == ()
