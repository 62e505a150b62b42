"""Subtract the bare step from the function of a library that a benchmark timed, such as Keras's `fit`."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from roofline.core import statistics
from roofline.core.schema import Api, Wall


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """Data input, host time and what else: how much longer a step takes in the function [s]; less than 0: shorter.

    seconds: the mean of its steps less that of the plain steps. ci95: by resampling both; the plain steps that were
    timed again behind it are a second sample of the same, so that what the machine changed meanwhile is in it.
    input: of it, how long the function waited for its next batch; None where it hides that.
    """

    seconds: float
    ci95: tuple[float, float] | None
    input: float | None

    @property
    def resolved(self) -> bool:
        """Return whether the interval leaves 0 out."""
        return self.ci95 is not None and not self.ci95[0] <= 0 <= self.ci95[1]

    @property
    def rest(self) -> float | None:
        """Host time (callbacks, metrics, progress, Python), and what work the function does besides, as a Trainer does.

        None where it cannot be told from the data's.
        """
        return None if self.input is None else self.seconds - self.input


def between(api: Api, wall: Wall) -> Between:
    """Subtract the bare steps from those in the library's function."""
    return Between(
        seconds=fmean(api.steps) - fmean(wall.steps),
        ci95=statistics.mean_difference_interval(api.steps, wall.steps, api.after),
        input=api.waiting,
    )
