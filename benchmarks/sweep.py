"""`make bench`: what a point of a sweep costs beyond its measurement, for the tiniest step there is.

    sweep / profile   a sweep of some points against as many `roofline profile`, in turns
    beyond            what is not spent in the measuring process: for 0.25 s of it we look how busy the machine is
    start             what Python takes to start and to import the framework, once in each measuring process

A measuring process is not forked from one that has imported the framework already: nobody has shown that its times
would be the same.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from run import ROOFLINE, pairs, report, run, seconds

from roofline.cli.sweep import _measure
from roofline.recording import launch
from roofline.sweeping import folder
from roofline.sweeping import run as sweeping
from roofline.sweeping.plan import Point, numbers, points

MODEL, BATCHES, BACKEND = "mlp", "1..4", "torch"
OPTIONS = ["--threads", "1", "--steps", "10"]


def swept(into: Path) -> float:
    """Sweep with the command [s]."""
    with tempfile.TemporaryDirectory(dir=into) as fresh:
        command = [*ROOFLINE, "sweep", MODEL, "--backends", BACKEND, "--batch", BATCHES, *OPTIONS]
        return seconds([*command, "-o", fresh])


def profiled(into: Path) -> float:
    """Profile each point by a command of its own [s]."""
    begin = time.perf_counter()
    for batch in numbers(BATCHES, "batch"):
        command = [*ROOFLINE, "profile", MODEL, "--backend", BACKEND, "--batch", str(batch), *OPTIONS]
        run([*command, "-o", str(into / "point.json"), "--force"])
    return time.perf_counter() - begin


def beyond(into: Path) -> tuple[list[float], list[float]]:
    """Sweep in this process; of each point the time beyond its measuring processes, and all of it [s]."""
    every = points([MODEL], [BACKEND], ["infer"], ["default"], numbers("1..16", "batch"), [None], threads=1, steps=10)
    inside, others, totals = [0.0], [], []
    measure_in_process = launch.run

    def timed(*given: object, **options: object) -> launch.Result:
        begin = time.perf_counter()
        try:
            return measure_in_process(*given, **options)  # type: ignore[arg-type]
        finally:
            inside[0] += time.perf_counter() - begin

    launch.run = timed
    for point in folder.write_plan(into, every):
        inside[0], begin = 0.0, time.perf_counter()
        sweeping.run(into, [point], _measure, lambda line: None)
        totals.append(time.perf_counter() - begin)
        others.append(totals[-1] - inside[0])
    launch.run = measure_in_process
    return others, totals


def main() -> None:
    """All comparisons; two minutes on two quiet cores."""
    with tempfile.TemporaryDirectory() as name:
        into = Path(name)
        report("sweep of 3 points / 3 roofline profile", pairs(lambda: swept(into), lambda: profiled(into), 3), "<= 1")
        _measure(Point(model=MODEL, backend=BACKEND, threads=1, steps=10))
        others, totals = beyond(into / "sweep")
        start = seconds([sys.executable, "-c", "import torch"])
        report(
            "beyond the measuring process / a point", [a / b for a, b in zip(others, totals, strict=True)], "< 0.3 s"
        )
        report("start of Python with torch / a point", [start / total for total in totals], "< 0.3 s with the former")
        middle = {"beyond": others, "a point": totals, "start": [start]}
        print(", ".join(f"{what} {statistics.median(times):.2f} s" for what, times in middle.items()))


if __name__ == "__main__":
    main()
