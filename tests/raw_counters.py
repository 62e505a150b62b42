"""The counted steps of an H100 (docs/measured/h100): their profiles, and the tables that Nsight Compute printed."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from roofline.core.schema import Profile, load
from roofline.counters import joining
from roofline.counters.nsight_compute import Kernel, parse

H100 = Path(__file__).resolve().parents[1] / "docs" / "measured" / "h100"
#: Kernels on one element before the step (benchmarks/gpu/one_step.py).
NOTHING = 10


def profile(mode: str) -> Profile:
    """Load the profile of the counted step, by its mode."""
    return load(H100 / f"ncu-{mode}-profile.json")


def sums(mode: str) -> dict[str, float]:
    """Return the bytes of all kernels of the counted step: dram_read, dram_written, l2."""
    whole: dict[str, float] = json.loads((H100 / f"ncu-{mode}-none.json").read_text())["all kernels"]
    return whole


def table(mode: str) -> list[str]:
    """Return the lines of ncu's table as it was printed, kernels on one element before those of the step."""
    return gzip.decompress((H100 / f"ncu-{mode}-none.raw.csv.gz").read_bytes()).decode().splitlines(keepends=True)


def raw(mode: str, *more: str) -> str:
    """Return ncu's table of the step alone, behind rows of more kernels."""
    lines = table(mode)
    rows = next(number for number, line in enumerate(lines) if line.startswith('"ID"')) + 2  # behind a line of units
    return "".join((*lines[:rows], *more, *lines[rows + NOTHING :]))


def kernels(mode: str) -> list[Kernel]:
    """Return the kernels of the step in the order of their launches."""
    return parse(raw(mode), "ncu.csv")


def counted(mode: str) -> Profile:
    """Return the profile of the step with its counters joined."""
    step = profile(mode)
    return joining.count(step, joining.join(step, kernels(mode)), "ncu.csv")
