"""What was seen of an H100's L2 cache (docs/measured/h100/cache.json), and the usable size that follows from it."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from roofline.devices.sampling import usable_size

DOCS = Path(__file__).resolve().parents[2] / "docs"
SEEN: dict[str, Any] = json.loads((DOCS / "measured" / "h100" / "cache.json").read_text(encoding="utf-8"))
MIB = 2**20
#: Rows of the page: the title; how many times the listed size is read, written, and touched as distinct memory.
ROWS = {
    "in place": ("in place (`mul_`)", 1, 1, 1),
    "sum": ("sum", 1, 0, 1),
    "fill": ("fill", 0, 1, 1),
    "fill and sum": ("fill, then sum", 1, 1, 1),
    "to and fro": ("multiply one half into the other, and back", 1, 1, 1),
    "fill and multiply": ("fill, then multiply into as much other memory", 1, 2, 2),
}


def half_at(curve: list[tuple[float, float]]) -> float:
    """The size at which a share first reaches a half, on a line between two sizes."""
    for (size, share), (next_size, next_share) in pairwise(curve):
        if share < 0.5 <= next_share:
            return size + (next_size - size) * (0.5 - share) / (next_share - share)
    raise AssertionError(curve)


@pytest.mark.parametrize("name", SEEN["repeated"])
def test_where_half_comes_from_memory_and_goes_to_it(name: str) -> None:
    """Each share is what came from or went to memory over what kernels read or wrote, by distinct memory."""
    title, reads, writes, distinct = ROWS[name]
    cells = []
    for way, times in ((0, reads), (1, writes)):
        curve = [
            (distinct * size, sum(kernel[way] for kernel in kernels) / (times * size))
            for size, *kernels in SEEN["repeated"][name]["rows"]
            if times
        ]
        cells.append(f"{half_at(curve):.0f}" if curve else "–")
    assert f"| {title} | {cells[0]} | {cells[1]} |" in (DOCS / "h100.md").read_text(encoding="utf-8")


def test_half_of_the_cache_may_be_dirty() -> None:
    """Behind two fills of different memory: all of 16 MiB is still to be written to memory, and 24 of 28 to 80 MiB."""
    left = [(x + z, x + z - first[1] - second[1]) for x, z, first, second, _ in SEEN["dirty"]["fill"]]
    assert [amount for size, amount in left if size == 16] == pytest.approx([16], abs=0.1)
    most = [amount for size, amount in left if size >= 28]
    assert len(most) == 16
    assert most == pytest.approx([24] * 16, abs=0.6)


@pytest.mark.parametrize(
    ("kernels", "size", "uncapped"),
    [
        ("mul_ in place, one kernel a pass", 34, 34),
        # What was stored is the largest size of the calibration's that the cache could hold, 49.5 MiB.
        ("reads and writes of slices, all passes in one kernel", 50, 59.8125),
        ("reads of slices, all passes in one kernel", 47.4375, 47.4375),
    ],
)
def test_the_usable_size_by_kernels(kernels: str, size: float, uncapped: float) -> None:
    curve = [(mib * MIB, rate) for mib, rate in SEEN["rates"][kernels]]
    for cap, expected in ((50.0 * MIB, size), (None, uncapped)):
        found = usable_size(curve, 0.0, 50.0 * MIB, cap=cap, next_level=curve[-1][1])
        assert found is not None
        assert found[1] == expected * MIB
