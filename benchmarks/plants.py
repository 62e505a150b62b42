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
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from roofline.analysis.analysis import analyze
from roofline.comparison.causes.findings import Finding, explained
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
}

STEPS = 60
#: How often both runs of a pair are measured without being disturbed; twice as many turns are tried at most.
TURNS = 2
#: The part of the difference that a finding has to explain, and the part beyond which it claims too much.
ENOUGH, TOO_MUCH = 0.8, 1.25
#: Two causes whose costs alone lie closer than this are not ranked.
DISTINCT = 1.25

#: So that no step waits for page faults: the C library gives nothing back and maps nothing anew.
_KEPT = {"MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_MMAP_THRESHOLD_": str(1 << 30)}
_MEMORY: dict[str, dict[str, str]] = {"kept": _KEPT, "returned": {}}


@dataclass(frozen=True, slots=True)
class Cause:
    """What was planted. slower: the run that has it; rules: ids that name it; alone: the pair with nothing else."""

    slower: str
    rules: tuple[str, ...]
    alone: str | None = None

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
        return _load(self.file("a")), _load(self.file("b"))

    def compared(self) -> Comparison:
        return _compared(self.file("a"), self.file("b"))


def pairs(name: str = "first") -> dict[str, Pair]:
    """The manifest of a set, by name and in its order."""
    manifest = SETS[name] / "plants.toml"
    entries: list[dict[str, Any]] = tomllib.loads(manifest.read_text(encoding="utf-8"))["pair"]
    return {entry["name"]: _pair(entry, SETS[name]) for entry in entries}


def _load(file: Path) -> Profile:
    return load(file) if file.suffix == ".json" else decode(gzip.decompress(file.read_bytes()), str(file))


@cache
def _compared(a: Path, b: Path) -> Comparison:
    """Once per pair, which stands alone and is what others are ranked by. Nothing is measured after it is compared."""
    return compare(_load(a), _load(b))


def _pair(entry: dict[str, Any], folder: Path) -> Pair:
    common = entry.get("arguments", [])
    return Pair(
        name=entry["name"],
        kind=entry["kind"],
        steps={side: entry[side] for side in "ab"},
        arguments={side: (*common, *entry.get(f"{side}_arguments", [])) for side in "ab"},
        memory={side: entry.get(f"{side}_memory", "kept") for side in "ab"},
        causes=tuple(
            Cause(slower=one["slower"], rules=tuple(one["rules"]), alone=one.get("alone"))
            for one in entry.get("causes", ())
        ),
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
        rating = _rated(*map(_load, made.values()))
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
    runs = analyze(a), analyze(b)
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
    variables |= {"OMP_WAIT_POLICY": "PASSIVE", **_MEMORY[pair.memory[side]]}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{pair.name}, {side}: {done.stderr.strip() or done.stdout.strip()}")
    return file


# Judging


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the explanation of one pair did. Times in seconds.

    smaller: what is told as small beside the findings. named: for each cause what of either names it with the right
    sign, or None. share: what these explain of the difference, where all causes are in one run.
    ranked: of two causes the one that costs more alone comes first.
    """

    pair: Pair
    comparison: Comparison
    findings: tuple[Finding, ...]
    smaller: tuple[Finding, ...]
    named: tuple[Finding | None, ...]
    share: float | None
    ranked: bool

    @property
    def right(self) -> bool:
        """Whether this is what the manifest says."""
        if self.pair.kind == "refused":
            return self.comparison.parity.verdict == "not comparable"
        if self.comparison.parity.verdict == "not comparable":
            return False
        if self.pair.kind == "null":
            return not self.findings
        first = bool(self.findings) and self.findings[0] in self.named
        enough = self.share is None or ENOUGH <= self.share <= TOO_MUCH
        return first and None not in self.named and enough and self.ranked

    @property
    def spurious(self) -> tuple[Finding, ...]:
        """Findings that name no planted cause."""
        return tuple(finding for finding in self.findings if finding not in self.named)


def judge(pair: Pair, everything: dict[str, Pair]) -> Verdict:
    """Explain a measured pair and hold it against its entry."""
    comparison = pair.compared()
    told = explained(comparison)
    named = tuple(_naming((*told.findings, *told.smaller), cause) for cause in pair.causes)
    costs = [
        _cost(everything[cause.alone]) if cause.alone and everything[cause.alone].measured else None
        for cause in pair.causes
    ]
    return Verdict(
        pair=pair,
        comparison=comparison,
        findings=told.findings,
        smaller=told.smaller,
        named=named,
        share=_share(comparison, pair.causes, named),
        ranked=_ranked(named, costs),
    )


def _naming(findings: Iterable[Finding], cause: Cause) -> Finding | None:
    return next((one for one in findings if one.rule in cause.rules and one.seconds * cause.sign > 0), None)


def _cost(pair: Pair) -> float:
    """What a cause costs alone [s]; always positive."""
    return abs(pair.compared().difference)


def _share(comparison: Comparison, causes: tuple[Cause, ...], named: tuple[Finding | None, ...]) -> float | None:
    """What the named findings explain of the difference; None where causes of both runs make up for each other."""
    if len({cause.sign for cause in causes}) != 1 or not comparison.difference:
        return None
    return sum(one.seconds for one in named if one is not None) / comparison.difference


def _ranked(named: tuple[Finding | None, ...], costs: list[float | None]) -> bool:
    """Whether of two causes the one that costs more alone comes first, where that is certain."""
    known = [(cost, abs(one.seconds)) for cost, one in zip(costs, named, strict=True) if cost and one is not None]
    return all(mine >= other for cost, mine in known for less, other in known if cost > DISTINCT * less)


# Reporting


def report(everything: dict[str, Pair]) -> str:
    """One line per pair, and how often the explanation is right."""
    verdicts = [judge(pair, everything) for pair in everything.values() if pair.measured]
    lines = [line(verdict) for verdict in verdicts]
    return "\n".join([*lines, "", *summary(verdicts)])


def line(verdict: Verdict) -> str:
    pair, comparison = verdict.pair, verdict.comparison
    findings = _listed(verdict.findings) or "nothing"
    if verdict.smaller:
        findings += f"; smaller: {_listed(verdict.smaller)}"
    flags = sorted({*comparison.a.flags, *comparison.b.flags} & {"contended", "inflated"})
    share = f"{100 * verdict.share:4.0f} %" if verdict.share is not None else "      "
    if machine_speed(comparison.a, comparison.b).uneven:
        flags.append("uneven pace")
    marks = f" ({', '.join(flags)})" if flags else ""
    refused = " REFUSED" if comparison.parity.verdict == "not comparable" else ""
    return (
        f"{'ok   ' if verdict.right else 'WRONG'} {pair.name:34s} {comparison.a.wall * 1e3:7.2f} - "
        f"{comparison.b.wall * 1e3:7.2f} = {comparison.difference * 1e3:+7.2f} ms  {share}  {findings}"
        f"{refused}{marks}"
    )


def _listed(findings: Iterable[Finding]) -> str:
    return ", ".join(f"{one.rule} {one.seconds * 1e3:+.2f}" for one in findings)


def summary(verdicts: list[Verdict]) -> list[str]:
    """Recall, precision and the rate of false findings."""
    planted = [one for one in verdicts if one.pair.kind == "planted"]
    nulls = [one for one in verdicts if one.pair.kind == "null"]
    refused = [one for one in verdicts if one.pair.kind == "refused"]
    causes = sum(len(one.named) for one in planted)
    named = sum(each is not None for one in planted for each in one.named)
    small = sum(each in one.smaller for one in planted for each in one.named)
    others = sum(each not in one.named for one in planted for each in one.smaller)
    findings = sum(len(one.findings) for one in planted)
    spurious = sum(len(one.spurious) for one in planted)
    return [
        f"recall                {named} of {causes} planted causes are named, with the right sign"
        + (f"; {small} as small beside another" if small else ""),
        f"pairs                 {sum(one.right for one in planted)} of {len(planted)}: first, ranked, and "
        f"{100 * ENOUGH:.0f} to {100 * TOO_MUCH:.0f} % of the difference",
        f"precision             {findings - spurious} of {findings} findings name a planted cause; beside them "
        f"{others} smaller ones name none",
        f"false findings        {sum(bool(one.findings) for one in nulls)} of {len(nulls)} nulls have one",
        f"refused               {sum(one.right for one in refused)} of {len(refused)} that are not comparable",
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
