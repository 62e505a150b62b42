"""Counted bytes as the traffic of ops: floors, bounds, and where they are left out. The step is that of handmade.py."""

from __future__ import annotations

import json

import handmade
import numpy as np
import pytest
import raw_counters
from msgspec.structs import replace

import roofline
from roofline import units
from roofline.analysis.analysis import Analysis, analyze
from roofline.analysis.caches.traffic import cold_traffic
from roofline.comparison.common_ceilings import analyze_together
from roofline.content.facts import evidence
from roofline.content.json_document import document
from roofline.content.ops import columns
from roofline.content.points import ALL, COUNTED, points
from roofline.core.schema import Counters, Imported, Profile
from roofline.core.vocabulary import BOUNDS
from roofline.renderers import perfetto
from roofline.renderers.report.points import facts

MB = 1e6
OPS = len(handmade.OPS)


def counted(**changes: object) -> Profile:
    """The step with 1 MB read and 4 MB written by `embedding`, 0.3 and 0 MB by `gelu`; no other op was counted."""
    read, written = ([None] * OPS for _ in range(2))
    read[0], written[0], read[2], written[2] = 1 * MB, 4 * MB, 0.3 * MB, 0.0
    return handmade.profile(**{"counters": counters(read, written), **changes})


def counters(read: list[float | None], written: list[float | None]) -> Counters:
    return Counters(
        tool="Nsight Compute", file="ncu.csv", kernels=2, unjoined=0, joined=1.0, busy=1.0,
        read=tuple(read), written=tuple(written),
    )  # fmt: skip


def floors(analysis: Analysis) -> list[float]:
    """[us], of the ops that are counted and of the product between them."""
    return [float(floor) * 1e6 for floor in analysis.table.floor[:3]]


def test_counted_bytes_are_the_traffic_of_an_op() -> None:
    """embedding: 1 + 4 MB / 10 GB/s = 500 us where the rule has 300; gelu: 0.3 MB from main memory take 30 us, and
    0.8 MB from the cache only 20; the product stays at 2000 us."""
    before, after = analyze(handmade.profile()), analyze(counted())
    assert floors(before) == pytest.approx([300, 2000, 20])
    assert floors(after) == pytest.approx([500, 2000, 30])
    assert after.table.cold[:3] == pytest.approx([5 * MB, before.table.cold[1], 0.3 * MB])
    assert [BOUNDS[bound] for bound in after.table.bound[:3]] == ["memory", "compute", "memory"]
    assert after.table.ceiling[2] == "dram.copy"
    np.testing.assert_array_equal(after.table.floor[3:], before.table.floor[3:])
    assert [after.total.counted, after.total.uncounted] == [2, OPS - 2]
    assert (after.total.counted_read, after.total.counted_written) == pytest.approx((1.3 * MB, 4 * MB))
    assert (before.total.counted, before.total.uncounted) == (0, 0)


def test_the_mix_of_counted_bytes_says_which_ceiling_holds() -> None:
    """4 of 5 MB are written: nearer to writing (16 GB/s) than to copying (10), as its formula is: 312.5 us."""
    profile = counted(device=handmade.device(dram_write=16e9))
    analysis = analyze(profile)
    assert analysis.table.ceiling[0] == "dram.write"
    assert floors(analysis)[0] == pytest.approx(312.5)


def test_an_import_gets_points_for_ranges() -> None:
    """Without a history of buffers floors are ranges; what was counted is a point."""
    whole = analyze(counted(imported=Imported(buffers=False)))
    table = whole.table
    np.testing.assert_array_equal(table.floor[[0, 2]], table.floor_high[[0, 2]])
    assert floors(whole)[0] == pytest.approx(500)
    assert (table.floor < table.floor_high).any()
    assert table.cold_reason == "no buffers"
    every = [0.0] * OPS
    assert analyze(counted(counters=counters(every, every), imported=Imported(buffers=False))).table.cold_reason is None


def test_another_device_knows_nothing_of_what_was_counted_here() -> None:
    other = replace(handmade.device(), name="Other Device")
    plain, profile = handmade.profile(), counted()
    for ours, theirs in zip(cold_traffic(profile, other), cold_traffic(plain, other), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert roofline.whatif(profile, other).seconds == roofline.whatif(plain, other).seconds


def test_what_was_counted_here_is_shown_under_no_other_device() -> None:
    """Floors of the other device follow from formulas; counted bytes next to them would be those of this one."""
    here, there = (analyze(counted(), replace(handmade.device(), name=name)) for name in ("Round Device", "Other"))
    assert isinstance(here, Analysis)
    assert isinstance(there, Analysis)
    assert (here.total.counted, there.total.counted, there.total.uncounted) == (2, 0, 0)
    # FLOP of gelu over 0.3 MB that were counted, over 0.8 MB by its formula.
    assert [_bubble(analysis, "aten::gelu") for analysis in (here, there)] == pytest.approx([4 / 3, 0.5])
    assert [COUNTED in points(analysis).placed[0].intensity for analysis in (here, there)] == [True, False]
    assert ["counted" in dict(facts(analysis, points(analysis).placed[0])) for analysis in (here, there)] == [
        True,
        False,
    ]
    rows = [document(analysis, by="op")["ops"][0]["counted_bytes_written"] for analysis in (here, there)]
    assert rows == [4 * MB, None]
    assert [document(analysis)["counters"] is None for analysis in (here, there)] == [False, True]
    assert [np.isnan(columns(analysis)["counted_bytes_read"][0]) for analysis in (here, there)] == [False, True]
    assert ["counters" in dict(evidence.facts(analysis)) for analysis in (here, there)] == [True, False]
    arguments = [json.loads(perfetto.render(analysis, None))["traceEvents"][-1]["args"] for analysis in (here, there)]
    assert ["counted bytes read" in one for one in arguments] == [True, False]


def _bubble(analysis: Analysis, name: str) -> float:
    point = next(point for point in points(analysis).placed if point.name == name)
    return point.intensity.get(COUNTED) or point.intensity[ALL]


def test_runs_are_compared_by_counted_bytes_only_where_both_have_them() -> None:
    """Where both do, each has its own: 2 MB more in one run are 200 us."""
    ours, plain = counted(), handmade.profile()
    for one in analyze_together(ours, plain):
        assert floors(one) == pytest.approx([300, 2000, 20])
    assert ours.counters is not None
    more = replace(ours, counters=replace(ours.counters, written=(6 * MB, *ours.counters.written[1:])))
    here, there = analyze_together(ours, more)
    assert (floors(here)[0], floors(there)[0]) == pytest.approx((500, 700))


@pytest.mark.parametrize(("mode", "column"), [("infer", 1), ("train", 3)])
def test_what_an_h100_reached(mode: str, column: int) -> None:
    """Pointwise of inference: 1.66 GB at 3.03 TB/s are 82 % of 669 us. No op is above its ceiling.

    The table of the page has each class, by the rule and by what was counted.
    """
    plain, by_counters = analyze(raw_counters.profile(mode)), analyze(raw_counters.counted(mode))
    assert by_counters.above_ceiling == 0
    assert "bytes counted" in str(by_counters)
    assert "bytes counted" not in str(plain)
    page = (raw_counters.H100.parents[1] / "counters.md").read_text(encoding="utf-8").split("## An H100")[1]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if " % |" in line]
    assert len(rows) == 7
    for name, *shares in rows:
        if shares[column] != "–":
            totals = (plain.by("class")[name], by_counters.by("class")[name])
            reached = [units.percent_between(total.attained, total.attained_high) for total in totals]
            assert shares[column - 1 : column + 1] == reached


def test_bytes_through_the_cache_are_no_roof() -> None:
    """Over the bandwidth of the cache they take longer than the op did, by more than the 3 % of a ceiling's spread."""
    said, most = [], 0.0
    for mode, name in (("infer", "inference"), ("train", "training")):
        profile = raw_counters.counted(mode)
        assert profile.counters is not None
        own, bandwidth = analyze(profile).table.own, profile.device.ceilings["cache.llc"].value
        through = profile.counters.through_cache
        ratios = [moved / bandwidth / own[op] for op, moved in enumerate(through) if moved is not None]
        said.append(f"{sum(ratio > 1.03 for ratio in ratios)} of {len(ratios)} {name}")
        most = max(most, *ratios)
    page = " ".join((raw_counters.H100.parents[1] / "counters.md").read_text(encoding="utf-8").split())
    assert f"put {' and '.join(said)} ops above the ceiling of the cache, by up to {100 * (most - 1):.0f} %" in page
