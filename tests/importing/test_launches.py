"""The launch floor of an imported step, from the shortest of its kernels."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from roofline.core.device import Ceiling, Device
from roofline.core.executor import COPY
from roofline.importing.launches import coarse_tick, with_launch_floor

BARE = Device(name="X", kind="cuda", ceilings={"dram.copy": Ceiling(value=1e12, source="sheet")})
KNOWN = Device(name="X", kind="cuda", ceilings={"launch.torch-eager": Ceiling(value=1e-6, source="measured")})
#: A thousand kernels, the shortest of 1.5 us.
MANY = np.arange(1500, 2500, dtype=np.int64)


def test_the_shortest_of_many_is_the_floor() -> None:
    ceiling = with_launch_floor(BARE, "torch-eager", MANY).ceilings["launch.torch-eager"]
    assert ceiling.value == pytest.approx(1.5e-6)
    assert "shortest of 1000 kernels" in ceiling.source
    # 1 % of them end within 1509.99 ns
    assert ceiling.spread == pytest.approx(1 - 1500 / 1509.99, abs=1e-4)


def test_copies_and_fills_have_a_floor_of_their_own() -> None:
    # They run on engines that launch no kernel, and end sooner.
    both = with_launch_floor(with_launch_floor(BARE, "torch-eager", MANY), COPY, MANY - 700)
    assert (both.rate("launch.torch-eager"), both.rate("launch.copy")) == pytest.approx((1.5e-6, 0.8e-6))
    assert "shortest of 1000 copies and fills" in both.ceilings["launch.copy"].source


def test_a_clock_of_whole_microseconds_is_told() -> None:
    # 1 us may have been anything up to 2.
    whole, starts = MANY // 1000 * 1000, 7 + 1000 * np.arange(1000)
    assert coarse_tick(whole, starts) == 1000
    ceiling = with_launch_floor(BARE, "torch-eager", whole, coarse_tick(whole, starts)).ceilings["launch.torch-eager"]
    assert (ceiling.value, ceiling.high) == pytest.approx((1e-6, 2e-6))
    assert ceiling.source == "the trace: the shortest of 1000 kernels, in ticks of 1 µs: up to one more"
    # Equal fills of a clock of 32 ns are no coarse clock, and a few whole microseconds may be chance.
    assert coarse_tick(np.full(60, 1536), starts) is None
    assert coarse_tick(np.append(whole, 1536), starts) is None
    assert coarse_tick(whole[:49], starts) is None
    # Equal kernels of 4 us are none either, where they begin between two microseconds.
    assert coarse_tick(whole, starts + np.arange(1000) % 2) is None
    assert with_launch_floor(BARE, "torch-eager", MANY).ceilings["launch.torch-eager"].high is None


def test_kernels_without_a_time_are_none() -> None:
    device = with_launch_floor(BARE, "torch-eager", np.concatenate([np.zeros(5, np.int64), MANY]))
    assert device.rate("launch.torch-eager") == pytest.approx(1.5e-6)


@pytest.mark.parametrize("durations", [MANY[:49], MANY * 10, np.zeros(0, np.int64)])
def test_few_kernels_and_long_ones_say_nothing(durations: np.ndarray) -> None:
    assert with_launch_floor(BARE, "torch-eager", durations) is BARE


def test_of_two_floors_the_lower_one_holds() -> None:
    kept = with_launch_floor(KNOWN, "torch-eager", MANY).ceilings["launch.torch-eager"]
    assert kept == replace(KNOWN.ceilings["launch.torch-eager"], shortest=1.5e-6)
    assert not kept.from_trace
    assert with_launch_floor(KNOWN, "torch-eager", MANY // 2).rate("launch.torch-eager") == pytest.approx(0.75e-6)
    # of another executor nothing was known
    assert with_launch_floor(KNOWN, "cuda-graph", MANY).rate("launch.cuda-graph") == pytest.approx(1.5e-6)


def test_a_device_that_nobody_knows_stays_so() -> None:
    unknown = Device(name="?", kind="cuda", ceilings={})
    assert with_launch_floor(unknown, "torch-eager", MANY) is unknown
