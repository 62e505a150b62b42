"""Projections against what ran: steps that were recorded on two devices, each carried to the other.

python benchmarks/projections.py [TRACES]     write the table of docs/whatif.md anew

TRACES: the folder of the public traces that the page names; without it ../shared/traces. They are not kept here.
The CPU profiles are (docs/measured/threads), recorded by

    for n in 1 2; do roofline profile MODEL --backend torch --threads $n -o docs/measured/threads/MODEL-$n.json; done
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from roofline import devices
from roofline.analysis.analysis import Analysis, analyze
from roofline.core.device import Device
from roofline.core.schema import load
from roofline.importing import read
from roofline.projection.project import project

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "whatif.md"
THREADS = ROOT / "docs" / "measured" / "threads"
TRACES = ROOT.parent / "shared" / "traces"
MARKS = ("<!-- written by benchmarks/projections.py -->", "<!-- to here -->")
COLUMNS = ("step", "from", "to", "ran here", "projected", "range", "ran there", "off", "in the range")

#: The traces of one step on two devices, and the names of the devices.
RECORDED = (
    ("small BERT", ("h100_bert_small_infer", "h100-sxm"), ("mi300x_bert_small_infer", "mi300x")),
    ("Qwen 0.5B", ("h100_qwen_0.5b_infer", "h100-sxm"), ("mi300x_qwen_0.5b_infer", "mi300x")),
)


@dataclass(frozen=True, slots=True)
class Projection:
    """One step carried from one device to another, and what it took there: times of its ops per step [s]."""

    step: str
    here: str
    there: str
    before: float
    projected: float
    interval: tuple[float, float]
    measured: float

    @property
    def off(self) -> float:
        """How much more was projected than was measured."""
        return self.projected / self.measured - 1

    @property
    def holds(self) -> bool:
        """Whether the range holds what was measured."""
        return self.interval[0] <= self.measured <= self.interval[1]


def projections(traces: Path) -> Iterator[Projection]:
    """All that can be held against a measurement, both ways."""
    for step, *sides in RECORDED:
        runs = [(analyze(*read([traces / f"{name}.json.gz"])), devices.load(device)) for name, device in sides]
        yield from _both_ways(step, runs)
    for file in sorted(THREADS.glob("*-1.json")):
        pair = [analyze(load(file.with_name(f"{file.stem[:-1]}{threads}.json"))) for threads in (1, 2)]
        yield from _both_ways(f"{file.stem[:-2]}, PyTorch", [(one, one.device) for one in pair])


def _both_ways(step: str, runs: list[tuple[Analysis, Device]]) -> Iterator[Projection]:
    for (here, _), (there, device) in (runs, runs[::-1]):
        profile = here.profile
        sheet = devices.datasheet(profile.device.name, profile.device.memory, profile.device.kind)
        found = project(here, device, sheet)
        total, measured = found.total, there.busy
        yield Projection(step, _name(here), _name(there), total.measured, total.projected, total.interval, measured)


def _name(run: Analysis) -> str:
    threads = run.device.conditions.get("threads")
    return run.device.name if threads is None else f"{threads} thread{'s' if threads != '1' else ''}"


def table(found: list[Projection]) -> str:
    """One line per projection, and what they come to."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---|---|---|" + "---:|" * (len(COLUMNS) - 4) + "---|"]
    for one in found:
        low, high = (f"{end * 1e3:.3f}" for end in one.interval)
        times = (f"{value * 1e3:.3f}" for value in (one.before, one.projected))
        cells = (one.step, one.here, one.there, *times, f"{low} to {high}", f"{one.measured * 1e3:.3f}")
        lines.append("| " + " | ".join((*cells, f"{one.off:+.0%}", "yes" if one.holds else "no")) + " |")
    median = statistics.median(abs(one.off) for one in found)
    held, widest = sum(one.holds for one in found), max(one.interval[1] / one.interval[0] for one in found)
    lines += ["", f"Median error {median:.0%}; {held} of {len(found)} in their range; the widest spans {widest:.2f}."]
    return "\n".join(lines)


def page(text: str, found: list[Projection]) -> str:
    """The page with the table between its marks written anew."""
    before, _, rest = text.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    return f"{before}{MARKS[0]}\n\n{table(found)}\n\n{MARKS[1]}{after}"


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else TRACES
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), list(projections(folder))), encoding="utf-8")
