"""`make bench`: what a job of many ranks costs to import, and what more processes save.

A recorded trace of one rank is repeated under other ranks' numbers. Each import is a command of its own, imports and
all, with the costs of the calls in the cache; memory is that of all its processes together, looked at every 20 ms.

    python benchmarks/import_ranks.py [WORKERS]      the curve over 1, 2, 4 ... 64 ranks, with so many processes

The trace is of $ROOFLINE_TRACES, or of ../shared/traces; without it, a synthetic one of the tests.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import psutil
from run import ROOFLINE, report, run

ROOT = Path(__file__).resolve().parents[1]
RECORDED = Path(os.environ.get("ROOFLINE_TRACES", ROOT.parent / "shared" / "traces")) / "ranks" / "dlrm_rank0.json.gz"
SYNTHETIC = ROOT / "tests" / "data" / "synthetic_gpu_train.json"
MOST = 64


def write(into: Path, ranks: int) -> list[str]:
    """Write the trace of each rank of a job; return their paths."""
    into.mkdir()
    trace = json.loads(gzip.decompress(RECORDED.read_bytes()) if RECORDED.is_file() else SYNTHETIC.read_bytes())
    paths = [into / f"job_rank{rank}.json.gz" for rank in range(ranks)]
    for rank, path in enumerate(paths):
        trace["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": ranks}
        path.write_bytes(gzip.compress(json.dumps(trace).encode()))
    return [str(path) for path in paths]


def imported(traces: list[str], into: Path, workers: int | None) -> tuple[float, float, float]:
    """Import traces by the command; wall time and CPU time [s] and memory [byte] of all its processes together."""
    command = [*ROOFLINE, "import", *traces, "-o", str(into), "--force", "--device", "v100"]
    command += [] if workers is None else ["--workers", str(workers)]
    before, begin, largest = os.times(), time.perf_counter(), 0.0
    with psutil.Popen(command, stdout=open(os.devnull, "wb"), stderr=open(os.devnull, "wb")) as process:
        while process.poll() is None:
            largest = max(largest, memory(process))
            time.sleep(0.02)
    after = os.times()
    wall, busy = time.perf_counter() - begin, sum(after[2:4]) - sum(before[2:4])
    if process.returncode:
        raise SystemExit(run(command))
    return wall, busy, largest


def memory(process: psutil.Popen) -> float:
    """Add up the resident sets of a process and of those that it started [byte]."""
    total = 0.0
    try:
        for each in (process, *process.children(recursive=True)):
            total += each.memory_info().rss
    except psutil.Error:  # one ended meanwhile
        pass
    return total


def curve(workers: int | None) -> None:
    """Print time and memory over the number of ranks."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ROOFLINE_CACHE"] = folder
        traces, into = write(Path(folder) / "traces", MOST), Path(folder) / "job"
        trace_sets = {}
        for ranks in (1, 2, 4, 8, 16, 32, 64):
            trace_sets[ranks] = traces if ranks == MOST else write(Path(folder) / str(ranks), ranks)
        imported(trace_sets[2], into, 1)  # fills the cache of costs
        print(f"load {os.getloadavg()[0]:.2f}, {len(os.sched_getaffinity(0))} cores, workers {workers or 'by default'}")
        for ranks, files in trace_sets.items():
            output = into if ranks > 1 else Path(folder) / "one.json"
            wall, busy, largest = imported(files, output, workers)
            print(f"{ranks:3d} ranks {wall:6.2f} s {busy:6.2f} s of CPU {largest / 1e6:5.0f} MB", flush=True)


def main() -> None:
    """Compare all cores with one process, and 64 ranks with 8, in turns; a minute on two quiet cores."""
    cores = len(os.sched_getaffinity(0))
    ratios: dict[str, tuple[list[float], str]] = {
        f"time of 64 ranks on {cores} cores / by one process": ([], f"< 1, at best {1 / cores:.2f}"),
        "CPU time of 64 ranks / 8 times that of 8, by one process": ([], "<= 1"),
        "memory of 64 ranks / of 8, by one process": ([], "<= 1.5"),
    }
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ROOFLINE_CACHE"] = folder
        few, many = write(Path(folder) / "8", 8), write(Path(folder) / "64", MOST)
        into = Path(folder) / "job"
        imported(few, into, 1)  # fills the cache of costs
        for _ in range(3):
            wall, _, _ = imported(many, into, None)
            wall_of_one, busy, largest = imported(many, into, 1)
            _, busy_of_few, largest_of_few = imported(few, into, 1)
            values = wall / wall_of_one, busy / (8 * busy_of_few), largest / largest_of_few
            for (turns, _), value in zip(ratios.values(), values, strict=True):
                turns.append(value)
    for what, (turns, aim) in ratios.items():
        report(what, turns, aim)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        curve(int(sys.argv[1]) or None)
    else:
        main()
