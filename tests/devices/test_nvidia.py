"""NVIDIA's management library: what is said where it is missing, and words for its bits."""

from __future__ import annotations

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


@pytest.mark.gpu
def test_a_gpu_tells_its_name_and_clock():
    if nvidia.unavailable() is not None:
        pytest.skip(f"needs an NVIDIA GPU: {nvidia.unavailable()}")
    found = nvidia.snapshot()
    assert found.name
    assert found.memory > 1e9
    assert found.sm_clock_max > 1e8
