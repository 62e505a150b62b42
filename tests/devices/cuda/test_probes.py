"""What the probes of a GPU are and how they divide their work, without a GPU."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import handmade
import msgspec

from roofline.core.executor import executor_of
from roofline.devices.cuda import generated, kernels, l2, launches, probes, timer
from roofline.devices.cuda.card import Grid
from roofline.devices.measure import _run
from roofline.devices.sampling import Best
from roofline.pytorch import time_cuda
from roofline.pytorch.inductor import loops


@pytest.fixture
def names():
    return [name for probe in probes.probes(False, "2026-01-01") for name in probe.names]


def test_families(names):
    families = {name.partition(".")[0] for name in names}
    assert families == {"matrix", "vector", "function", "dram", "cache", "launch", "link"}
    # Only functions are measured by two probes: by CUDA's own code and by generated code.
    assert {name.partition(".")[0] for name in names if names.count(name) > 1} == {"function"}


@pytest.mark.parametrize("replays", [0, 3])
def test_each_mechanism_that_launches_kernels_has_a_probe(names, replays):
    """What the recorder of a GPU's steps calls the mechanism, and what the analysis then asks the device for."""
    none = np.zeros(0)
    times = dict.fromkeys(("own", "overlap", "start", "walls", "corrected", "idle", "host"), none)
    counts = {"joined": 1.0, "events": 1, "dropped": 0, "causes": {}, "unmatched": {}, "unseen": 0, "kernels": ()}
    mechanism = time_cuda.mechanism(time_cuda.TimedCuda(**times, **counts, graph_launches=replays))
    profile = handmade.profile()
    profiled = msgspec.structs.replace(profile.profiled, mechanism=mechanism)
    asked = f"launch.{executor_of(msgspec.structs.replace(profile, profiled=profiled))}"
    assert asked == ("launch.cuda-graph" if replays else "launch.torch-eager")
    assert asked in names


def test_the_launch_floor_is_the_least_kind():
    """A fill ends before what reads: 0.9 us of it are the floor, with its own spread, 1 - 0.9 / 1.0."""
    seen = {"negating": [1.2e-6, 1.1e-6, 1.2e-6], "filling": [1.0e-6, 0.9e-6, 1.1e-6]}
    ceiling = launches.least(seen, " in a graph", "torch 2", "2026-01-01")
    assert (ceiling.value, ceiling.spread) == (0.9e-6, 0.1)
    assert ceiling.source == "measured: least duration of a kernel in a graph (filling), 6 kernels, torch 2"


def test_numbers_drawn_by_generated_code_have_a_probe(names):
    assert generated.PHILOX == loops.PHILOX
    assert f"function.{loops.PHILOX}" in names


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_where_nothing_works_everything_is_a_note(names):
    all_probes = [(probe, probe.names) for probe in probes.probes(False, "2026-01-01")]
    found, _ = _run(all_probes, 1, None)
    assert found.ceilings == {}
    assert found.notes.keys() >= set(names)
    assert all(found.notes.values())


def test_slices_and_passes():
    # 132 multiprocessors of an H100, 4 blocks of 256 threads each: one load of all threads reads
    # 132 x 4 x 256 x 16 = 2,162,688 bytes. 50 MiB are 24.2 of them: 24.
    whole = Grid(132 * 4, 256)
    assert whole.total * kernels.LOAD == 2_162_688
    assert l2.slice_of(50 * 2**20, whole) == 24
    assert l2.slice_of(1.0, whole) == 1
    # 1 GiB are 496.5 loads of each thread, so 497, and the next multiple of 8 is 504: 21 passes over 24 loads.
    assert l2.loads(24, whole) == 504
    # 16 x 50 MiB: 388 loads of each thread, 8 passes of which are more than 1 GiB
    assert l2.loads(388, whole) == 3104


def test_the_edge_of_the_cache_is_midway_between_its_bandwidth_and_that_of_the_memory():
    # TB/s by MiB: the cache's 5.5, the memory's 3.1; midway 4.3 is reached at 40 and not at 45
    curve = {5: 5.3, 20: 5.5, 35: 5.2, 40: 4.4, 45: 4.2, 100: 3.4, 800: 3.1}
    seen = {size * 2**20: Best("x", rate * 1e12, 0.0, 1) for size, rate in curve.items()}
    assert l2.find_edges(seen, 50.0 * 2**20) == (20 * 2**20, 40 * 2**20)
    assert l2.find_edges(seen, 1.0) is None


def test_what_lasts_is_the_median_of_the_second_half():
    # Eight calls of 1 ms, then four of 2 ms: 16 ms, the second half begins with the ninth call.
    assert timer.second_half([1e-3] * 8 + [2e-3] * 4) == 2e-3
    assert timer.second_half([3e-3]) == 3e-3
