"""Causes planted on purpose, measured and explained: `make plants`. See docs/plants.md.

Each pair of a manifest (`plants.toml` in one of `SETS`) is two runs of `roofline profile`, one right after the other in
fresh processes. Its profiles are kept beside the manifest and not measured again while they are there, so that the run
can be broken off and go on. `--report` explains what is there and says how often the explanation is right.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from roofline.analysis.analysis import analyze_timed
from roofline.analysis.gap_parts import (
    AFTER,
    COMPILING,
    FOR_INPUT,
    OUTSIDE,
    PAGE_FAULTS,
    READING,
    SLEEPING,
)
from roofline.comparison.account.account import account
from roofline.comparison.account.row import SAME_OPS, Account, Row
from roofline.comparison.headline import headline
from roofline.comparison.machine_speed import machine_speed
from roofline.comparison.terms import Comparison, compare
from roofline.core.schema import Profile, decode, load, slug
from roofline.errors import RooflineError

ROOT = Path(__file__).resolve().parents[1]
MODELS = ROOT / "benchmarks" / "planted"
#: The pairs that the rules were tried on while they were written, and those that were written without knowing them.
SETS = {
    "first": ROOT / "tests" / "data" / "plants",
    "second": ROOT / "tests" / "data" / "plants_second",
    "third": ROOT / "tests" / "data" / "plants_third",
    "fourth": ROOT / "tests" / "data" / "plants_fourth",
    "fifth": ROOT / "tests" / "data" / "plants_fifth",
    "sixth": ROOT / "tests" / "data" / "plants_sixth",
    "seventh": ROOT / "tests" / "data" / "plants_seventh",
}

STEPS = 60
#: How often both runs of a pair are measured without being disturbed; twice as many turns are tried at most.
TURNS = 2
#: How many rows of an account, and names of a row, are looked at.
FIRST = 3
#: The part of the difference that a row has to hold, and the part beyond which it claims too much.
ENOUGH, TOO_MUCH = 0.8, 1.25

#: So that no step waits for page faults: the C library gives nothing back and maps nothing anew.
_KEPT = {"MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_MMAP_THRESHOLD_": str(1 << 30)}
MEMORY: dict[str, dict[str, str]] = {"kept": _KEPT, "returned": {}}


@dataclass(frozen=True, slots=True)
class Cause:
    """What was planted. slower: the run that has it; shows: what an account must name (plants.toml)."""

    slower: str
    shows: Mapping[str, Any]

    @property
    def sign(self) -> int:
        """Of what it adds to wall_A - wall_B."""
        return 1 if self.slower == "a" else -1


@dataclass(frozen=True, slots=True)
class Pair:
    """One entry of the manifest."""

    name: str
    kind: str
    steps: dict[str, str]
    arguments: dict[str, tuple[str, ...]]
    memory: dict[str, str]
    causes: tuple[Cause, ...]
    backend: str
    folder: Path

    def file(self, side: str) -> Path:
        """Compressed in the later sets: they have many ops."""
        return self.folder / f"{self.name}-{side}.json{'' if self.folder == SETS['first'] else '.gz'}"

    @property
    def measured(self) -> bool:
        return all(self.file(side).exists() for side in "ab")

    @property
    def disturbed(self) -> bool:
        return _disturbed(*self.profiles())

    def profiles(self) -> tuple[Profile, Profile]:
        return load_kept(self.file("a")), load_kept(self.file("b"))

    def compared(self) -> Comparison:
        return _compared(self.file("a"), self.file("b"))


def pairs(name: str = "first") -> dict[str, Pair]:
    """The manifest of a set, by name and in its order."""
    manifest = SETS[name] / "plants.toml"
    entries: list[dict[str, Any]] = tomllib.loads(manifest.read_text(encoding="utf-8"))["pair"]
    return {entry["name"]: _pair(entry, SETS[name]) for entry in entries}


def load_kept(file: Path) -> Profile:
    return load(file) if file.suffix == ".json" else decode(gzip.decompress(file.read_bytes()), str(file))


@cache
def _compared(a: Path, b: Path) -> Comparison:
    """Once per pair, which stands alone and is what others are ranked by. Nothing is measured after it is compared."""
    return compare(load_kept(a), load_kept(b))


def _pair(entry: dict[str, Any], folder: Path) -> Pair:
    common = entry.get("arguments", [])
    return Pair(
        name=entry["name"],
        kind=entry["kind"],
        steps={side: entry[side] for side in "ab"},
        arguments={side: (*common, *entry.get(f"{side}_arguments", [])) for side in "ab"},
        memory={side: entry.get(f"{side}_memory", "kept") for side in "ab"},
        causes=tuple(Cause(slower=cause["slower"], shows=cause["shows"]) for cause in entry.get("causes", ())),
        backend=entry.get("backend", "torch"),
        folder=folder,
    )


# Measuring


def measure(pair: Pair, turns: int) -> None:
    """Both runs of a pair in turns, until so many turns were undisturbed; twice as many are tried at most.

    Of these and what is there, the best turn is kept, both of its runs: what was measured in two turns may have met
    the machine in two states.
    """
    begin = time.monotonic()
    # What is refused is counted, not timed.
    enough = 1 if pair.kind == "refused" else turns
    turn = undisturbed = 0
    while turn < 2 * enough and undisturbed < enough:
        turn += 1
        undisturbed += _take_turn(pair)
    words = "disturbed" if pair.disturbed else "measured"
    print(f"{pair.name:36s} {words}, {turn} turns, {time.monotonic() - begin:.0f} s", flush=True)


def _take_turn(pair: Pair) -> bool:
    """Measure both runs, and keep them if they are the best; whether nothing disturbed them."""
    with tempfile.TemporaryDirectory() as folder:
        made = {side: _profile(pair, side, Path(folder) / f"{side}.json") for side in "ab"}
        rating = _rated(*map(load_kept, made.values()))
        if not pair.measured or rating < _rated(*pair.profiles()):
            for side in "ab":
                _keep(made[side], pair.file(side))
        return not rating[0]


def _rated(a: Profile, b: Profile) -> tuple[bool, float]:
    """Whether a pair of runs was disturbed, and how long their steps take together [s]: the least is the best."""
    return _disturbed(a, b), median(a.wall.steps) + median(b.wall.steps)


def _disturbed(a: Profile, b: Profile) -> bool:
    """Whether other programs took the cores of either run, its profiled steps took longer than plain ones and their
    profiler, or the machine was slower during one of the two.
    """
    runs = analyze_timed(a), analyze_timed(b)
    flags = {slug(flag) for run in runs for flag in run.flags}
    return bool(flags & {"contended", "inflated"}) or machine_speed(*runs).uneven


def _keep(file: Path, place: Path) -> None:
    if place.suffix == ".json":
        shutil.move(file, place)
    else:  # without the time of compression, so that equal profiles are equal files
        place.write_bytes(gzip.compress(file.read_bytes(), mtime=0))


def _profile(pair: Pair, side: str, file: Path) -> Path:
    command = [sys.executable, "-m", "roofline", "profile", str(MODELS / pair.steps[side])]
    # The last of two options counts.
    command += ["--backend", pair.backend, "--threads", "1", "--steps", str(STEPS)]
    command += [*pair.arguments[side], "-o", str(file)]
    variables = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    # Waiting threads asleep: on a machine that others use too a run is then not measured a second time.
    variables |= {"OMP_WAIT_POLICY": "PASSIVE", **MEMORY[pair.memory[side]]}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{pair.name}, {side}: {done.stderr.strip() or done.stdout.strip()}")
    return file


# Judging


#: Parts of a gap, as a manifest calls them. Python is also what follows the last op, as long as nobody says what it is.
_PARTS: dict[str, tuple[str, ...]] = {
    "asleep": (SLEEPING,),
    "waiting for input": (FOR_INPUT,),
    "reading results": (READING,),
    "compiling": (COMPILING,),
    "Python": (OUTSIDE, AFTER),
    "dispatching": (SAME_OPS,),
    "page faults": (PAGE_FAULTS,),
}
#: Settings, as a manifest calls them, and what they are called in an account.
_SETTINGS = {
    "compiled": ("jit", "graphs", "programs", "calls"),
    "memory": ("MALLOC",),
    "flags": ("XLA_FLAGS", "jax_", "oneDNN"),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the account of one pair did.

    shown: for each cause the first row that names it, of the first `FIRST` rows, or None. share: what these rows hold
    of the difference, where all causes are in one run; None elsewhere.
    """

    pair: Pair
    comparison: Comparison
    account: Account
    shown: tuple[Row | None, ...]
    share: float | None

    @property
    def in_size(self) -> bool | None:
        """Whether the rows that name the causes hold about the difference; None where nobody can tell."""
        return None if self.share is None else ENOUGH <= self.share <= TOO_MUCH

    @property
    def refused(self) -> bool:
        """Whether parity refuses the pair."""
        return self.comparison.parity.verdict == "not comparable"

    @property
    def right(self) -> bool:
        """Whether this is what the manifest says: all causes shown and nothing refused; a null is no finding."""
        if self.pair.kind == "refused":
            return self.refused
        return not self.refused and None not in self.shown


def judge(pair: Pair) -> Verdict:
    """Account for a measured pair and hold it against its entry."""
    comparison = pair.compared()
    told = account(comparison)
    first = told.rows[:FIRST]
    shown = tuple(next((row for row in first if names(row, cause.shows)), None) for cause in pair.causes)
    # Of two causes in one run the rows that name either hold both; of one, the row that comes nearest.
    naming = [row for row in first if row.seconds and any(names(row, cause.shows) for cause in pair.causes)]
    share = None
    if len({cause.sign for cause in pair.causes}) == 1 and comparison.difference:
        shares = [seconds / comparison.difference for seconds in _seconds(naming, told)]
        if len(pair.causes) > 1:
            shares = [sum(shares)]
        share = min(shares, key=lambda each: abs(each - 1), default=0.0)
    return Verdict(pair, comparison, told, shown, share)


def _seconds(rows: list[Row], told: Account) -> list[float]:
    """Say what some rows hold [s]: parts of the gap that have one name in a manifest hold what all of them do."""
    found: dict[tuple[int, ...], float] = {}
    for row in rows:
        parts = next((parts for parts in _PARTS.values() if row.kind == "gap" and row.place in parts), ())
        whole = [each for each in told.rows if each is row or (each.kind == "gap" and each.place in parts)]
        found[tuple(map(id, whole))] = sum(each.seconds or 0.0 for each in whole)
    return list(found.values())


def names(row: Row, shows: Mapping[str, Any]) -> bool:
    """Say whether the first names of a row are what was planted."""
    if row.kind == "gap":
        return row.place in [name for part in shows.get("gap", ()) for name in _PARTS.get(part, (part,))]
    first = row.ops[:FIRST]
    if row.kind == "setting":
        setting = shows.get("setting")
        known = (setting, *_SETTINGS.get(setting, ())) if setting else ()
        return any(part in change.name for change in first for part in known)
    ops, types = {bare(name) for name in shows.get("ops", ())}, shows.get("types", ())
    return any(bare(change.name) in ops or change.type in types for change in first)


def bare(name: str) -> str:
    """Return the name of an op without namespace and outer underscores: `aten::mul_` is mul."""
    return name.removeprefix("aten::").strip("_")


# Reporting


def report(everything: dict[str, Pair]) -> str:
    """Report one line per pair, and how often an account is right."""
    verdicts = [judge(pair) for pair in everything.values() if pair.measured]
    lines = [line(verdict) for verdict in verdicts]
    return "\n".join([*lines, "", *summary(verdicts)])


def line(verdict: Verdict) -> str:
    """Say how one pair did: its walls, what its rows hold, and its first rows."""
    pair, comparison = verdict.pair, verdict.comparison
    share = f"{100 * verdict.share:4.0f} %" if verdict.share is not None else "      "
    marks = [mark for mark, holds in (("refused", verdict.refused), ("disturbed", pair.disturbed)) if holds]
    rows = "; ".join(_short(row) for row in verdict.account.rows[:FIRST])
    return (
        f"{'ok   ' if verdict.right else 'WRONG'} {pair.name:34s} {comparison.a.wall * 1e3:7.2f} - "
        f"{comparison.b.wall * 1e3:7.2f} = {comparison.difference * 1e3:+7.2f} ms  {share}  {rows}"
        f"{''.join(f' ({mark})' for mark in marks)}"
    )


def _short(row: Row) -> str:
    time = "" if row.seconds is None else f"{row.seconds * 1e3:+.2f} "
    what = row.place if row.kind == "gap" else ", ".join(bare(change.name) for change in row.ops[:FIRST])
    return f"{time}{row.kind} {what}"


def summary(verdicts: list[Verdict]) -> list[str]:
    """Say how many causes are shown, how many pairs are in size, and what is refused."""
    planted = [verdict for verdict in verdicts if verdict.pair.kind == "planted"]
    refused = [verdict for verdict in verdicts if verdict.pair.kind == "refused"]
    nulls = [verdict for verdict in verdicts if verdict.pair.kind == "null"]
    heads = [headline(verdict.comparison, ("A", "B")) for verdict in nulls]
    shown = [row for verdict in planted for row in verdict.shown]
    sized = [verdict for verdict in planted if verdict.in_size is not None]
    calm = [verdict for verdict in sized if not verdict.pair.disturbed]
    return [
        f"shown    {sum(row is not None for row in shown)} of {len(shown)} planted causes are among the first {FIRST} "
        f"names of one of the first {FIRST} rows",
        f"in size  {sum(bool(verdict.in_size) for verdict in calm)} of {len(calm)} undisturbed pairs, "
        f"{sum(bool(verdict.in_size) for verdict in sized)} of {len(sized)} of all: these rows hold {100 * ENOUGH:.0f} "
        f"to {100 * TOO_MUCH:.0f} % of the difference",
        f"nulls    {sum(bool(head.settled) for head in heads)} of {len(nulls)} are settled, of "
        f"{sum(head.slower is not None for head in heads)} a run is said to have taken longer, in one process each",
        f"refused  {sum(verdict.right for verdict in refused)} of {len(refused)} that are not comparable, and "
        f"{sum(verdict.refused for verdict in planted)} of {len(planted)} planted pairs",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="pairs; all by default")
    parser.add_argument("--set", choices=SETS, default="first", help="which pairs (default: first)")
    parser.add_argument("--report", action="store_true", help="measure nothing")
    parser.add_argument("--blind", action="store_true", help="report nothing: for whoever must not see how rules do")
    parser.add_argument(
        "--again", action="store_true", help="measure what is there once more, and keep the better turn"
    )
    parser.add_argument("--turns", type=int, default=TURNS, help=f"how often both runs are measured (default: {TURNS})")
    parser.add_argument("--disturbed", action="store_true", help="measure once more what was disturbed")
    asked = parser.parse_args()
    everything = pairs(asked.set)
    chosen = [everything[name] for name in asked.names or everything]
    if not asked.report:
        for pair in chosen:
            stale = asked.disturbed and pair.measured and pair.disturbed
            if asked.again or stale or not pair.measured:
                measure(pair, asked.turns)
    if not asked.blind:
        print(report(everything))


if __name__ == "__main__":
    try:
        main()
    except RooflineError as error:
        sys.exit(str(error))
