"""`make bench`: what `roofline run` costs a program, and whether its times are those of the program by itself.

Steps of about 1 ms, 20 ms and 200 ms. A step that is not measured is one behind the last that may be measured, which
the program times itself; a measured one is the median of the plain steps of the profile.

glibc gives freed memory back once more than a threshold of it lies at the end of the heap; whether it does so in each
step depends on what else lies there. A step of 160 ms by itself had about 8,000 page faults for that, and most plain
ones under `roofline run` 0 to 3,000, and took 6 % less. So both programs get fixed thresholds, above what a step frees;
the last comparison of each size is without them.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path

from run import ROOFLINE, pairs, report, run

PROGRAM = str(Path(__file__).parent / "trained.py")
#: Name of a length of steps -> arguments of the program but the number of its steps, this, and the number of pairs: a
#: process of 1000 short steps is over in a second, of which a shared machine may be a tenth slower.
SIZES = {
    "1 ms": ("64", "14", "64", 1000, 21),
    "20 ms": ("512", "8", "128", 120, 7),
    "200 ms": ("1024", "8", "256", 60, 5),
}
#: Variables of glibc, 256 MiB and 32 MiB: no memory is given back between steps.
HEAP = {"MALLOC_TRIM_THRESHOLD_": "268435456", "MALLOC_MMAP_THRESHOLD_": "33554432"}
#: Behind all steps of the program.
NEVER = "100000:"


def bare(program: list[str]) -> float:
    """Time a step of the program by itself [s]."""
    return float(run([sys.executable, *program]))


def unmeasured(program: list[str]) -> float:
    """Time a step of the program under `roofline run`, which measures none [s]."""
    command = [*ROOFLINE, "run", "--steps", NEVER, *program]
    return float(run(["sh", "-c", '"$@" || [ $? = 4 ]', "sh", *command]))


def plain(program: list[str], path: Path) -> float:
    """Time a plain step of the profile that `roofline run` writes to a path [s]."""
    run([*ROOFLINE, "run", "-o", str(path), "--force", *program])
    return float(statistics.median(json.loads(path.read_bytes())["wall"]["steps"]))


def main() -> None:
    """Compare all; about half an hour on two cores."""
    os.environ.setdefault("OMP_NUM_THREADS", str(len(os.sched_getaffinity(0))))
    print(f"load {os.getloadavg()[0]:.2f}, {os.environ['OMP_NUM_THREADS']} threads, Python {sys.version.split()[0]}")
    with tempfile.TemporaryDirectory() as folder:
        for name, (width, layers, samples, steps, number) in SIZES.items():
            program = [PROGRAM, width, layers, samples, str(steps)]
            alone = partial(bare, program)
            measured = partial(plain, program, Path(folder) / "profile.json")
            os.environ.update(HEAP)
            ratios = pairs(partial(unmeasured, program), alone, number)
            report(f"an unmeasured step under roofline run / python, {name}", ratios, "<= 1.01 or 20 us")
            report(f"a plain step by roofline run / python, {name}", pairs(measured, alone, number), "0.97 to 1.03")
            for variable in HEAP:
                del os.environ[variable]
            report(f"the same with the thresholds of glibc, {name}", pairs(measured, alone, number), "none")


if __name__ == "__main__":
    main()
