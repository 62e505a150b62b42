"""NVIDIA's management library: what is said where it is missing, and words for its bits."""

from __future__ import annotations

import os
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from roofline.devices import calibration, nvidia
from roofline.errors import MissingError

absent = pytest.mark.skipif(nvidia.unavailable() is None, reason="an NVIDIA GPU is here; tested where there is none")


@absent
def test_without_a_gpu_there_is_a_reason():
    assert nvidia.snapshot() is None
    assert nvidia.snapshots() == ()
    reason = nvidia.unavailable()
    assert reason is not None
    assert reason.endswith((".", "?"))


@absent
def test_sampling_without_a_gpu_is_harmless():
    with nvidia.Sampler(interval=0.01) as sampler:
        pass
    assert sampler.clocks == []
    assert not sampler.reasons


@absent
def test_auto_is_the_cpu_and_cuda_is_missing():
    assert calibration.resolve("auto") == "cpu"
    with pytest.raises(MissingError, match="--device cpu"):
        calibration.resolve("cuda")


def test_throttle_bits_in_words():
    pynvml = pytest.importorskip("pynvml")
    both = pynvml.nvmlClocksEventReasonSwPowerCap | pynvml.nvmlClocksEventReasonHwThermalSlowdown
    assert nvidia.throttle_words(pynvml, both) == ("power cap", "thermal (hardware)")
    assert nvidia.throttle_words(pynvml, 0) == ()


class Driver:
    """NVML with one GPU, on which the processes `running` compute; None: it does not tell."""

    class NVMLError(Exception):
        pass

    def __init__(self, running: list[int] | None) -> None:
        self.running = running

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        if index:
            raise self.NVMLError
        return "handle"

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[SimpleNamespace]:
        if self.running is None:
            raise self.NVMLError
        return [SimpleNamespace(pid=number) for number in self.running]


@pytest.mark.parametrize(
    ("running", "shares", "is_free"),
    [
        ([os.getpid()], False, True),
        ([os.getpid(), os.getppid()], False, True),  # the process that started this one waits for it
        ([os.getpid(), 2**30], True, False),
        # No process, or numbers of another container: nobody tells whether one of them is this one.
        ([], None, True),
        ([2**30], None, False),
        (None, None, False),
    ],
)
def test_other_processes_on_a_gpu(
    running: list[int] | None, shares: bool | None, is_free: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvidia, "_library", lambda: nullcontext(Driver(running)))
    assert (nvidia.is_shared(), nvidia.is_free()) == (shares, is_free)
    assert (nvidia.is_shared(7), nvidia.is_free(7)) == (None, False)  # there is no such GPU


def test_without_the_library_nobody_tells_who_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia, "_library", lambda: nullcontext("There is no driver."))
    assert (nvidia.is_shared(), nvidia.is_free()) == (None, False)


@pytest.mark.gpu
def test_a_gpu_tells_its_name_and_clock():
    if nvidia.unavailable() is not None:
        pytest.skip(f"needs an NVIDIA GPU: {nvidia.unavailable()}")
    found = nvidia.snapshot()
    assert found.name
    assert found.memory > 1e9
    assert found.sm_clock_max > 1e8


class _Driver:
    """A driver that names its power cap, at some clocks [MHz]."""

    NVMLError = RuntimeError
    NVML_CLOCK_SM = 1

    def __init__(self, *clocks: int) -> None:
        self.clocks = list(clocks)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetMaxClockInfo(self, handle: int, kind: int) -> int:
        return 1980

    def nvmlDeviceGetClockInfo(self, handle: int, kind: int) -> int:
        return self.clocks.pop(0) if len(self.clocks) > 1 else self.clocks[0]

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: int) -> int:
        return 4

    nvmlClocksEventReasonSwPowerCap = 4


@pytest.mark.parametrize(("clock", "reasons"), [(1980, {}), (1365, {"power cap": 1})])
def test_a_short_run_is_sampled_once_and_a_reason_counts_below_the_highest_clock(
    clock: int, reasons: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvidia, "_library", lambda: nullcontext(_Driver(clock)))
    with nvidia.Sampler(interval=60) as sampler:
        pass
    assert sampler.clocks == [clock * 1e6]
    assert sampler.reasons == reasons
