"""Each point is left out once, with a tenth of the others, and what cannot be predicted is not counted."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

import sweep_predictions

from roofline.sweeping.prediction import MeasuredPoint


def test_a_step_that_follows_the_law_is_predicted_in_its_interval() -> None:
    """1 ms and 2 us per sample, every second one 1 % longer: of 12 batches both ends lie between no others."""
    known = {(2**n, 0): MeasuredPoint(1e-6 * 2**n, (1e-3 + 2e-6 * 2**n) * (1.01 if n % 2 else 1.0)) for n in range(12)}
    estimates = sweep_predictions.predictions(known)
    assert set(estimates) == {(2**n, 0) for n in range(1, 11)}
    name, measured, predicted, middle, _, within = sweep_predictions.row("toy", known).strip("| ").split(" | ")
    assert (name, measured, predicted, within) == ("toy", "12", "10", "10 of 10")
    assert 0 < float(middle.removesuffix(" %")) <= 1


def test_of_nothing_there_is_no_median() -> None:
    assert sweep_predictions.row("toy", {}) == "| toy | 0 | 0 | – | – | 0 of 0 |"
