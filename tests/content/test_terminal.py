"""Columns, rules and facts: what every text of the command line is laid out with."""

from __future__ import annotations

from roofline.content import terminal

ROWS = [("name", "time", ""), ("softmax", "9 µs", "passed"), ("matmul", "12.5 ms", "")]


def test_words_begin_and_numbers_end_at_one_place() -> None:
    assert terminal.columns(ROWS, left_aligned=(0, 2)) == [
        "name        time",
        "softmax     9 µs  passed",
        "matmul   12.5 ms",
    ]
    assert terminal.widths(ROWS) == [7, 7, 6]


def test_a_column_has_its_least_width_and_grows_with_a_longer_cell() -> None:
    assert terminal.columns([("a", "1")], left_aligned=(0,), separator=" ", least=(3, 4)) == ["a      1"]
    assert terminal.columns([("a", "12345")], left_aligned=(0,), separator=" ", least=(3, 4)) == ["a   12345"]


def test_rules_are_as_wide_as_the_widest_line_and_stand_before_the_named_ones() -> None:
    assert terminal.ruled(["head", "longer", "sum"], 1, -1) == ["head", "──────", "longer", "──────", "sum"]
    assert terminal.ruled(["head", "sum"], 1, -1) == ["head", "────", "sum"]


def test_the_words_of_a_fact_stay_beside_its_name() -> None:
    first, second = terminal.facts([("steps", "word " * 30)])
    assert first.startswith("steps        word")
    assert len(first) <= terminal.WIDTH
    assert second.startswith(" " * 13 + "word")


def test_no_line_ends_between_a_number_and_its_unit() -> None:
    page = terminal.Page(width=12)
    assert terminal.wrapped("of 43.0 ms a step", page) == ["of 43.0 ms a", "step"]
    assert terminal.wrapped("nearly 43.0 ms", page) == ["nearly", "43.0 ms"]
    assert terminal.broken("- nearly 43 % off", page, "  ") == ["- nearly", "  43 % off"]
    assert terminal.wrapped("took 43 steps", terminal.Page(width=8)) == ["took 43", "steps"], "no unit"
