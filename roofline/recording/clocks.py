"""The clock of the GPU while it is measured: a throttled card is slower than its ceilings, and says so only to NVML."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import mean

from roofline.devices import nvidia

#: What holds a clock back without being a fault: nothing to do, or the user's own setting.
HARMLESS = frozenset(("idle", "application clocks", "display clocks", "user-defined clocks"))
#: Throttled in more than this share of the samples, a profile is flagged.
SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Clocks:
    """What NVML said during a measurement; empty where there is no GPU or no driver."""

    sampler: nvidia.Sampler | None

    def conditions(self) -> dict[str, float]:
        """Mean and least SM clock [Hz]."""
        clocks = self.sampler.clocks if self.sampler else []
        return {"sm_clock": mean(clocks), "sm_clock_least": min(clocks)} if clocks else {}

    def flags(self) -> tuple[str, ...]:
        """ "throttled: power cap, ..." where the clock was held back."""
        if self.sampler is None or not self.sampler.clocks:
            return ()
        samples = len(self.sampler.clocks)
        seen = {reason: count for reason, count in self.sampler.reasons.items() if reason not in HARMLESS}
        reasons = [reason for reason, count in seen.items() if count > SHARE * samples]
        return (f"throttled: {', '.join(sorted(reasons))}",) if reasons else ()


@contextmanager
def watched(device: str) -> Iterator[Clocks]:
    """Watch the GPU of a measurement on "cuda"; on a CPU nothing."""
    if device != "cuda":
        yield Clocks(None)
        return
    with nvidia.Sampler(nvidia.visible_index()) as sampler:
        yield Clocks(sampler)
