"""The probes where there is a GPU: that they measure what they say, twice alike, and near the datasheet."""

from __future__ import annotations

import ctypes
from importlib.util import find_spec

import pytest

torch = pytest.importorskip("torch")

from roofline import devices
from roofline.devices import calibration
from roofline.devices.cuda import card, kernels, memory, nvrtc, probes, products, timer

#: Half of the datasheet's rate on an H100: cuBLASLt took a kernel made for sm_80 (torch 2.11, CUDA 13.0).
SLOW = {"matrix.int8"}
#: What an older GPU says of precisions that it has not got.
LACKS = "needs compute capability"

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU: torch.cuda.is_available() is False"),
    pytest.mark.xdist_group("timing"),
    pytest.mark.filterwarnings("default"),  # what compilers and drivers warn of is no defect of ours
]


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory):
    """Two short calibrations of this GPU, each in a process of its own as `roofline calibrate` takes them.

    Each has a cache of its own: in one, the second would be merged with the first.
    """
    made = []
    with pytest.MonkeyPatch.context() as patch:
        for _ in range(2):
            patch.setenv("ROOFLINE_CACHE", str(tmp_path_factory.mktemp("cache")))
            made.append(calibration.calibrate("cuda"))
    return tuple(made)


@pytest.fixture(scope="module")
def known():
    device = card.describe()
    found = devices.datasheet(device.name, device.memory, device.kind)
    if found is None:
        pytest.skip(f"needs a GPU with a datasheet here, not {device.name}")
    return found


@pytest.mark.parametrize("number", range(len(probes.probes(False, ""))))
def test_a_probe_finds_a_ceiling_or_says_why_not(number):
    probe = probes.probes(False, "2026-01-01")[number]
    with torch.inference_mode():
        finding = probe.run(probe.names)
    assert set(finding.ceilings) | set(finding.notes) >= set(probe.names)
    assert {name: why for name, why in finding.notes.items() if not why.startswith(LACKS)} == {}
    assert all(ceiling.value > 0 for ceiling in finding.ceilings.values())


def test_nothing_is_missing_and_nothing_is_flagged(calibrated):
    for device in calibrated:
        missing = device.conditions.get("not measured", "")
        assert [one for one in missing.split("; ") if one and LACKS not in one] == []
        assert {name: c.flag for name, c in device.ceilings.items() if c.flag and name not in SLOW} == {}
        assert device.caches[-1].level == "llc"


def test_two_calibrations_are_alike(calibrated):
    first, second = (device.ceilings for device in calibrated)
    assert first.keys() == second.keys()
    apart = {
        name: 1 - min(a, b) / max(a, b) for name in first if (a := first[name].value) and (b := second[name].value)
    }
    # A link is shared with the host, whose load is not ours; a launch is told in steps of 32 ns on some GPUs.
    assert {
        name: share for name, share in apart.items() if share > 0.1 and name.split(".")[0] not in ("link", "launch")
    } == {}
    assert {name: share for name, share in apart.items() if share > 0.3} == {}


def test_ceilings_are_near_the_datasheet(calibrated, known):
    measured = calibrated[0]
    shares = {
        name: ceiling.value / figure.value
        for name, figure in known.ceilings.items()
        if (ceiling := measured.ceilings.get(name)) is not None and ceiling.source.startswith("measured")
    }
    assert shares
    assert {name: share for name, share in shares.items() if not 0.6 <= share <= 1.03 and name not in SLOW} == {}


def test_patterns_of_memory(calibrated):
    for device in calibrated:
        assert device.rate("dram.read") >= 0.85 * device.rate("dram.copy")
        assert device.rate("cache.llc") > device.rate("dram.read")
        assert 0 < device.llc <= card.l2_size()
        assert "reads and writes" in device.caches[-1].source


def test_launches(calibrated):
    for device in calibrated:
        eager, graph = device.rate("launch.torch-eager"), device.rate("launch.cuda-graph")
        assert 1e-7 < graph <= 1.5 * eager < 1e-3
        # a fill waits for no load, so that the least kernel is no negation
        assert "negating" not in device.ceilings["launch.torch-eager"].source


def test_products_last_at_a_clock(calibrated):
    for name, ceiling in calibrated[0].ceilings.items():
        if name.startswith("matrix."):
            assert 0 < ceiling.sustained <= 1.03 * ceiling.value
            assert ceiling.clock is None or 1e8 < ceiling.clock < 5e9


def test_functions_are_faster_than_memory(calibrated):
    # arithmetic in registers is faster than loading its operands: an exp reads and writes 8 bytes
    assert calibrated[0].rate("function.exp") > calibrated[0].rate("dram.copy") / 8


@pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton")
def test_generated_code_is_measured(calibrated):
    assert "Philox of Triton" in calibrated[0].ceilings["function.random (Philox)"].source
    # CUDA's division is exact and takes many more instructions than the approximate one of Triton's sigmoid.
    assert "of Triton" in calibrated[0].ceilings["function.sigmoid"].source


def test_our_kernels_compute_what_they_say():
    # 3 turns of 4 additions of 1: each thread's number, its place in the block over the block's size, plus 12
    grid = card.Grid(blocks=2, threads=64)
    out = torch.empty(grid.total, device="cuda")
    nvrtc.kernel(kernels.repeated("x + T(1)", "float", 4), "repeated")(grid, out, ctypes.c_int(3))
    assert out.tolist() == pytest.approx([thread / 64 + 12 for _ in range(2) for thread in range(64)])


def test_our_kernel_reads_every_number():
    # One -1 among zeros makes one thread's sum -1, which it writes: wherever it stands, it is read, and once.
    data = torch.zeros(2**24, device="cuda")
    candidate = memory.loads(data)
    read = int(candidate.work) // 4
    assert read <= data.numel()
    for place in (0, 5, read // 2 + 3, read - 1):
        data.zero_()
        data[place] = -1.0
        out = candidate.run.args[2]
        out.zero_()
        candidate.run()
        assert out.item() == -1.0, place


def test_what_a_first_call_prepares_is_not_timed():
    calls = []
    assert len(timer.events(lambda: calls.append(1), 0.0)) == 1
    assert len(calls) == 2
    # Later calls are told by their time alone: one to see how long it takes, then as many as fit, at most 1000.
    assert len(timer.events(lambda: calls.append(1), 1.0)) == 1001
    assert len(calls) == 2 + 1001


def test_code_that_does_not_compile_says_so():
    with pytest.raises(RuntimeError, match="identifier"):
        nvrtc.kernel(kernels.repeated("nothing_of_the_kind(x)", "float", 1), "repeated")


@pytest.mark.skipif(
    torch.cuda.is_available() and torch.cuda.get_device_capability() < (8, 0),
    reason="needs a CUDA GPU with TF32 (compute capability 8.0)",
)
def test_ieee_and_tf32_products_differ():
    a, b = (torch.rand(512, 512, device="cuda") for _ in range(2))
    with products.tf32(False):
        exact = a @ b
    with products.tf32(True):
        rounded = a @ b
    assert not torch.equal(exact, rounded)
