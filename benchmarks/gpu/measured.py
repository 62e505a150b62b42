"""The predictions against what was measured: the table of kept profiles in docs/h100.md.

python benchmarks/gpu/measured.py        write it anew from profiles/h100
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from plan import ROOT
from predictions import COUNTED, rows
from report import least_time, share

from roofline.analysis.analysis import Analysis, analyze
from roofline.core.schema import load

PAGE = ROOT / "docs" / "h100.md"
FOLDER = ROOT / "profiles" / "h100"
MARKS = ("<!-- written by benchmarks/gpu/measured.py -->", "<!-- to here -->")
COLUMNS = (
    *("row", "predicted least ms", "step ms", "kernels ms", "of the least", "of roof"),
    *("compute", "memory", "launch", "GPU idle", "waits for the host"),
)


def profiles(folder: Path = FOLDER) -> dict[str, Path]:
    """The kept profiles of rows of the plan, in its order."""
    return {name: folder / f"{name}.json" for name in rows() if (folder / f"{name}.json").is_file()}


def page(text: str, folder: Path = FOLDER) -> str:
    """A page with the table between its marks written anew."""
    before, _, rest = text.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    return f"{before}{MARKS[0]}\n\n{table(folder)}\n\n{MARKS[1]}{after}"


def table(folder: Path) -> str:
    """One line per profile. Shares of bounds and idle time are of the step, `of the least` is step over prediction."""
    counted = json.loads(COUNTED.read_text(encoding="utf-8"))
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---|" + "---:|" * (len(COLUMNS) - 2) + "---|"]
    for name, file in profiles(folder).items():
        lines.append(f"| {name} | " + " | ".join(line(name, analysed(file), counted)) + " |")
    return "\n".join(lines)


@cache
def analysed(file: Path) -> Analysis:
    """Analyse a profile once."""
    return analyze(load(file))


def line(name: str, analysis: Analysis, counted: dict[str, Any]) -> list[str]:
    """The cells of one profile."""
    least, total = least_time(name, analysis, counted), analysis.total
    bounds = (total.bounds.get(bound, 0.0) for bound in ("compute", "memory", "overhead"))
    each = analysis.most_per_launch
    return [
        "–" if least is None else f"{least * 1e3:.3f}",
        f"{analysis.wall * 1e3:.3f}",
        f"{analysis.busy * 1e3:.3f}",
        "–" if least is None else f"{analysis.wall / least:.2f}",
        share(total.attained),
        *(share(seconds / analysis.wall) for seconds in bounds),
        "–" if analysis.gap_told is None else share(analysis.gap_told / analysis.wall),
        "" if not analysis.waits_for_host else "yes" if each is None else f"up to {each * 1e6:.0f} µs a launch",
    ]


def main() -> None:
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"Wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
