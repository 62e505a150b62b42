"""What is said of exceptions, whoever raised them."""

from __future__ import annotations

import pytest

from roofline.errors import DefectError, MeasurementError, defect, from_exit_code, reason, text_of


class Mute(Exception):
    """An exception whose text cannot be made."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("error", "text", "line"),
    [
        (ValueError("no shape"), "no shape", "ValueError: no shape"),
        (ValueError("\n  first\nsecond"), "\n  first\nsecond", "ValueError: first"),
        (KeyError(), "", "KeyError"),
        (Mute(), "", "Mute"),
    ],
)
def test_the_text_of_an_exception(error: Exception, text: str, line: str) -> None:
    assert (text_of(error), reason(error)) == (text, line)


def test_a_defect_says_what_was_raised_and_where() -> None:
    try:
        raise Mute
    except Mute as error:
        made = defect(error)
        line = error.__traceback__.tb_lineno if error.__traceback__ else 0
    assert (made.exit_code, made.__cause__.__class__) == (70, Mute)
    assert f"(Mute at test_errors.py:{line})" in str(made)


def test_codes_are_those_of_their_errors() -> None:
    assert type(from_exit_code(70, "text")) is DefectError
    assert type(from_exit_code(99, "text")) is MeasurementError
