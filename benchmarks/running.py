"""`make bench`: what `roofline run` costs a program, and whether its times are those of the program by itself.

Steps of about 1 ms, 20 ms and 200 ms. A step that is not measured is one behind the last that may be measured, which
the program times itself; a measured one is the median of the plain steps of the profile.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

from run import ROOFLINE, pairs, report, run

PROGRAM = str(Path(__file__).parent / "trained.py")
#: Name of a length of steps -> arguments of the program but the number of its steps, this, and the number of pairs: a
#: process of 300 short steps is over in a third of a second, of which a shared machine may be a tenth slower.
SIZES = {
    "1 ms": ("64", "12", "64", 300, 21),
    "20 ms": ("512", "8", "128", 120, 7),
    "200 ms": ("1024", "8", "256", 60, 5),
}
#: Behind all steps of the program.
NEVER = "100000:"


def main() -> None:
    """All comparisons; about twenty minutes on two cores."""
    os.environ.setdefault("OMP_NUM_THREADS", str(len(os.sched_getaffinity(0))))
    print(f"load {os.getloadavg()[0]:.2f}, {os.environ['OMP_NUM_THREADS']} threads, Python {sys.version.split()[0]}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profile.json"
        for name, (width, layers, samples, steps, number) in SIZES.items():
            program = [PROGRAM, width, layers, samples, str(steps)]

            def bare(program: list[str] = program) -> float:
                return float(run([sys.executable, *program]))

            def unmeasured(program: list[str] = program) -> float:
                return float(
                    run(["sh", "-c", '"$@" || [ $? = 4 ]', "sh", *ROOFLINE, "run", "--steps", NEVER, *program])
                )

            def measured(program: list[str] = program) -> float:
                run([*ROOFLINE, "run", "-o", str(path), "--force", *program])
                return statistics.median(json.loads(path.read_bytes())["wall"]["steps"])

            report(
                f"an unmeasured step under roofline run / python, {name}",
                pairs(unmeasured, bare, number),
                "<= 1.01 or 20 us",
            )
            report(f"a plain step by roofline run / python, {name}", pairs(measured, bare, number), "0.97 to 1.03")


if __name__ == "__main__":
    main()
