"""What two other tools say of the same eight ranks: saved figures of HolisticTraceAnalysis, and TraceLens' formulas."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from roofline.ranks import Job

SAID: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "ranks_by_others.json").read_bytes())
HTA, TRACELENS = SAID["hta"], SAID["tracelens"]
#: [s] Times in these traces are whole microseconds.
TICK = 1e-6
#: Before the step of these two ranks the trace has kernels of the step before, which HTA counts.
WITH_EARLIER = (1, 3)
ALONE = [rank for rank in range(8) if rank not in WITH_EARLIER]


def test_hta_has_the_same_times_of_each_rank(recorded_job: Job, rank_files: list[Path]) -> None:
    times = {name: [1e-6 * value for value in values] for name, values in HTA["temporal_breakdown_us"].items()}
    for rank in ALONE:
        row, copies = recorded_job.ranks[rank], _copies(rank_files[rank])
        assert row.wall == pytest.approx(times["kernel_time"][rank], abs=TICK)
        assert row.idle == pytest.approx(times["idle_time"][rank], abs=TICK)
        # It counts copies that nothing else hides as neither idle nor computing, and so do these with the collectives.
        assert row.computing == pytest.approx(times["compute_time"][rank] + copies, abs=TICK)
        assert row.exposed == pytest.approx(times["non_compute_time"][rank] - copies, abs=TICK)
    for rank in WITH_EARLIER:
        step, whole = recorded_job.ranks[rank].wall, times["kernel_time"][rank]
        assert step < whole - 100 * TICK
        assert _device(rank_files[rank])[-1][1] - _device(rank_files[rank])[0][0] == pytest.approx(whole, abs=TICK)


def test_hta_has_the_same_overlap(recorded_job: Job) -> None:
    """It prints two digits of a percentage; earlier kernels, of which none overlaps, matter to neither."""
    hidden = [100 * (row.hidden or 0) for row in recorded_job.ranks]
    assert hidden == pytest.approx(HTA["comp_comm_overlap_pctg"], abs=0.005)


def test_hta_names_the_same_straggler_among_as_many_as_it_is_asked_for(recorded_job: Job) -> None:
    assert recorded_job.straggler is not None
    assert HTA["potential_stragglers"]["1"] == [recorded_job.straggler.rank]
    # By the start of one kernel, without asking whether a rank differs from the others: the second waits 3.3 ms.
    assert set(HTA["potential_stragglers"]["2"]) == {2, 7}
    assert recorded_job.ranks[2].last == 0


def test_tracelens_has_the_same_waiting_by_the_clocks_of_the_traces(recorded_job: Job) -> None:
    """It takes starts as they are; here, by durations, they differ by how far ends are apart by those clocks."""
    apart = 1e-6 * sum(TRACELENS["skew_in_end_us"])
    for row, waiting, communication in zip(
        recorded_job.ranks, TRACELENS["total_wait_us"], TRACELENS["total_nccl_us"], strict=True
    ):
        assert row.waiting == pytest.approx(1e-6 * waiting, abs=apart)
        assert row.communication == pytest.approx(1e-6 * communication, abs=8 * TICK)
    assert [row.last for row in recorded_job.ranks] == TRACELENS["times_arrived_last"]
    shortest = sorted(round(1e6 * row.shortest) for row in recorded_job.collectives if row.runs == 1)
    assert shortest == [*sorted(TRACELENS["comm_latency_us"])[:3], 20, 69, 86]


def _device(file: Path) -> list[tuple[float, float, str]]:
    """Return start, end [s] and name of each event of the device, in order of ends."""
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    device = ("kernel", "gpu_memcpy", "gpu_memset")
    spans = [(1e-6 * e["ts"], 1e-6 * (e["ts"] + e["dur"]), e["name"]) for e in events if e.get("cat") in device]
    return sorted(spans, key=lambda span: span[1])


def _copies(file: Path) -> float:
    """Return how long copies and fills ran while no kernel of computation did [s]."""
    events = [span for span in _device(file) if "nccl" not in span[2].lower()]
    kernels = [span for span in events if not span[2].startswith("Mem")]
    return _union(events) - _union(kernels)


def _union(spans: Iterable[tuple[float, float, str]]) -> float:
    covered, until = 0.0, 0.0
    for start, end, _ in sorted(spans):
        covered += max(0.0, end - max(start, until))
        until = max(until, end)
    return covered
