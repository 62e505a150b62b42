"""Copies and fills that no op launched: what they move is in their cost and in their buffers alike."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from roofline.core.cost import Cost
from roofline.costs import custom
from roofline.costs.calls import Call
from roofline.importing.work import foreign_calls
from roofline.traces.kineto import reader


@pytest.mark.parametrize(
    ("name", "category", "read", "written"),
    [
        ("Memset (Device)", "gpu_memset", 0, 4096),
        ("Memcpy DtoD (Device -> Device)", "gpu_memcpy", 4096, 4096),
        ("Memcpy HtoD (Pageable -> Device)", "gpu_memcpy", 0, 4096),
        ("Memcpy DtoH (Device -> Pageable)", "gpu_memcpy", 4096, 0),
    ],
)
def test_a_lone_copy_or_fill_touches_what_it_moves(make_kineto, name, category, read, written):
    made = make_kineto.Trace()
    made.copy(name, 10, 14, 1, 4096)
    made.events[0]["cat"] = category
    costed = foreign_calls.lone(reader.read(made.write()), 0)
    assert (costed.cost.bytes_read, costed.cost.bytes_written) == (read, written)
    assert sum(size for _, _, size in costed.reads) == read
    assert sum(size for _, _, size in costed.writes) == written


def test_bytes_of_a_formula_that_no_recorded_tensor_holds_are_moved_all_the_same():
    costed = custom.cost(
        Call("mine::gather", None, (3,)), lambda rows: Cost(bytes_read=64.0, bytes_written=32.0), "other"
    )
    assert [size for _, _, size in costed.reads] == [64.0]
    assert [size for _, _, size in costed.writes] == [32.0]
