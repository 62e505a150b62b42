"""Traces of a real GPU, and what the live runs that recorded them measured: an import says the same of the same trace.

tests/data/h100: a tiny BERT (2 layers of 64, batch 2, length 32) on an H100 80GB HBM3, driver 580.159, with PyTorch
2.11.0+cu130 and JAX 0.11.2, recorded on 2026-11-22 by benchmarks/gpu/keep_trace.py. Each profile is the live run's.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from roofline import importing
from roofline.core.schema import Profile, decode

HERE = Path(__file__).resolve().parents[1] / "data" / "h100"
TORCH = {
    "torch-infer": "torch-infer.0.trace.json.gz",
    "torch-compile-default-train": "torch-compile-default-train.0.trace.json.gz",
    "torch-compile-reduce-overhead-infer": "torch-compile-reduce-overhead-infer.1.trace.json.gz",
}


def live(name: str) -> Profile:
    return decode(gzip.decompress((HERE / f"{name}.profile.json.gz").read_bytes()), name)


def imported(file: str) -> Profile:
    return importing.read([HERE / file])[0]


def busy(profile: Profile) -> list[int]:
    """Time in which at least one op ran, of each step [ns]."""
    own = np.asarray([op.own_ns for op in profile.ops])
    return (own.sum(axis=0) - sum(op.overlap_ns for op in profile.ops)).tolist()


def flops(profile: Profile) -> dict[str, float]:
    """Of each phase what its products execute."""
    found: dict[str, float] = {}
    for op in profile.ops:
        phase = profile.phases[op.phase]
        found[phase] = found.get(phase, 0.0) + (profile.signatures[op.signature].cost.flops or 0.0)
    return found


@pytest.mark.parametrize("name", TORCH)
def test_a_trace_of_pytorch_has_the_times_of_the_live_run(name: str) -> None:
    """To the nanosecond: the same steps, what ran in them, and what was idle."""
    ours, theirs = imported(TORCH[name]), live(name)
    assert ours.profiled is not None
    assert theirs.profiled is not None
    assert busy(ours) == busy(theirs)
    assert ours.profiled.walls == pytest.approx(theirs.profiled.walls, abs=1e-12)
    assert ours.profiled.idle == pytest.approx(theirs.profiled.idle, abs=1e-12)
    assert sum(op.launches or 0 for op in ours.ops) == sum(op.launches or 0 for op in theirs.ops) > 30
    assert ours.profiled.mechanism == theirs.profiled.mechanism
    assert ours.device.name == "NVIDIA H100 SXM", "the card calls itself NVIDIA H100 80GB HBM3"


def test_replayed_kernels_are_joined_live_and_not_by_an_import() -> None:
    """The live run has a trace without graphs beside it; PyTorch 2.11 writes no ids of a graph's nodes."""
    ours, theirs = imported(TORCH["torch-compile-reduce-overhead-infer"]), live("torch-compile-reduce-overhead-infer")
    assert ours.profiled is not None
    assert theirs.profiled is not None
    assert theirs.profiled.joined == 1.0
    assert ours.profiled.joined < 0.05
    assert any(flag.startswith("replays-unattributed") for flag in ours.flags)
    assert "replays-by-order" in {flag.partition(":")[0] for flag in theirs.flags}


def test_a_trace_of_jax_has_the_ops_of_the_live_run_and_its_mark() -> None:
    """The live run ends each step with a small program of its own, whose end marks it; it is no op of the step."""
    ours, theirs = imported("jax-buffers-off-train.1.xplane.pb.gz"), live("jax-buffers-off-train")
    assert ours.profiled is not None
    assert theirs.profiled is not None
    assert ours.profiled.joined == theirs.profiled.joined == 1.0
    assert flops(ours) == flops(theirs)
    # Forward: 2 layers of 4 x 64 x 64 and 2 x 64 x 256 for 2 x 32 tokens, 2 products of 32 x 32 x 64 for attention,
    # then 64 x 64 and 64 x 2 of each sample.
    forward = 2 * (2 * 64 * (4 * 64 * 64 + 2 * 64 * 256) + 2 * 2 * 2 * 32 * 32 * 64 + 2 * (64 * 64 + 64 * 2))
    assert flops(ours)["forward"] == pytest.approx(forward, rel=0.01)
    assert len(ours.ops) == len(theirs.ops) + 1
    more = np.asarray(busy(ours)) - np.asarray(busy(theirs))
    assert (more > 700).all(), "an addition of one number is a kernel, and none ends in less"
    assert (more < 2000).all()
    assert ours.device.name == "NVIDIA H100 SXM", "jaxlib 0.11 names the device in its plane"


def test_command_buffers_are_said() -> None:
    """As JAX runs by default: the kernels of a buffer name no instruction, and what they did is unknown."""
    ours = imported("jax-buffers-on-infer.1.xplane.pb.gz")
    assert any(flag.startswith("command-buffers") for flag in ours.flags)
    assert ours.profiled is not None
    assert ours.profiled.joined < 0.1
    assert not any(ours.signatures[op.signature].cost.flops for op in ours.ops), "unknown, and not 0"
