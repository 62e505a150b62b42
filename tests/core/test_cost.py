"""The algebra of costs: a sum is the work of both, unknown stays unknown."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from roofline.core.cost import Cost, matrix, unknown
from roofline.core.vocabulary import Quality

#: From the best to the worst.
QUALITIES = get_args(Quality)

# Whole numbers up to 2^40 add and multiply exactly in floating point, so equality can be demanded.
amounts = st.none() | st.integers(0, 2**40).map(float)
NAMES = ("model_flops", "flops", "useful_flops", "vector_flops", "int_ops", "bytes_read", "bytes_written")
costs = st.builds(
    Cost,
    **dict.fromkeys(NAMES, amounts),
    functions=st.none() | st.dictionaries(st.sampled_from(["exp", "erf", "sqrt"]), st.integers(0, 2**40).map(float)),
    quality=st.sampled_from(QUALITIES),
    note=st.sampled_from(["", "a", "b"]),
)


def work(cost: Cost) -> dict[str, object]:
    """Everything but the note, whose parts stand in the order they were met."""
    return asdict(replace(cost, note=""))


@given(costs, costs)
def test_addition_commutes(a: Cost, b: Cost) -> None:
    assert work(a + b) == work(b + a)


@given(costs, costs, costs)
def test_addition_associates(a: Cost, b: Cost, c: Cost) -> None:
    assert work((a + b) + c) == work(a + (b + c))


@given(costs)
def test_no_work_changes_nothing(a: Cost) -> None:
    assert a + Cost() == a


@given(costs, costs)
def test_unknown_stays_unknown(a: Cost, b: Cost) -> None:
    both = a + b
    for name in (*NAMES, "functions"):
        either = getattr(a, name) is None or getattr(b, name) is None
        assert (getattr(both, name) is None) == either
    assert 3 * unknown("why") == unknown("why")


@given(costs, costs, st.integers(0, 1000))
def test_multiplication_distributes(a: Cost, b: Cost, n: int) -> None:
    assert n * (a + b) == n * a + n * b


@given(costs, st.integers(0, 5))
def test_multiplication_is_repeated_addition(a: Cost, n: int) -> None:
    total = 0 * a
    for _ in range(n):
        total = total + a
    assert work(n * a) == work(total)
    assert a * n == n * a


@given(costs, costs)
def test_the_worse_quality_wins(a: Cost, b: Cost) -> None:
    worst = max(QUALITIES.index(a.quality), QUALITIES.index(b.quality))
    assert (a + b).quality == QUALITIES[worst]


def test_notes_are_kept_once() -> None:
    a, b = Cost(note="padded"), Cost(note="two passes")
    assert (a + b).note == "padded; two passes"
    assert (a + a).note == "padded"


def test_matrix_work() -> None:
    assert matrix(10.0) == Cost(model_flops=10.0, flops=10.0, useful_flops=10.0)
    # padded from 10 to 12; half of what ran is masked out
    assert matrix(10.0, 12.0, 6.0) == Cost(model_flops=10.0, flops=12.0, useful_flops=6.0)
    assert matrix(10.0, 12.0).useful_flops == 12.0


def test_intensity() -> None:
    # (8 matrix + 2 vector) FLOP / (3 read + 2 written) B
    assert Cost(flops=8.0, vector_flops=2.0, bytes_read=3.0, bytes_written=2.0).intensity == 2.0
    assert Cost(flops=8.0).intensity is None  # no traffic
    assert Cost(flops=None, bytes_read=3.0).intensity is None
    assert unknown("why").intensity is None


@pytest.mark.parametrize("name", ["flops", "vector_flops", "functions"])
def test_flops_are_known_only_together(name: str) -> None:
    assert Cost().flops_known
    assert not Cost(**{name: None}).flops_known
