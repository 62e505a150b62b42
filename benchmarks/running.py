"""`make bench`: what `roofline run` costs a program, and whether its times are those of the program by itself.

Steps of about 1 ms, 20 ms and 200 ms. A step that is not measured is one before the first that may be measured, which
the program times itself: with it and by itself it runs at once on one core with one thread, some steps in turns, in
random order. A measured one is the median of the plain steps of the profile.

glibc gives freed memory back once more than a threshold of it lies at the end of the heap; whether it does so in each
step depends on what else lies there. A step of 160 ms by itself had about 8,000 page faults for that, and most plain
ones under `roofline run` 0 to 3,000, and took 6 % less. So both programs get fixed thresholds, above what a step frees;
the last comparison of each size is without them.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, PIPE

from run import ROOFLINE, pairs, report, run

PROGRAM = str(Path(__file__).parent / "trained.py")
#: Name of a length of steps -> arguments of the program but the number of its steps, this, the number of pairs, the
#: steps of a turn, the number of turns. A process of 1000 short steps is over in a second, of which a shared machine
#: may be a tenth slower.
SIZES = {
    "1 ms": ("64", "14", "64", 1000, 21, 24, 60),
    "20 ms": ("512", "8", "128", 120, 7, 6, 30),
    "200 ms": ("1024", "8", "256", 60, 5, 3, 10),
}
#: Processes of each kind that take turns, one after the other.
PROCESSES = 8
#: Variables of glibc, 256 MiB and 32 MiB: no memory is given back between steps.
HEAP = {"MALLOC_TRIM_THRESHOLD_": "268435456", "MALLOC_MMAP_THRESHOLD_": "33554432"}
#: Behind all steps of the program.
NEVER = "100000:"


def bare(program: list[str]) -> float:
    """Time a step of the program by itself [s]."""
    return float(run([sys.executable, *program]))


class Trained:
    """A program that trains as many steps as it is told, and then waits."""

    def __init__(self, command: list[str]) -> None:
        """Start it, and train the first steps, in which kernels are chosen and the steps are found."""
        self._process = subprocess.Popen(
            command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        self.train(60)

    def train(self, steps: int) -> float:
        """Train so many steps; their median time [s]."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(steps, file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def end(self) -> None:
        """End its input, and wait for its end."""
        self._process.communicate()


def unmeasured(program: list[str], steps: int, turns: int) -> float:
    """Compare steps under `roofline run`, which measures none, with those of the program by itself.

    steps: in each of so many turns. Returns the median ratio.
    """
    under = Trained([*ROOFLINE, "run", "--steps", NEVER, *program, "0"])
    programs = [Trained([sys.executable, *program, "0"]), under]
    ratios = []
    for _ in range(turns):
        times = {trained: trained.train(steps) for trained in random.sample(programs, len(programs))}
        ratios.append(times[under] / times[programs[0]])
    for trained in programs:
        trained.end()
    return statistics.median(ratios)


def plain(program: list[str], path: Path) -> float:
    """Time a plain step of the profile that `roofline run` writes to a path [s]."""
    run([*ROOFLINE, "run", "-o", str(path), "--force", *program])
    return float(statistics.median(json.loads(path.read_bytes())["wall"]["steps"]))


def main() -> None:
    """Compare all; about half an hour on two cores."""
    os.environ.setdefault("OMP_NUM_THREADS", str(len(os.sched_getaffinity(0))))
    cores = sorted(os.sched_getaffinity(0))
    print(f"load {os.getloadavg()[0]:.2f}, {os.environ['OMP_NUM_THREADS']} threads, Python {sys.version.split()[0]}")
    with tempfile.TemporaryDirectory() as folder:
        for name, (width, layers, samples, steps, number, turn, turns) in SIZES.items():
            arguments = [PROGRAM, width, layers, samples]
            program = [*arguments, str(steps)]
            alone = partial(bare, program)
            measured = partial(plain, program, Path(folder) / "profile.json")
            os.environ.update(HEAP)
            os.sched_setaffinity(0, {cores[-1]})
            ratios = [unmeasured(arguments, turn, turns) for _ in range(PROCESSES)]
            os.sched_setaffinity(0, cores)
            report(f"an unmeasured step under roofline run / python, {name}", ratios, "<= 1.01 or 20 us")
            report(f"a plain step by roofline run / python, {name}", pairs(measured, alone, number), "0.97 to 1.03")
            for variable in HEAP:
                del os.environ[variable]
            report(f"the same with the thresholds of glibc, {name}", pairs(measured, alone, number), "none")


if __name__ == "__main__":
    main()
