"""`make bench`: what the tool costs and whether its wall time can be trusted, as ratios of interleaved runs.

Ratios, because this may be a shared machine: both sides of a pair run within seconds of each other. Each line gives
the median ratio, the least and the greatest, and what was aimed at.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
ROOFLINE = [sys.executable, "-m", "roofline"]
PLAIN_STEPS = 20
#: Steps that `roofline profile` runs in all: first, counted, 2 to warm up, plain, 5 profiled, one before each of those
#: 11 stretches, 3 synchronised.
ALL_STEPS = 1 + 1 + 2 + PLAIN_STEPS + 5 + 11 + 3


def run(command: list[str]) -> str:
    """Run to the end; its standard output."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def seconds(command: list[str]) -> float:
    """Wall time of a whole process [s]."""
    begin = time.perf_counter()
    run(command)
    return time.perf_counter() - begin


def pairs(a: Callable[[], float], b: Callable[[], float], number: int) -> list[float]:
    """`number` ratios a/b, the two in turn, after one of each that does not count."""
    a(), b()
    return [a() / b() for _ in range(number)]


def report(what: str, ratios: list[float], aim: str) -> None:
    """One line per comparison."""
    middle = statistics.median(ratios)
    print(
        f"{what:62s} {middle:5.2f}  ({min(ratios):.2f} to {max(ratios):.2f}, n = {len(ratios)})  aim {aim}", flush=True
    )


def main() -> None:
    """All comparisons; about five minutes on two cores."""
    os.environ.setdefault("OMP_NUM_THREADS", str(len(os.sched_getaffinity(0))))
    print(f"load {os.getloadavg()[0]:.2f}, {os.environ['OMP_NUM_THREADS']} threads, Python {sys.version.split()[0]}")
    bare = [sys.executable, str(HERE / "bare_typer.py"), "--help"]
    report(
        "roofline --help / a bare typer program",
        pairs(lambda: seconds([*ROOFLINE, "--help"]), lambda: seconds(bare), 15),
        "<= 1.5",
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bert.json"
        profile = [*ROOFLINE, "profile", "bert", "--backend", "torch", "--steps", str(PLAIN_STEPS)]
        profile += ["-o", str(path), "--force"]
        script = [sys.executable, str(HERE / "ten_lines.py")]
        report(
            "roofline profile bert / a bare script with as many steps",
            pairs(lambda: seconds(profile), lambda: seconds([*script, str(ALL_STEPS)]), 5),
            "<= 1.5",
        )
        walls, before, after = [], [], []

        def ours() -> float:
            run(profile)
            found = json.loads(run([*ROOFLINE, "show", str(path), "--format", "json"]))
            profiled = json.loads(path.read_bytes())["profiled"]
            before.append(found["inflation"])
            after.append(statistics.mean(profiled["corrected"]) / found["wall"]["median"])
            walls.append(found["wall"]["median"])
            return float(found["wall"]["median"])

        ratios = pairs(ours, lambda: float(run([*script, str(PLAIN_STEPS)])), 5)
        report("median step of roofline / of a ten-line script", ratios, "0.95 to 1.05")
        report("profiled step / plain step, as measured", before, "(tells the profiler's cost)")
        report("profiled step / plain step, profiler's cost subtracted", after, "near 1")


if __name__ == "__main__":
    main()
