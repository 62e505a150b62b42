"""Say what a step uses of energy, where a GPU counts it."""

from __future__ import annotations

from collections.abc import Iterator

from roofline import units
from roofline.core.schema import Energy, Profile

#: What a reader must know where the driver names no process on the GPU, as in most containers.
_NOT_ALONE = "whether other programs used it meanwhile is not known"


def amounts(profile: Profile) -> list[str]:
    """Return the energy of a step and of a sample in words; empty where it is not known."""
    energy = profile.energy
    return [] if energy is None else words(energy.per_step, energy.per_sample(profile.samples))


def words(step: float | None, sample: float | None) -> list[str]:
    """Write energies of a step and of a sample [J], those that are known."""
    amounts = {"step": step, "sample": sample}
    return [f"{joules(amount)} per {of}" for of, amount in amounts.items() if amount is not None]


def facts(profile: Profile) -> Iterator[tuple[str, str]]:
    """Yield the energy with its uncertainty, and how it was measured."""
    if profile.energy is not None:
        share = relative(profile.energy)
        sure = "" if share is None else f", sure to {share}"
        sentence = f"{', '.join(amounts(profile))}{sure}; {_origin(profile.energy)}"
        yield "energy", sentence if profile.energy.alone else f"{sentence}; {_NOT_ALONE}"


def joules(value: float | None) -> str:
    """Write an energy, "12.3 J"; a dash where it is not known."""
    return units.scaled(value, "J")


def per_step(profile: Profile) -> str:
    """Write the energy of a step; a dash where it is not known."""
    return joules(None if profile.energy is None else profile.energy.per_step)


def relative(energy: Energy) -> str | None:
    """Write the uncertainty as a share, "1.2 %"; None where the counter did not move."""
    return units.percent(energy.uncertainty / energy.per_step) if energy.per_step else None


def _origin(energy: Energy) -> str:
    window, tick = units.seconds(energy.seconds), units.seconds(energy.tick)
    return f"the GPU's counter over {energy.steps} steps in {window}, which moves every {tick}"
