"""Whole numbers in texts that anybody wrote."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import handmade
import pytest
from msgspec.structs import replace

from roofline.core.numerals import whole
from roofline.core.schema import save


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("007", 7),
        ("9" * 18, 10**18 - 1),
        *((text, None) for text in ("", "-1", "+1", "1.0", " 1", "1_0", "²", "٣", "9" * 19, "9" * 5000)),
    ],
)
def test_whole_numbers(text: str, number: int | None) -> None:
    assert whole(text) == number


DIGITS = "9" * 5000


@pytest.mark.parametrize(
    "words",
    [
        ("show", "p.json", "--details"),
        ("show", "p.json", "--by", "scope"),
        ("check", "p.json", "p.json"),
        ("compare", "p.json", "p.json"),
        ("whatif", "p.json", "--device", "h100-sxm"),
    ],
    ids=lambda words: words[0],
)
def test_numbers_of_thousands_of_digits_in_a_profile(words: tuple[str, ...], tmp_path: Path) -> None:
    """Python refuses to read such a number: it is none."""
    names = ("threads", "cpus", "rank", "ranks")
    device = replace(handmade.profile().device, conditions={"highest clock": f"{DIGITS} MHz"})
    profile = handmade.profile(
        environment=dict.fromkeys(names, DIGITS),
        device=device,
        scopes=tuple(f"{scope}/layer.{DIGITS}{number}" for number, scope in enumerate(handmade.profile().scopes)),
        switches={"passes": DIGITS},
        conditions={"sm_clock_least": 1e9},
    )
    save(profile, tmp_path / "p.json")
    done = subprocess.run(
        [sys.executable, "-m", "roofline", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
