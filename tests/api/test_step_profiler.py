"""Steps of a loop that runs anyway: what is measured of them, and that the loop is as it would have been."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator

import pytest
import torch
from torch import nn

import roofline
from roofline.core.executor import ASLEEP
from roofline.errors import InputError, MeasurementError
from roofline.recording import record

BATCH, WIDTH, HIDDEN = 32, 64, 256
#: Some dozen steps are profiled and counted behind those that are timed.
ENOUGH = 120


def train(steps: int, profiler: roofline.StepProfiler | None = None, asleep: float = 0.0) -> list[float]:
    """The losses of a training with dropout, fresh data in every step. asleep: in each [s]."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.GELU(), nn.Dropout(0.1), nn.Linear(HIDDEN, WIDTH))
    optimizer = torch.optim.AdamW(model.parameters())
    losses = []
    for _ in range(steps):
        x = torch.randn(BATCH, WIDTH)
        loss = ((model(x) - x) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        time.sleep(asleep)
        if profiler is not None:
            profiler.step()
    return losses


@pytest.fixture(scope="module", autouse=True)
def _without_bandwidth() -> Iterator[None]:
    """A second of each recording, and not what is tested here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record, "bandwidth", lambda plan, threads: {})
        yield


@pytest.fixture(scope="module")
def profiled() -> tuple[list[float], roofline.StepProfiler]:
    with roofline.StepProfiler(first=3, steps=8, name="mine") as profiler:
        losses = train(ENOUGH, profiler)
    return losses, profiler


def test_every_step_of_the_loop_runs_once_and_draws_what_it_would_have_drawn(
    profiled: tuple[list[float], roofline.StepProfiler],
) -> None:
    assert profiled[0] == train(ENOUGH)


def test_the_work_is_that_of_a_step(profiled: tuple[list[float], roofline.StepProfiler]) -> None:
    """Forward two products of 2 M N K; backward one for each weight, and one for the input of the second layer."""
    profile, product = profiled[1].profile, 2 * BATCH * WIDTH * HIDDEN
    products = roofline.analyze(profile).products
    assert {phase: found.model for phase, found in products.items()} == {
        "forward": 2 * product,
        "backward": 3 * product,
    }
    assert roofline.analyze(profile).by("phase")["optimizer"].ops > 0
    assert (profile.model, profile.mode, len(profile.wall.steps)) == ("mine", "train", 8)
    assert "in_process" in profile.flags


def test_a_loop_that_sleeps_is_seen_to(profiled: tuple[list[float], roofline.StepProfiler]) -> None:
    with roofline.StepProfiler(first=0, steps=3) as profiler:
        train(ENOUGH // 2, profiler, asleep=0.01)
    assert 0.0099 < profiler.profile.conditions[ASLEEP] < 0.02
    assert profiled[1].profile.conditions[ASLEEP] < 1e-3


def test_a_loop_that_ends_first_has_no_profile_and_keeps_nothing() -> None:
    """At each of its stages: left alone, timed, profiled, counted."""
    for steps in (1, 4, 9, 20, 35):
        with roofline.StepProfiler(first=2, steps=8) as profiler:
            train(steps, profiler)
        with pytest.raises(MeasurementError, match=f"ended after {steps} steps"):
            _ = profiler.profile
        assert not torch._C._autograd._profiler_enabled()
        assert gc.isenabled()
        assert sys.getprofile() is None
        assert not nn.modules.module._global_forward_hooks
        assert torch.utils._python_dispatch._get_current_dispatch_mode() is None


def test_what_the_loop_raises_is_the_loops() -> None:
    profiler = roofline.StepProfiler(first=0, steps=8)

    def loop() -> None:
        with profiler:
            train(6, profiler)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        loop()
    assert not profiler.done
    assert not torch._C._autograd._profiler_enabled()


def test_what_fails_in_measuring_does_not_end_the_loop(capsys: pytest.CaptureFixture[str]) -> None:
    ran = 0
    with roofline.StepProfiler(first=0, steps=8) as profiler:
        for _ in range(60):
            ran += 1
            profiler.step()
    assert ran == 60
    assert profiler.done
    assert capsys.readouterr().err.startswith("StepProfiler: The step ran no op")
    with pytest.raises(MeasurementError, match="The step ran no op"):
        _ = profiler.profile


def test_what_is_asked_is_checked() -> None:
    with pytest.raises(InputError, match="not possible"):
        roofline.StepProfiler(steps=0)
