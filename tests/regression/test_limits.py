"""Limits as people write them."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from roofline.errors import InputError
from roofline.regression.limits import Limit, count, points, share


@pytest.mark.parametrize(
    ("text", "value"),
    [("5%", 0.05), ("0.05", 0.05), (" 5 % ", 0.05), ("0", 0), (".5%", 0.005), ("2", 2), ("1.%", 0.01)],
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


def test_a_part_of_a_kernel_is_no_limit() -> None:
    with pytest.raises(InputError, match="whole number"):
        count("0.5", "--max-kernels")


def test_a_growth_is_a_share_or_a_number() -> None:
    assert Limit(0.05).growth(10, 12) == pytest.approx(0.2)
    assert Limit(3, absolute=True).growth(10, 12) == 2
    assert (Limit(0.05).growth(0, 0), Limit(0.05).growth(0, 1)) == (0.0, math.inf)
    assert [Limit(3, absolute=True).allows(growth) for growth in (3, 4)] == [True, False]
