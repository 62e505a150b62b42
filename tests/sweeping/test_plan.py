"""The points of a sweep: what is asked for, in which order, and in which part of a job array."""

from __future__ import annotations

import json

import pytest

from roofline.errors import InputError
from roofline.sweeping.plan import Point, coarse_first, decode, encode, numbers, points, shard


def grid(batches: str = "1..8", seqs: str = "32..128", **alike: object) -> list[Point]:
    axes = numbers(batches, "batch"), numbers(seqs, "seq")
    return points(["bert"], ["torch", "jax"], ["infer"], ["default"], *axes, **alike)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("1,2,4..32", [1, 2, 4, 8, 16, 32]),
        ("3..10", [3, 6]),
        ("8..8", [8]),
        ("4,1,4", [4, 1]),
        ("", [None]),
    ],
)
def test_two_dots_double(text: str, read: list[int | None]) -> None:
    assert numbers(text, "batch") == read


@pytest.mark.parametrize("text", ["0", "a", "1..", "..4", "8..4", "-1", "1.5", "9" * 5000, "1" + "0" * 12, "1...4"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--batch"):
        numbers(text, "batch")


def test_points_are_all_combinations_and_those_of_a_cell_follow_each_other() -> None:
    every = grid()
    assert len(every) == 4 * 3 * 2
    assert [point.backend for point in every[:4]] == ["torch", "jax"] * 2
    assert every[0].key == Point(model="bert", backend="torch", batch=1, seq=32).key
    assert len({point.key for point in every}) == len(every)
    with pytest.raises(InputError, match="too many"):
        points(["m"] * 1000, ["b"] * 1000, ["infer"], ["default"], [1], [1])


def test_a_key_tells_all_options_apart() -> None:
    point = grid()[0]
    others = [grid(steps=5)[0], grid(threads=1)[0], grid(size="tiny")[0], grid(optimizer=False)[0], grid(rounds=2)[0]]
    assert len({one.key for one in (point, *others)}) == 6


def test_a_plan_is_read_as_it_was_written() -> None:
    every = grid(threads=2, size="tiny")
    assert decode(encode(every), "plan") == every
    assert json.loads(encode(every).splitlines()[0])["key"] == every[0].key
    # A length of 401 digits is no length, and no float either.
    long = b'{"model": "bert", "backend": "torch", "seq": 1' + b"0" * 400 + b"}"
    # Twelve digits are one, thirteen are none: what --batch refuses is refused in a plan too.
    most, more = (b'{"model": "bert", "backend": "torch", "batch": %d}' % number for number in (10**12 - 1, 10**12))
    assert [point.batch for point in decode(most, "plan")] == [10**12 - 1]
    for damaged in (long, more, b"{", b"[]\n", b"\xff\n", b"[" * 100_000, b'{"model": 3, "backend": "torch"}\n'):
        with pytest.raises(InputError, match="Line 1 of plan"):
            decode(damaged, "plan")


def test_corners_come_first_and_then_the_middles_of_the_largest_gaps() -> None:
    """Five batches and two lengths: 1 and 16, then 4, then 2 and 8; both backends of a cell together."""
    ordered = coarse_first(grid("1..16", "32,64"))
    assert [point.batch for point in ordered[::4]] == [1, 16, 4, 2, 8]
    assert [point.backend for point in ordered] == ["torch", "jax"] * 10
    assert sorted(ordered, key=lambda point: point.key) == sorted(grid("1..16", "32,64"), key=lambda point: point.key)


def test_parts_of_a_plan_hold_each_cell_once() -> None:
    every = grid()
    parts = [shard(every, f"{part}/5") for part in range(1, 6)]
    assert sorted(point.key for part in parts for point in part) == sorted(point.key for point in every)
    cells = [{point.without("backend") for point in part} for part in parts]
    assert sum(map(len, cells)) == 12
    for wrong in ("0/3", "4/3", "1", "a/b", "1/0", "1/" + "9" * 5000):
        with pytest.raises(InputError, match="--shard"):
            shard(every, wrong)
