"""Watch the GPU's clock during a measurement: a throttled card is slower than its ceilings, and only NVML shows it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import mean

from roofline.devices import nvidia

#: Reasons that hold a clock back and are no fault: an idle card, or the user's own setting.
HARMLESS = frozenset(("idle", "application clocks", "display clocks", "user-defined clocks"))
#: A profile is flagged if it was throttled in more than this share of the samples.
SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Clocks:
    """Hold NVML's samples of a measurement; empty where there is no GPU or no driver."""

    sampler: nvidia.Sampler | None

    def conditions(self) -> dict[str, float]:
        """Compute mean and least SM clock [Hz]."""
        clocks = self.sampler.clocks if self.sampler else []
        return {"sm_clock": mean(clocks), "sm_clock_least": min(clocks)} if clocks else {}

    def flags(self) -> tuple[str, ...]:
        """Return the flag "throttled: power cap, ..." where the clock was held back."""
        if self.sampler is None or not self.sampler.clocks:
            return ()
        samples = len(self.sampler.clocks)
        counts = {reason: count for reason, count in self.sampler.reasons.items() if reason not in HARMLESS}
        reasons = [reason for reason, count in counts.items() if count > SHARE * samples]
        return (f"throttled: {', '.join(sorted(reasons))}",) if reasons else ()


@contextmanager
def watch_clock(device: str) -> Iterator[Clocks]:
    """Watch the GPU of a measurement on "cuda"; on a CPU do nothing."""
    if device != "cuda":
        yield Clocks(None)
        return
    with nvidia.Sampler(nvidia.visible_index()) as sampler:
        yield Clocks(sampler)
