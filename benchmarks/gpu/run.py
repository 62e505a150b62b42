"""`make gpu`: everything that a GPU has to show, in pieces that can be broken off and taken up again elsewhere.

    python benchmarks/gpu/run.py --dry-run                    the plan, with all commands
    python benchmarks/gpu/run.py --piece calibration          one piece
    python benchmarks/gpu/run.py                              all of them, until --minutes are over; then again
    python benchmarks/gpu/run.py --report                     what is there: predictions against measurements

A piece is worked on in WORK/PIECE and packed into OUT/PIECE.tar.gz after each item; a piece that is not in WORK is
taken up from OUT, or from a folder given with --resume. What ended is not repeated, what was killed in the middle is,
what failed is kept with its log and repeated only with --again.
"""

from __future__ import annotations

import argparse
import fnmatch
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import piece
import results
import wheels
from item import Item, Setting
from plan import pieces

ROOT = piece.ROOT


def main() -> int:
    asked = _parser().parse_args()
    end = time.monotonic() + 60 * asked.minutes
    plan = pieces(Setting(device=asked.device, size=asked.size))
    chosen = {name: plan.get(name, ()) for name in asked.piece or plan}
    if unknown := [name for name in chosen if name not in plan]:
        raise ValueError(f"no piece is called {unknown[0]}; there are: {', '.join(plan)}")
    chosen = {
        name: [item for item in items if item.each or fnmatch.fnmatch(item.name, asked.only)]
        for name, items in chosen.items()
    }
    work, out, site = asked.work.resolve(), asked.out.resolve(), asked.work.resolve() / "site"
    if asked.dry_run:
        print("\n".join(line for name, items in chosen.items() for line in described(name, items, work / name)))
        return 0
    if asked.report:  # by the installed roofline: the results may be of an older one's wheels
        words = [sys.executable, str(piece.HERE / "report.py"), str(out), *map(str, asked.resume)]
        return subprocess.run(words, check=False).returncode
    if asked.wheels.is_dir():
        wheels.install(asked.wheels.resolve(), site)
    signal.signal(signal.SIGTERM, _leave)
    here = piece.Run(
        setting=Setting(device=asked.device, size=asked.size),
        work=work,
        out=out,
        site=site,
        end=end,
        again=asked.again,
    )
    left = 0
    for name, items in chosen.items():
        if taken := results.unpack(name, work, [out, *asked.resume]):
            print(f"{name}: taken up from {taken.name}", flush=True)
        left += piece.run(name, items, here)
    print(f"{left} items are left: run the same again." if left else "Nothing is left to run.", flush=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--piece", action="append", help="which; may be given several times (default: all)")
    parser.add_argument("--only", metavar="GLOB", default="*", help="only items of such a name")
    parser.add_argument(
        "--again", metavar="GLOB", nargs="?", const="", help="repeat what failed; with a GLOB what is named so"
    )
    parser.add_argument("--minutes", type=float, default=9.4, help="end after so long (default: 9.4)")
    parser.add_argument("--out", type=Path, default=ROOT / "gpu-results", help="archives, one a piece")
    parser.add_argument("--resume", type=Path, action="append", default=[], help="archives of earlier runs")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "gpu", help="where pieces are worked on")
    parser.add_argument("--wheels", type=Path, default=ROOT / "gpu-wheels", help="installed, if they are there")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: a rehearsal")
    parser.add_argument("--size", default="base", help="of the models: base, or tiny for a rehearsal")
    parser.add_argument("--dry-run", action="store_true", help="print the plan and run nothing")
    parser.add_argument("--report", action="store_true", help="print what the archives say and run nothing")
    return parser


def described(name: str, items: Sequence[Item], folder: Path) -> list[str]:
    """Each command of a piece, with what it is expected to take and its limit."""
    lines = [f"{name}: {len(items)} items, about {sum(item.seconds for item in items) / 60:.0f} min"]
    for item in items:
        lines.append(f"  {item.name} (about {item.seconds:.0f} s, at most {item.limit:.0f} s)")
        variables = "".join(f"{key}={value!r} " for key, value in item.variables.items())
        into = f" > {folder / item.stdout}" if item.stdout else ""
        lines.append(f"    {variables}{' '.join(piece.words(item, folder))}{into}")
    return lines


def _leave(number: int, frame: FrameType | None) -> None:
    """A time limit from outside: leave through the `finally`s, which end the item and pack."""
    sys.exit(128 + number)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ValueError as error:
        sys.exit(f"{error}")
