"""Limits as people write them."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from roofline.errors import InputError
from roofline.regression import limits_file
from roofline.regression.limits import Limit, Limits, count, points, share


@pytest.mark.parametrize(
    ("text", "value"),
    [("5%", 0.05), ("0.05", 0.05), (" 5 % ", 0.05), ("0", 0), (".5%", 0.005), ("200%", 2), ("100%", 1), ("1.%", 0.01)],
)
def test_shares(text: str, value: float) -> None:
    assert share(text, "--max-time") == Limit(pytest.approx(value))
    assert points(text, "--max-gap") == Limit(pytest.approx(value), absolute=True)


@pytest.mark.parametrize(("text", "limit"), [("0", Limit(0, True)), ("12", Limit(12, True)), ("5%", Limit(0.05))])
def test_counts(text: str, limit: Limit) -> None:
    assert count(text, "--max-kernels") == limit


@pytest.mark.parametrize("read", [share, points, count])
@pytest.mark.parametrize(
    "text",
    ["-5%", "-1", "nan", "NaN%", "inf", "1e9", "", "%", "five", "5%%", "٣", "1_0", "0x5", "9" * 400, "99999%", "5 5"],
)
def test_what_is_no_limit(read: Callable[[str, str], Limit], text: str) -> None:
    with pytest.raises(InputError, match=r"^--max-x .* (is no limit: give|is too large: give at most)") as raised:
        read(text, "--max-x")
    assert len(str(raised.value)) < 200
    assert raised.value.exit_code == 2


@pytest.mark.parametrize("read", [share, points])
def test_a_share_above_one_is_a_slip(read: Callable[[str, str], Limit]) -> None:
    with pytest.raises(InputError, match=r"^--max-x '5' would be 500 %: give 5% or 0\.05\.$"):
        read("5", "--max-x")
    with pytest.raises(InputError, match=r"'1\.5' would be 150 %: give 1\.5% or 0\.015\."):
        read("1.5", "--max-x")
    with pytest.raises(InputError, match=r"'1' would be 100 %: give 1% or 0\.01\."):
        read("1", "--max-x")


def test_a_part_of_a_kernel_is_no_limit() -> None:
    with pytest.raises(InputError, match="whole number"):
        count("0.5", "--max-kernels")


def test_a_growth_is_a_share_or_a_number() -> None:
    assert Limit(0.05).growth(10, 12) == pytest.approx(0.2)
    assert Limit(3, absolute=True).growth(10, 12) == 2
    assert (Limit(0.05).growth(0, 0), Limit(0.05).growth(0, 1)) == (0.0, math.inf)
    assert [Limit(3, absolute=True).allows(growth) for growth in (3, 4)] == [True, False]


def test_limits_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "limits.toml"
    file.write_text('time = "10%"\nbytes = 0.002 # a share\nkernels = 3\ngap = "2%"\n')
    assert limits_file.read(file) == Limits(
        time=Limit(0.1),
        bytes=Limit(0.002),
        kernels=Limit(3, absolute=True),
        gap=Limit(0.02, absolute=True),
        memory=Limits().memory,
    )
    file.write_text("")
    assert limits_file.read(file) == Limits()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("max-time = 0.1", "sets 'max-time', which is no limit; there are: time, bytes, kernels, gap, memory."),
        ("[check]\ntime = 0.1", "sets 'check', which is no limit"),
        ("time = 5", "time '5' would be 500 %: give 5% or 0.05"),
        ("time = 5.0", "time '5.0' would be 500 %"),
        ("time = true", "time is no limit: give a percentage"),
        ("time = [1]", "time is no limit: give a percentage"),
        ("time = nan", "time 'nan' is no limit"),
        ("kernels = 0.5", "kernels '0.5' is no limit: give a whole number"),
        ("kernels = -1", "kernels '-1' is no limit"),
        ("time = 1e400", "time '1e400' is no limit"),
        ("time", "is not a file of limits"),
        ("time = " + "9" * 5000, "is not a file of limits"),
        ("time = 0x" + "f" * 5000, "time 'an integer of some 6021 digits' is no limit"),
        ('"\\u001b[31m" = 1', "sets '\\x1b[31m', which is no limit"),
    ],
)
def test_what_a_file_of_limits_cannot_say(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "limits.toml").write_text(text)
    with pytest.raises(InputError) as raised:
        limits_file.read(tmp_path / "limits.toml")
    assert sentence in str(raised.value)
