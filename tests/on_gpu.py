"""Live runs on a CUDA GPU: steps that are recorded in this process and put under the datasheet of the card."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from roofline import devices
from roofline.analysis.analysis import Analysis, analyze
from roofline.core.device import Device
from roofline.core.schema import Profile
from roofline.core.step import Step, Workload
from roofline.measuring.session import to_profile
from roofline.recording.backend import load
from roofline.recording.recording import Plan
from roofline.recording.request import Request

#: Compilers warn of what could be faster, and of what another PyTorch will name differently.
live = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU: torch.cuda.is_available() is False"),
    pytest.mark.filterwarnings("ignore"),
]


def training(model: torch.nn.Module, x: torch.Tensor) -> Step:
    """A step of plain gradient descent towards nothing in particular."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)

    def run() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    return Step(run=run, model=model, mode="train")


def inference(model: torch.nn.Module, x: torch.Tensor) -> Step:
    """One forward pass."""

    def run() -> None:
        with torch.no_grad():
            model(x)

    return Step(run=run, model=model)


def profiled(backend: str, step: Step, **options: str) -> tuple[Profile, Analysis]:
    """The profile of a step and its analysis under the card's datasheet; of an unknown card without ceilings."""
    card = torch.cuda.get_device_properties(0)
    device = devices.datasheet(card.name, float(card.total_memory), "cuda")
    device = device or Device(name=card.name, kind="cuda", ceilings={})
    plan = Plan(device="cuda", steps=10, profiled_steps=5, options=options)
    recording = load(backend).recorder.record(step, plan, print)
    workload = Workload(model="test", device="cuda", mode=step.mode, size="-")
    profile = to_profile(recording, Request(backend=backend, workload=workload), device, "a test")
    return profile, analyze(profile)


def rows(profile: Profile, **wanted: Any) -> list[tuple[Any, Any]]:
    """(op, signature) of the ops whose signature has these values."""
    both = [(op, profile.signatures[op.signature]) for op in profile.ops]
    return [(op, one) for op, one in both if all(getattr(one, name) == value for name, value in wanted.items())]


def flops(profile: Profile, phase: str) -> float:
    """What the products of a phase execute."""
    return sum(one.cost.flops or 0.0 for op, one in rows(profile) if profile.phases[op.phase] == phase)


def holds(profile: Profile, analysis: Analysis) -> None:
    """What every step on a GPU must show: all time belongs to ops, all work is known, and no op beats its roof."""
    assert profile.profiled is not None
    assert profile.profiled.joined >= 0.99
    lost = {"unjoined", "opaque-regions", "replays-unattributed", "nothing-compiled"}
    assert not lost & {flag.partition(":")[0] for flag in profile.flags}
    assert [one.name for _, one in rows(profile, kind="kernel")] == [], "kernels without an op"
    assert [(one.name, one.cost.note) for _, one in rows(profile) if one.cost.quality == "unknown"] == []
    both = zip(rows(profile), analysis.table.above.tolist(), strict=True)
    assert [one.name for (_, one), above in both if above] == [], "faster than their roof"
    assert all(min(op.own_ns) > 0 for op in profile.ops)
