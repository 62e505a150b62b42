"""The energy of plain steps, with a stand-in for NVML: no card is here, and none was asked (docs/json.md says so)."""

from __future__ import annotations

import os
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from roofline.core.schema import Energy
from roofline.devices import nvidia
from roofline.recording import energy

#: [W], [s] The card: what it draws, and how often its counter moves.
POWER, TICK = 300.0, 0.02


class Clock:
    """A clock that only sleep and the looks at it move; a look takes 10 us."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        self.now += 1e-5
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Card:
    """NVML, as nvidia-ml-py has it, with one card that draws POWER."""

    class NVMLError(Exception):
        pass

    def __init__(self, clock: Clock, **differs: Any) -> None:
        """differs: `tick` [s], `mig` (None: it cannot be split), `running` process numbers, `counts`: the card can."""
        self.clock = clock
        self.tick, self.mig, self.running, self.counts = TICK, None, [os.getpid()], True
        vars(self).update(differs)
        self.asked: list[Any] = []

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        self.asked.append(index)
        return "handle"

    def nvmlDeviceGetHandleByUUID(self, name: str) -> str:
        self.asked.append(name)
        return "handle"

    def nvmlDeviceGetMigMode(self, handle: str) -> list[int]:
        if self.mig is None:
            raise self.NVMLError
        return [self.mig, self.mig]

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[SimpleNamespace]:
        return [SimpleNamespace(pid=number) for number in self.running]

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: str) -> int:
        """[mJ] as of the last tick; a card before Volta has no counter."""
        if not self.counts:
            raise self.NVMLError
        return 1_000_000 + round(1e3 * POWER * self.tick * (self.clock.now // self.tick))


def measured(
    monkeypatch: pytest.MonkeyPatch, seconds: float = 1.0, begin: float = 0.013, **differs: Any
) -> tuple[Energy | None, Card]:
    """Meter two stretches of 50 steps; a step takes 1/50 of `seconds`, and the first begins at `begin` [s]."""
    clock = Clock()
    card = Card(clock, **differs)
    monkeypatch.setattr(energy, "time", clock)
    monkeypatch.setattr(nvidia, "_library", lambda: nullcontext(card))
    clock.sleep(begin)
    with energy.metered("cuda") as meter:
        for _ in range(2):
            with meter.stretch(50):
                clock.sleep(seconds)
    return meter.energy(), card


def test_energy_is_power_times_time_to_within_the_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    """300 W for 2 s are 600 J, 6 J for each of 100 steps; two ticks of 20 ms are 2 % of the other 1.96 s."""
    found, card = measured(monkeypatch)
    assert found is not None
    assert card.asked == [0]
    assert found.tick == pytest.approx(TICK, abs=2e-3)
    assert found.uncertainty / found.per_step == pytest.approx(2 * found.tick / (found.seconds - 2 * found.tick))
    assert found.per_step == pytest.approx(6.0, abs=found.uncertainty)
    assert found.uncertainty == pytest.approx(0.02 * 6.0, rel=0.2)
    assert (found.steps, found.seconds, found.alone) == (100, pytest.approx(2.0, abs=1e-3), True)
    assert found.per_sample(32) == found.per_step / 32
    assert found.per_sample(None) is None


@pytest.mark.parametrize("begin", [0.001 * number for number in range(0, 20, 3)])
@pytest.mark.parametrize("seconds", [0.045, 0.058, 0.3])
def test_a_short_run_is_less_sure(seconds: float, begin: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """300 W for 2 x 45 ms are 27 J, and as the counter moves it reads two ticks or three of each: 24 to 36 J."""
    found, _ = measured(monkeypatch, seconds=seconds, begin=begin)
    assert found is not None
    assert found.uncertainty / found.per_step == pytest.approx(TICK / (seconds - TICK), rel=0.2)
    assert found.per_step == pytest.approx(POWER * seconds / 50, abs=found.uncertainty)


def test_a_run_of_no_more_than_two_ticks_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 2 x 39 ms two ticks of 20 ms are more than the rest."""
    assert measured(monkeypatch, seconds=0.039)[0] is None


@pytest.mark.parametrize(
    "differs",
    [
        pytest.param({"counts": False}, id="before Volta"),
        pytest.param({"mig": 1}, id="split"),
        pytest.param({"running": [os.getpid(), 2**30]}, id="shared"),
        pytest.param({"tick": 1e6}, id="a counter that does not move"),
    ],
)
def test_what_nobody_knows_is_none(differs: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert measured(monkeypatch, **differs)[0] is None


def test_a_driver_that_names_no_process_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in most containers: the energy is the card's, whoever used it. A card that is not split tells as any other."""
    found, _ = measured(monkeypatch, running=[], mig=0)
    assert found is not None
    assert not found.alone


@pytest.mark.parametrize(("named", "asked"), [("1,0", [1]), ("GPU-8a1b", ["GPU-8a1b"]), ("MIG-8a1b", []), ("none", [])])
def test_the_card_is_the_one_that_cuda_calls_number_0(
    named: str, asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    found, card = measured(monkeypatch)
    assert card.asked == asked
    assert (found is not None) == bool(asked)


def test_nothing_counts_on_a_cpu_and_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia, "_library", lambda: nullcontext("There is no driver."))
    for device in ("cpu", "cuda"):
        with energy.metered(device) as meter, meter.stretch(50):
            pass
        assert meter.energy() is None
