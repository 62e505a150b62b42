"""`make bench`: what `roofline run` costs a program, and whether its times are those of the program by itself.

Steps of about 1 ms, 20 ms and 200 ms (15 and 107 ms on a faster core); those of 1 ms once of many small ops and once of
fewer wider ones. A program under `roofline run` and the same by itself run at once on one core with one thread, some
steps in turns, in random order: other users of the machine slow both down alike. A step that is not measured is one
before the first that may be measured, which the program times itself. Plain steps are those of the profile, which has
far more of them than usual.

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
import sys
import tempfile
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen

from run import ROOFLINE, report

PROGRAM = str(Path(__file__).parent / "trained.py")
#: Name of a length of steps -> width, layers and samples of the program; numbers of plain steps, of steps of a turn,
#: and of turns, in which a whole measurement has room.
SIZES = {
    "1 ms, small ops": ("64", "14", "64", 600, 24, 40),
    "1 ms": ("128", "6", "64", 600, 24, 40),
    "20 ms": ("512", "8", "128", 90, 6, 28),
    "200 ms": ("1024", "8", "256", 30, 3, 24),
}
#: Pairs of processes of each kind.
PROCESSES = 5
#: Variables of glibc, 256 MiB and 32 MiB: no memory is given back between steps.
HEAP = {"MALLOC_TRIM_THRESHOLD_": "268435456", "MALLOC_MMAP_THRESHOLD_": "33554432"}
#: Steps in which kernels are chosen and the program's steps are found.
FIRST = 60
#: Behind all steps of the program.
NEVER = "100000:"
#: Starts roofline, with so many plain steps on a CPU.
MANY = "from roofline.recording import protocol; protocol.CPU_STEPS = {}; from roofline.__main__ import main; main()"


class Trained:
    """A program that trains as many steps as it is told, and then waits."""

    def __init__(self, command: list[str]) -> None:
        """Start it, and train the first steps."""
        self._process = Popen(
            command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        self.train(FIRST)

    def train(self, steps: int) -> float:
        """Train so many steps; their median time [s]."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(steps, file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def end(self) -> None:
        """End its input, and wait for its end."""
        self._process.communicate()


def in_turns(roofline: list[str], program: list[str], steps: int, turns: int) -> list[tuple[float, float]]:
    """Train a program under a command of roofline and by itself, so many steps in each turn.

    Returns the times of a step that the program under it and the one by itself give for each turn [s].
    """
    programs = [Trained([*command, *program]) for command in (roofline, [sys.executable])]
    times = []
    for _ in range(turns):
        taken = {trained: trained.train(steps) for trained in random.sample(programs, len(programs))}
        times.append((taken[programs[0]], taken[programs[1]]))
    for trained in programs:
        trained.end()
    return times


def unmeasured(program: list[str], steps: int, turns: int) -> float:
    """Compare steps under `roofline run`, which measures none, with those of the program by itself: median ratio."""
    under = [*ROOFLINE, "run", "--steps", NEVER]
    return statistics.median(a / b for a, b in in_turns(under, program, steps, turns))


def measured(program: list[str], plain: int, steps: int, turns: int) -> float:
    """Compare the plain steps of a profile with steps of the program by itself at that time, by their medians."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profile.json"
        options = ["-o", str(path), "--steps", f"{FIRST}:"]
        under = [sys.executable, "-c", MANY.format(plain), "run", *options]
        times = in_turns(under, program, steps, turns)
        profiled = json.loads(path.read_bytes())["wall"]["steps"]
    assert len(profiled) == plain
    return statistics.median(profiled) / statistics.median(by_itself for _, by_itself in times)


def main() -> None:
    """Compare all; about half an hour on two cores."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(f"load {os.getloadavg()[0]:.2f}, one core, Python {sys.version.split()[0]}")
    for name, (width, layers, samples, plain, steps, turns) in SIZES.items():
        program = [PROGRAM, width, layers, samples]
        os.environ.update(HEAP)
        ratios = [unmeasured(program, steps, turns) for _ in range(PROCESSES)]
        report(f"an unmeasured step under roofline run / python, {name}", ratios, "<= 1.01 or 20 us")
        ratios = [measured(program, plain, steps, turns) for _ in range(PROCESSES)]
        report(f"a plain step by roofline run / python, {name}", ratios, "0.97 to 1.03")
        for variable in HEAP:
            del os.environ[variable]
        ratios = [measured(program, plain, steps, turns) for _ in range(PROCESSES)]
        report(f"the same with the thresholds of glibc, {name}", ratios, "none")


if __name__ == "__main__":
    main()
