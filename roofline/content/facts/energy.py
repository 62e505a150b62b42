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
    if energy is None:
        return []
    sample = energy.per_sample(profile.samples)
    return [f"{joules(energy.per_step)} per step", *([] if sample is None else [f"{joules(sample)} per sample"])]


def facts(profile: Profile) -> Iterator[tuple[str, str]]:
    """Yield the energy with its uncertainty, and how it was measured."""
    if profile.energy is not None:
        words = f"{', '.join(amounts(profile))}, sure to {relative(profile.energy)}; {_origin(profile.energy)}"
        yield "energy", words if profile.energy.alone else f"{words}; {_NOT_ALONE}"


def joules(value: float | None) -> str:
    """Write an energy, "12.3 J"; a dash where it is not known."""
    return units.scaled(value, "J")


def per_step(profile: Profile) -> str:
    """Write the energy of a step; a dash where it is not known."""
    return joules(None if profile.energy is None else profile.energy.per_step)


def relative(energy: Energy) -> str:
    """Write the uncertainty as a share, "1.2 %"."""
    return units.percent(energy.uncertainty / energy.per_step)


def _origin(energy: Energy) -> str:
    window, tick = units.seconds(energy.seconds), units.seconds(energy.tick)
    return f"the GPU's counter over {energy.steps} steps in {window}, which moves every {tick}"
