"""`make bench`: what a point of a sweep costs beyond its measurement, for the tiniest step there is.

    sweep / profile   a sweep of some points against as many `roofline profile`, in turns
    overhead          a point whose step ends its measuring process at once: the start of the process, and what is
                      written (one thread: with more, 0.25 s more to look how busy the machine is)
    fresh             the same with a fresh process, which starts Python and imports the framework

`benchmarks/forks.py` holds the times of steps in forks against those in fresh processes.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from run import ROOFLINE, pairs, report, run, seconds

from roofline.cli.options.points import measure
from roofline.recording.prepared import PreparedProcesses
from roofline.sweeping import folder
from roofline.sweeping import run as sweeping
from roofline.sweeping.plan import Point, numbers

MODEL, BATCHES, BACKEND = "mlp", "1..4", "torch"
OPTIONS = ["--threads", "1", "--steps", "10"]
POINTS = 8
#: Ends the measuring process where it would build its step.
NOTHING = "import os\n\ndef step():\n    os._exit(0)\n"


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


def measured(into: Path, model: str, prepared: PreparedProcesses | None) -> list[float]:
    """Measure the same point some times, in this process [s each]."""
    point = Point(model=model, backend=BACKEND, threads=1, steps=10)
    times = list[float]()
    for number in range(POINTS + 1):  # the first one starts what the others share
        folder.write_plan(into / str(number), [point])
        begin = time.perf_counter()
        sweeping.run(into / str(number), [point], lambda point: measure(point, prepared), lambda line: None)
        times.append(time.perf_counter() - begin)
    return times[1:]


def main() -> None:
    """All comparisons; two minutes on two quiet cores."""
    with tempfile.TemporaryDirectory() as name, PreparedProcesses() as prepared:
        into = Path(name)
        report("sweep of 3 points / 3 roofline profile", pairs(lambda: swept(into), lambda: profiled(into), 3), "< 1")
        (into / "nothing.py").write_text(NOTHING)
        nothing = f"{into / 'nothing.py'}:step"
        overhead = measured(into / "overhead", nothing, prepared)
        fresh = measured(into / "fresh", nothing, None)
        points = measured(into / "points", MODEL, prepared)
        for what, times in (("overhead", overhead), ("overhead with fresh processes", fresh)):
            report(f"{what} / a point", [a / b for a, b in zip(times, points, strict=True)], "0.3 s")
        middle = {"overhead": overhead, "with fresh processes": fresh, "a point": points}
        print(", ".join(f"{what} {statistics.median(times):.2f} s" for what, times in middle.items()))


if __name__ == "__main__":
    main()
