"""Leave a tenth of the measured points of a sweep out, predict them from the others, and say how far that is off.

    python benchmarks/sweep_predictions.py DIR...

Ten times, each time another tenth, so that each point is left out once. A point at the edge of a sweep, or one whose
work the others do not fix, is not predicted. Prints a row per backend: how many points are measured and predicted, the
median of |predicted / measured - 1|, the largest, and in how many of them the time lies in the 95 % interval.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from roofline.sweeping import grid
from roofline.sweeping.plan import Point
from roofline.sweeping.prediction import Estimate, MeasuredPoint, Place, predict

_TENTHS, _SEED = 10, 46


def predictions(known: Mapping[Place, MeasuredPoint]) -> dict[Place, Estimate]:
    """Predict each point from the nine tenths of the others in which it is not."""
    shuffled = sorted(known)
    random.Random(_SEED).shuffle(shuffled)
    estimates = {}
    for number in range(_TENTHS):
        out = shuffled[number::_TENTHS]
        estimates |= predict({place: known[place] for place in known if place not in out}, out)
    return estimates


def row(name: str, known: Mapping[Place, MeasuredPoint]) -> str:
    """Write the row of a table for one backend."""
    estimates = predictions(known)
    errors = [abs(math.expm1(math.log(one.seconds / known[place].seconds))) for place, one in estimates.items()]
    within = [one.ci95[0] <= known[place].seconds <= one.ci95[1] for place, one in estimates.items() if one.ci95]
    middle, largest = (f"{100 * of(errors):.1f} %" if errors else "–" for of in (median, max))
    return f"| {name} | {len(known)} | {len(errors)} | {middle} | {largest} | {sum(within)} of {len(within)} |"


def main() -> None:
    """Print a table of all sweeps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--disturbed", action="store_true", help="with runs that other programs disturbed")
    asked = parser.parse_args()
    print("| sweep | measured | predicted | median error | largest | in the interval |\n|---|---|---|---|---|---|")
    for folder in asked.folders:
        lines: dict[Point, list[grid.Result]] = {}
        for cell in grid.read(folder).cells:
            for result in cell.results:
                lines.setdefault(result.point.without("batch", "seq"), []).append(result)
        for point, results in lines.items():
            print(row(f"{point.place()}, {point.backend}", grid.measured_points(results, disturbed=asked.disturbed)))


if __name__ == "__main__":
    main()
