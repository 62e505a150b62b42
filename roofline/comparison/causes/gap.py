"""What shares of a run's gap are known to be the host's dispatching, or to have another cause."""

from __future__ import annotations

from roofline.analysis.analysis import Analysis
from roofline.analysis.gap_causes import DISPATCH, seconds_of


def dispatching(run: Analysis) -> float:
    """The share of a gap that is the host's dispatching: all of it, but for what is known to have another cause."""
    return max(0.0, share_of_gap(run, DISPATCH)) if run.gap_causes and run.gap else 1.0


def share_of_gap(run: Analysis, cause: str) -> float:
    """The share of a gap that the causes which begin with `cause` have; 0 where causes are not known."""
    return seconds_of(cause, run.gap_causes) / run.gap if run.gap else 0.0
