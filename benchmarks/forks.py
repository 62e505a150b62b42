"""Hold measuring processes that are forked from a prepared one against fresh ones: do they measure the same?

    python benchmarks/forks.py [--turns 12] [--servers 3] [MODEL@BACKEND[,name=value...]...]

Each step is timed in turns by fresh processes and forks, A B B A. Prints a line per step:

    forked / fresh   in a turn: geometric mean, and its 95 % interval; of the medians of their steps, and of their
                     fastest tenths, which other programs disturb less
    spread           of the fastest tenths of fresh processes, of forks of one server, and of servers' means (forks of
                     one server share a layout of memory): standard deviations of the logarithms
    outside steps    time of a process, fresh and forked [s]

disturbed: turns in which other programs used the cores. They count, since both halves of a turn suffer alike.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median, quantiles, stdev

from msgspec.structs import replace

from roofline.cli.options.points import request_of
from roofline.core.statistics import student
from roofline.measuring import session
from roofline.recording import contention
from roofline.recording.backend import load
from roofline.recording.prepared import PreparedProcesses
from roofline.recording.request import Request
from roofline.sweeping.plan import Point

STEPS = ("mlp@torch,steps=2000", "mlp@jax,steps=2000", "bert@torch,layers=2,seq=64", "bert@jax,layers=2,seq=64")


@dataclass
class Turn:
    """Hold a turn of a server: of a fresh process (False) and of a fork (True) the logarithms of the median and of the
    fastest tenth of its steps [log s], and the time outside them [s]."""

    server: int
    medians: dict[bool, float] = field(default_factory=dict)
    tenths: dict[bool, float] = field(default_factory=dict)
    outside: dict[bool, float] = field(default_factory=dict)
    disturbed: bool = False


def request(text: str) -> Request:
    """Read "mlp@torch,batch=4" as the request for plain steps of a point on one thread."""
    place, *options = text.split(",")
    model, _, backend = place.partition("@")
    numbers = {name: int(value) for name, value in (option.split("=") for option in options)}
    asked = request_of(Point(model=model, backend=backend, threads=1, **{"steps": 20, **numbers}))
    return replace(session.plain_request(asked), quiet=True)


def take(asked: Request, turns: int, servers: int) -> list[Turn]:
    """Take so many turns with each of so many servers."""
    taken = []
    for server in range(servers):
        with PreparedProcesses() as prepared:
            session.record(asked, load(asked.backend), prepared=prepared)
            for number in range(turns):
                turn = Turn(server)
                for forked in (False, True) if number % 2 == 0 else (True, False):
                    begin = time.perf_counter()
                    run = session.record(asked, load(asked.backend), prepared=prepared if forked else None)
                    turn.outside[forked] = time.perf_counter() - begin - sum(run.wall.steps)
                    turn.medians[forked] = math.log(median(run.wall.steps))
                    turn.tenths[forked] = math.log(quantiles(run.wall.steps, n=10)[0])
                    turn.disturbed |= contention.was_contended(run.conditions, 1)
                taken.append(turn)
    return taken


def ratio(logs: Sequence[Mapping[bool, float]]) -> str:
    """Write forked / fresh with its interval."""
    ratios = [turn[True] - turn[False] for turn in logs]
    far = student(len(ratios) - 1) * stdev(ratios) / math.sqrt(len(ratios))
    middle, low, high = (math.exp(fmean(ratios) + way) for way in (0, -far, far))
    return f"{middle:.3f} ({low:.3f} to {high:.3f})"


def line(name: str, taken: list[Turn]) -> str:
    """Write what the turns of a step tell."""
    servers = sorted({turn.server for turn in taken})
    of_server = [[turn.tenths[True] for turn in taken if turn.server == server] for server in servers]
    spreads = [
        stdev(turn.tenths[False] for turn in taken),
        math.sqrt(fmean(stdev(tenths) ** 2 for tenths in of_server)),
        stdev(map(fmean, of_server)),
    ]
    outside = [median(turn.outside[forked] for turn in taken) for forked in (False, True)]
    return (
        f"{name}: {1e6 * math.exp(fmean(turn.medians[False] for turn in taken)):.0f} us, n = {len(taken)}, "
        f"{sum(turn.disturbed for turn in taken)} disturbed; forked / fresh {ratio([turn.medians for turn in taken])}, "
        f"fastest tenths {ratio([turn.tenths for turn in taken])}; "
        f"spread {', '.join(f'{100 * spread:.1f} %' for spread in spreads)}; "
        f"outside steps {outside[0]:.2f} s, {outside[1]:.2f} s"
    )


def main() -> None:
    """Compare all steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", default=STEPS, metavar="MODEL@BACKEND,...")
    parser.add_argument("--turns", type=int, default=12, help="of each server, at least 2")
    parser.add_argument("--servers", type=int, default=3, help="at least 2")
    asked = parser.parse_args()
    for name in asked.steps:
        print(line(name, take(request(name), asked.turns, asked.servers)), flush=True)


if __name__ == "__main__":
    main()
