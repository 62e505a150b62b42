"""Texts from elsewhere in what is printed."""

from __future__ import annotations

from pathlib import Path

from roofline.units import cut, printable, quote, seconds_between


def test_what_acts_on_a_terminal_is_replaced_by_a_question_mark() -> None:
    assert printable(Path("a\x1b[31m\n‮é b")) == "a?[31m??é b"


def test_a_text_in_an_error_is_its_beginning() -> None:
    assert quote("5%\x1b") == r"'5%\x1b'"
    assert quote("x" * 40) == repr("x" * 40)
    assert quote("x" * 41) == repr("x" * 39 + "…")
    assert (quote(None), quote(7)) == ("None", "7")


def test_a_text_is_cut_to_a_width_at_either_end() -> None:
    assert [cut("layer.11", width) for width in (8, 7, 1)] == ["layer.11", "layer.…", "…"]
    assert [cut("layer.11", width, keep_end=True) for width in (8, 7, 1)] == ["layer.11", "…yer.11", "…"]


def test_two_times_around_zero_have_one_unit() -> None:
    assert seconds_between(-224e-6, 10e-3) == "-0.224 to 10.0 ms"
    assert seconds_between(-5e-3, -1e-6) == "-5.00 to -0.00100 ms"
    assert seconds_between(900e-6, 2e-3) == "900 µs to 2.00 ms"
    assert seconds_between(1e-3, 2e-3) == "1.00–2.00 ms"
