"""Hold measuring processes that are forked from a prepared one against fresh ones: do steps take as long in both?

    python benchmarks/forks.py [--turns 2] [--servers 10] [MODEL@BACKEND[,name=value...]...]

A step of a model is timed in turns by fresh processes and forks, A B B A. All are measuring processes of `roofline`
that are asked for the user's own step `timed` below, which times the model's step and ends the process, without the
count and the ceilings that would follow. Prints a line per step:

    forked / fresh   in a turn: geometric mean, and its 95 % interval by servers; of the medians of their steps, and
                     of their fastest tenths, which other programs disturb less
    spread           of the fastest tenths of fresh processes, of forks of one server, and of servers' means (forks of
                     one server share a layout of memory): standard deviations of the logarithms
    outside steps    time of a process, fresh and forked: start, imports, building [s]
"""

from __future__ import annotations

import argparse
import gc
import math
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from statistics import fmean, median, quantiles, stdev

import msgspec

from roofline.cli.options.points import request_of
from roofline.core.statistics import student
from roofline.core.step import Workload
from roofline.errors import MeasurementError
from roofline.measuring import session
from roofline.recording import child
from roofline.recording.backend import load
from roofline.recording.prepared import PreparedProcesses
from roofline.recording.request import Request
from roofline.sweeping.plan import Point

#: Of a backend without prepared processes both are fresh: `Backend.prepares` has to be set first.
STEPS = ("mlp@torch,batch=4", "bert@torch,layers=2,seq=64")
#: The request of the timed model and the file for its times [s], as variables of the environment.
ASKED, TIMES = "FORKS_REQUEST", "FORKS_TIMES"
#: Time of the timed steps of a process [s], and how many they are at most.
SPAN, MOST = 1.0, 5000


def timed() -> None:
    """Time the steps of a model, in a measuring process, and end it."""
    request = msgspec.json.decode(os.environ[ASKED], type=Request)
    step, *_ = child.build(request, load(request.backend))
    wait = import_module("jax").block_until_ready if load(request.backend).framework == "jax" else lambda result: result

    def once() -> float:
        begin = time.perf_counter()
        wait(step.run())
        return time.perf_counter() - begin

    typical = min(once() for _ in range(5))
    gc.collect()
    gc.disable()
    times = [once() for _ in range(min(MOST, math.ceil(SPAN / typical)))]
    Path(os.environ[TIMES]).write_bytes(msgspec.json.encode(times))
    os._exit(0)


@dataclass
class Turn:
    """Hold a turn of a server: of a fresh process (False) and of a fork (True) the logarithms of the median and of the
    fastest tenth of its steps [log s], and the time outside them [s]."""

    server: int
    medians: dict[bool, float] = field(default_factory=dict)
    tenths: dict[bool, float] = field(default_factory=dict)
    outside: dict[bool, float] = field(default_factory=dict)


def request(text: str) -> Request:
    """Read "mlp@torch,batch=4" as the request for a point on one thread."""
    place, *options = text.split(",")
    model, _, backend = place.partition("@")
    numbers = {name: int(value) for name, value in (option.split("=") for option in options)}
    return request_of(Point(model=model, backend=backend, threads=1, **numbers))


def run(model: Request, times: Path, prepared: PreparedProcesses | None) -> tuple[list[float], float]:
    """Run a measuring process; the times of its steps, and its time outside them [s]."""
    own = Request(
        backend=model.backend,
        workload=Workload(model=timed.__name__),
        file=__file__,
        function=timed.__name__,
        threads=model.threads,
    )
    begin = time.perf_counter()
    with suppress(MeasurementError):  # it ended without a result
        session.record(own, load(model.backend), prepared=prepared)
    seconds = time.perf_counter() - begin
    steps = msgspec.json.decode(times.read_bytes(), type=list[float])
    times.unlink()
    return steps, seconds - sum(steps)


def take(model: Request, turns: int, servers: int, times: Path) -> list[Turn]:
    """Take so many turns with each of so many servers."""
    os.environ |= {ASKED: msgspec.json.encode(model).decode(), TIMES: str(times)}
    taken = []
    for server in range(servers):
        with PreparedProcesses() as prepared:
            run(model, times, prepared)
            for number in range(turns):
                turn = Turn(server)
                for forked in (False, True) if number % 2 == 0 else (True, False):
                    steps, turn.outside[forked] = run(model, times, prepared if forked else None)
                    turn.medians[forked] = math.log(median(steps))
                    turn.tenths[forked] = math.log(quantiles(steps, n=10)[0])
                taken.append(turn)
    return taken


def ratio(logs: Sequence[Sequence[Mapping[bool, float]]]) -> str:
    """Write forked / fresh with its interval, of the means of servers: forks of one are not independent."""
    ratios = [fmean(turn[True] - turn[False] for turn in turns) for turns in logs]
    far = student(len(ratios) - 1) * stdev(ratios) / math.sqrt(len(ratios))
    middle, low, high = (math.exp(fmean(ratios) + way) for way in (0, -far, far))
    return f"{middle:.3f} ({low:.3f} to {high:.3f})"


def line(name: str, taken: list[Turn]) -> str:
    """Write what the turns of a step tell."""
    by_server = [
        [turn for turn in taken if turn.server == server] for server in sorted({turn.server for turn in taken})
    ]
    of_server = [[turn.tenths[True] for turn in turns] for turns in by_server]
    spreads = [
        stdev(turn.tenths[False] for turn in taken),
        math.sqrt(fmean(stdev(tenths) ** 2 for tenths in of_server)),
        stdev(map(fmean, of_server)),
    ]
    outside = [median(turn.outside[forked] for turn in taken) for forked in (False, True)]
    return (
        f"{name}: {1e6 * math.exp(median(turn.medians[False] for turn in taken)):.0f} us, n = {len(taken)}; "
        f"forked / fresh {ratio([[turn.medians for turn in turns] for turns in by_server])}, "
        f"fastest tenths {ratio([[turn.tenths for turn in turns] for turns in by_server])}; "
        f"spread {', '.join(f'{100 * spread:.1f} %' for spread in spreads)}; "
        f"outside steps {outside[0]:.2f} s, {outside[1]:.2f} s"
    )


def main() -> None:
    """Compare all steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", default=STEPS, metavar="MODEL@BACKEND,...")
    parser.add_argument("--turns", type=int, default=2, help="of each server, at least 2")
    parser.add_argument("--servers", type=int, default=10, help="at least 2")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.steps:
            print(line(name, take(request(name), asked.turns, asked.servers, Path(folder) / "times.json")), flush=True)


if __name__ == "__main__":
    main()
