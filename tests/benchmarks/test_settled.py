"""What `make settled` makes of the turns of planted pairs and nulls."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from plants import pairs
from settled import Result, judge

from roofline.comparison.turns import Paired

EQUAL = Paired(a=1e-3, b=1e-3, ci95=(-1e-4, 1e-4), number=3, busy=(False, False), hopeless=True)
BUSY = replace(EQUAL, busy=(True, False))
APART = replace(EQUAL, a=2e-3, ci95=(0.9e-3, 1.1e-3))


def results(*paired: Paired | None) -> list[Result]:
    null = pairs("first")["null-tiny"]
    return [Result(null, turns, None, 0.0) for turns in paired]


@pytest.mark.parametrize("part", ["planted", "nulls", "beside"])
def test_a_part_of_which_nothing_ran_fails(part: str) -> None:
    assert judge(part, results(None, None)) == ("0 of 0 right, 0 settled; 0 of 0 busy, 2 not run", True)


def test_a_busy_null_says_nothing_of_a_quiet_machine() -> None:
    assert judge("nulls", results(EQUAL, BUSY)) == ("1 of 1 right, 0 settled; 1 of 2 busy, 0 not run", False)
    assert judge("nulls", results(BUSY, BUSY))[1]
    assert judge("beside", results(BUSY, BUSY)) == ("2 of 2 right, 0 settled; 2 of 2 busy, 0 not run", False)
    assert judge("nulls", results(EQUAL, APART))[1]
