"""Projections against what ran: docs/whatif.md says what they come to, and what they rest on is what is fitted."""

from __future__ import annotations

import math
import statistics
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

import projection_fit
from projection_fit import PAGE, TRACES, Pair, Times, alone, fit, page, pairs, times
from projections import MARKS, projections, table

from roofline.projection.kernels import CODES, FITTED, Spread

#: The 95 % points of Student's t by degrees of freedom.
POINT = {2: 2.920, 3: 2.353, 4: 2.132}


@pytest.fixture(scope="module")
def recorded() -> list[Pair]:
    if not TRACES.is_dir():
        pytest.skip("the public traces are not here")
    return list(pairs(TRACES))


@pytest.fixture(scope="module")
def others() -> list[Times]:
    return list(alone())


def test_the_constants_are_what_is_fitted(recorded: list[Pair], others: list[Times]) -> None:
    rows = [*others, *(times_ for pair in recorded for times_ in times(pair))]
    assert fit(rows) == FITTED, "write them into roofline/projection/kernels.py"
    text = PAGE.read_text(encoding="utf-8")
    assert page(text, projection_fit.table(rows)) == text, "run `python benchmarks/projection_fit.py`"


def test_the_page_is_what_comes_out_and_holds(recorded: list[Pair], others: list[Times]) -> None:
    found = list(projections(recorded, others))
    text = PAGE.read_text(encoding="utf-8")
    assert page(text, table(found), MARKS) == text, "run `python benchmarks/projections.py`"
    assert sum(one.holds for one in found) >= 0.9 * len(found)
    # What one code is too slow another may be too fast: no step is further off, or less sure, than its matmuls alone.
    for change, spread in FITTED.spreads.items():
        chosen = [one for one in found if one.change == change]
        at = CODES.index("contraction")
        deviation, steps = spread.deviations[at], spread.values[at]
        told = steps if any(one.alone for one in chosen) else steps - 1  # by the step itself, or by the others
        assert statistics.median(abs(math.log1p(one.off)) for one in chosen) <= deviation
        assert statistics.median(math.log(one.width) for one in chosen) <= 2 * POINT[told] * deviation


def row(step: str, kinds: tuple[str, str], here: float, there: float) -> Times:
    """Matmuls of 1 s at the ceilings of both devices, half of the step."""
    return Times(
        step=step,
        change="gpu",
        kinds=kinds,
        name="contraction",
        run=f"{step} on {kinds[0]}",
        here=here,
        there=there,
        before=1.0,
        after=1.0,
        share=0.5,
    )


def both_ways(step: str, here: float, there: float) -> list[Times]:
    return [row(step, ("cuda", "rocm"), here, there), row(step, ("rocm", "cuda"), there, here)]


def test_a_fit_by_hand() -> None:
    # Runs that reach 1/2 and 1/8 on one kind, typically 1/4, and 1/3 and 1/12 on another, typically 1/6: what one step
    # reaches above or below the typical is 2 on both, so all is carried.
    found = fit([*both_ways("a", 2, 3), *both_ways("b", 8, 12)])
    assert found.typical == {
        "cuda": {"contraction": round(math.log(1 / 4), 2)},
        "rocm": {"contraction": round(math.log(1 / 6), 2)},
    }
    assert found.carried == 1
    # Left out, the other step says all but that: 3 / 2 of the time, which is right. By two steps of one code,
    # whose deviation stands for those of the others, which no step has.
    assert found.spreads == {"gpu": Spread((0, 0, 0), (0, 2, 0))}
    # Turned over, what is above on one is below on the other: nothing is carried. One step alone does not tell, so of
    # the other all is: 3 / 8 of the 2 s where 12 were measured, and so for each.
    found = fit([*both_ways("a", 2, 12), *both_ways("b", 8, 3)])
    assert found.carried == 0
    widest = round(math.log(16), 2)
    assert found.spreads == {"gpu": Spread((widest, widest, widest), (0, 2, 0))}
