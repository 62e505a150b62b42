"""Gains: how much faster one form of a step is than another, measured in turns, and how that stands to a prediction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from roofline import units
from roofline.core import statistics

Interval = tuple[float, float]
#: resolved now: what was predicted may have been nothing, and is something. switch confirmed: what the switch gains in
#: its run is as predicted, and the runs' own difference is not resolved (`headline`). not resolved: the observed gain's
#: interval holds 0 and the prediction; not proven: something else changed too, or the step could not be run; no switch:
#: nothing can be turned for this cause.
Verdict = Literal[
    "confirmed",
    "switch confirmed",
    "resolved now",
    "smaller than predicted",
    "larger than predicted",
    "refuted",
    "not resolved",
    "not proven",
    "no switch",
]


def gain(original: Sequence[Sequence[float]], flipped: Sequence[Sequence[float]]) -> tuple[float, Interval | None]:
    """Observed gain of a step and its 95 % interval [s], from plain steps by round.

    The median over rounds of what the medians of a round differ by: both forms of a round see the same of a machine.
    Rounds and the steps in them are resampled. None below 3 steps of either.
    """
    rounds = list(zip(original, flipped, strict=True))
    seconds = float(np.median([np.median(a) - np.median(b) for a, b in rounds]))
    if min(sum(map(len, original)), sum(map(len, flipped))) < 3:
        return seconds, None
    rng = statistics.generator(*(times for pair in rounds for times in pair))
    drawn = np.stack(
        [statistics.medians(a, rng) - statistics.medians(b, rng) for a, b in rounds],
        axis=1,
    )
    chosen = rng.integers(0, len(rounds), (statistics.RESAMPLES, len(rounds)))
    low, high = np.percentile(np.median(drawn[np.arange(len(drawn))[:, None], chosen], axis=1), (2.5, 97.5))
    return seconds, (float(low), float(high))


def verdict(
    predicted: float, predicted_ci95: Interval | None, observed: float, observed_ci95: Interval | None
) -> Verdict:
    """How an observed gain stands to the predicted one; without both intervals nobody can tell."""
    if observed_ci95 is None or predicted_ci95 is None:
        return "not resolved"
    overlap = observed_ci95[0] <= predicted_ci95[1] and predicted_ci95[0] <= observed_ci95[1]
    if observed_ci95[0] <= 0 <= observed_ci95[1]:
        return "not resolved" if overlap else "refuted"
    if predicted_ci95[0] <= 0 <= predicted_ci95[1]:
        return "resolved now"
    if observed * predicted < 0:
        return "refuted"
    if overlap:
        return "confirmed"
    return "larger than predicted" if abs(observed) > abs(predicted) else "smaller than predicted"


def spread(seconds: float, interval: Interval | None) -> str:
    """A gain in words: "3.10 ms (2.80 ms to 3.40 ms)"."""
    if interval is None:
        return units.seconds(seconds)
    return f"{units.seconds(seconds)} ({units.seconds(interval[0])} to {units.seconds(interval[1])})"
