"""Projections against what ran: steps that were recorded on two devices, each carried to the other.

python benchmarks/projections.py [TRACES]     write the table of docs/whatif.md anew

Of each projection, all is fitted on other steps (projection_fit.py, which also says where the runs come from), but the
spread where only one other step would tell it.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from projection_fit import CHANGES, PAGE, TRACES, Pair, Times, alone, fit, page, pairs, times

from roofline.analysis.analysis import Analysis
from roofline.content.wording import counted
from roofline.projection.devices import Change
from roofline.projection.kernels import Fitted
from roofline.projection.project import project

MARKS = ("<!-- written by benchmarks/projections.py -->", "<!-- to here, projections -->")
COLUMNS = ("step", "from", "to", "ran here", "projected", "range", "width", "ran there", "off", "in the range")


@dataclass(frozen=True, slots=True)
class Projection:
    """One step carried from one device to another, and what it took there: times of its ops per step [s].

    alone: the width of the range by the one other step of this change, where the spread is fitted with this step, too.
    """

    step: str
    change: Change
    here: str
    there: str
    before: float
    projected: float
    interval: tuple[float, float]
    measured: float
    alone: float | None

    @property
    def off(self) -> float:
        """How much more was projected than was measured."""
        return self.projected / self.measured - 1

    @property
    def holds(self) -> bool:
        """Whether the range holds what was measured."""
        return self.interval[0] <= self.measured <= self.interval[1]

    @property
    def width(self) -> float:
        """The range's end over its start."""
        return self.interval[1] / self.interval[0]


def projections(recorded: Sequence[Pair], others: Sequence[Times]) -> Iterator[Projection]:
    """Project all that can be held against a measurement, both ways.

    others: times of steps that ran on one device.
    """
    every = [(pair, list(times(pair))) for pair in recorded]
    rows = [*others, *(row for _, found in every for row in found)]
    spreads = fit(rows).spreads
    without = {step: fit([row for row in rows if row.step != step]) for step in {pair.step for pair, _ in every}}
    for pair, found in every:
        change = found[0].change
        assert change is not None
        fitted = without[pair.step]
        projection = _projection(pair, change, fitted)
        if max(fitted.spreads[change].values) > 1:
            yield projection
        else:
            yield replace(_projection(pair, change, replace(fitted, spreads=spreads)), alone=projection.width)


def _projection(pair: Pair, change: Change, fitted: Fitted) -> Projection:
    total = project(pair.here, pair.target, pair.sheet, fitted).total
    return Projection(
        step=pair.step,
        change=change,
        here=_name(pair.here),
        there=_name(pair.there),
        before=total.measured,
        projected=total.projected,
        interval=total.interval,
        measured=pair.there.busy,
        alone=None,
    )


def _name(run: Analysis) -> str:
    """Name the device; of CPUs, which clouds name by their maker alone, with threads and FP32 rate."""
    threads, rate = run.device.conditions.get("threads"), run.device.rate("matrix.fp32")
    if threads is None or rate is None:
        return run.device.name
    return f"{run.device.name}, {counted(int(threads), 'thread')}, {rate / 1e9:.0f} GFLOP/s"


def table(found: list[Projection]) -> str:
    """Write one line per projection, and what they come to by the change of device."""
    lines = []
    for change, words in CHANGES.items():
        chosen = [one for one in found if one.change == change]
        lines += [f"**To {words}**{_fitted_with(chosen)}: {_sum(chosen)}", ""]
        lines += ["| " + " | ".join(COLUMNS) + " |", "|---|---|---|" + "---:|" * (len(COLUMNS) - 4) + "---|"]
        lines += [_line(one) for one in chosen]
        lines.append("")
    return "\n".join(lines[:-1])


def _fitted_with(found: list[Projection]) -> str:
    """Say of which projections the spread is fitted with the step itself."""
    widths = [one.alone for one in found if one.alone is not None]
    if not widths:
        return ""
    return (
        ", deviations fitted with the step itself, so that its range holds it proves little (those of the one other "
        f"step alone give a median width of {statistics.median(widths):.0f})"
    )


def _line(one: Projection) -> str:
    low, high = (f"{end * 1e3:.3f}" for end in one.interval)
    times = (f"{value * 1e3:.3f}" for value in (one.before, one.projected))
    cells = (one.step, one.here, one.there, *times, f"{low} to {high}", f"{one.width:.2f}", f"{one.measured * 1e3:.3f}")
    return "| " + " | ".join((*cells, f"{one.off:+.0%}", "yes" if one.holds else "no")) + " |"


def _sum(found: list[Projection]) -> str:
    error = statistics.median(abs(one.off) for one in found)
    width = statistics.median(one.width for one in found)
    held = sum(one.holds for one in found)
    return f"median error {error:.0%}, {held} of {len(found)} in their range, median width {width:.2f}."


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else TRACES
    found = list(projections(list(pairs(folder)), list(alone())))
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), table(found), MARKS), encoding="utf-8")
