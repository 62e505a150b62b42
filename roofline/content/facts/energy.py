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
    return [] if energy is None else words(energy.per_step, energy.per_sample(profile.samples), energy.relative)


def words(step: float | None, sample: float | None, relative: float | None) -> list[str]:
    """Write energies of a step and of a sample [J], those that are known. relative: the uncertainty, as a share."""
    amounts = {"step": step, "sample": sample}
    return [f"{joules(amount, relative)} per {of}" for of, amount in amounts.items() if amount is not None]


def facts(profile: Profile) -> Iterator[tuple[str, str]]:
    """Yield the energy with its uncertainty, and how it was measured."""
    if profile.energy is not None:
        sentence = f"{', '.join(amounts(profile))}; {_origin(profile.energy)}"
        yield "energy", sentence if profile.energy.alone else f"{sentence}; {_NOT_ALONE}"


def joules(value: float, relative: float | None) -> str:
    """Write an energy with its uncertainty as a share, "12.3 J ± 1.2 %"; without a share where none is known."""
    return units.scaled(value, "J") + ("" if relative is None else f" ± {units.percent(relative)}")


def per_step(profile: Profile) -> str:
    """Write the energy of a step; a dash where it is not known."""
    energy = profile.energy
    return units.UNKNOWN if energy is None else joules(energy.per_step, energy.relative)


def _origin(energy: Energy) -> str:
    window, tick = units.seconds(energy.seconds), units.seconds(energy.tick)
    return f"the GPU's counter over {energy.steps} steps in {window}, which moves every {tick}"
