"""Describe the memory of a step: its peak, where that is reached, and what for."""

from __future__ import annotations

from collections.abc import Iterator

from roofline import units
from roofline.content import wording
from roofline.core.schema import Profile
from roofline.core.vocabulary import STORAGE_KINDS
from roofline.memory.fit import Fit, fit
from roofline.memory.use import WORDS, MemoryUse, memory_use

#: The name of the fact that says the peak.
PEAK = "peak memory"


def facts(profile: Profile) -> Iterator[tuple[str, str]]:
    """Yield the names of facts and their words."""
    use = memory_use(profile)
    if use.peak is not None:
        source = f" ({wording.plain(use.source, 200)})" if use.source else ""
        yield PEAK, f"{'at least ' if use.at_least else ''}{units.byte(use.peak)}{source}"
        if use.op is not None:
            yield "", f"reached {place(profile, use.op)}: {parts(use)}"
        if profile.device.kind != "cpu":
            yield from largest_batch(fit(profile, profile.device))
    if profile.memory.resident is not None:
        yield "process", f"{units.byte(profile.memory.resident)} resident at most, libraries included"


def place(profile: Profile, number: int) -> str:
    """Name an op and where it is: "in aten::mm (backward, FFN)"."""
    op = profile.ops[number]
    name, phase, block = (
        profile.signatures[op.signature].name,
        profile.phases[op.phase],
        profile.blocks[op.block],
    )
    where = ", ".join(dict.fromkeys(wording.plain(word) for word in (phase, block) if word))
    return f"in {wording.plain(name)} ({where})"


def parts(use: MemoryUse) -> str:
    """List what is in use at the peak, the most first; what is not told apart is left out."""
    known = [(size, kind) for kind, size in use.parts.items() if size]
    return ", ".join(f"{WORDS[kind]} {units.byte(size)}" for size, kind in sorted(known, reverse=True))


def fit_facts(fitted: Fit) -> Iterator[tuple[str, str]]:
    """Yield what a step needs of a device's memory, and the largest batch that fits."""
    use, memory = fitted.use, fitted.memory
    if use.peak is None or memory is None:
        return
    least = "at least " if use.at_least else ""
    verdict = {True: "fits", False: "does not fit", None: "not known to fit"}[fitted.fits]
    words = f"{verdict}: {sum_of_parts(use)} = {least}{units.byte(use.peak)} of {units.byte(memory)}"
    yield "memory", words
    if fitted.of_another_kind:
        yield "", "what else is needed is not known: there the program is compiled anew, for another kind of device"
    yield from largest_batch(fitted)


def largest_batch(fitted: Fit) -> Iterator[tuple[str, str]]:
    """Say the largest batch that fits, where that is known."""
    if fitted.largest_batch is None or fitted.memory is None:
        return
    if fitted.fixed is not None and fitted.fixed > fitted.memory:
        yield "", f"no batch fits: what does not depend on it takes {units.byte(fitted.fixed)}"
        return
    batch = f"{'at most ' if fitted.use.at_least else ''}{units.count(fitted.largest_batch)}"
    yield (
        "",
        f"largest batch that fits into {units.byte(fitted.memory)}: {batch}, if all but parameters, gradients and "
        "optimizer state grows as the batch does",
    )


def sum_of_parts(use: MemoryUse) -> str:
    """Write the peak as a sum, in the order of the kinds: "14.5 GB of parameters + 1.2 GB of activations"."""
    known = [(size, f"of {WORDS[kind]}") for kind in STORAGE_KINDS if (size := use.parts.get(kind))]
    rest = (use.peak or 0.0) - sum(size for size, _ in known)
    known += [(rest, "not told apart")] if known and units.byte(rest) != units.byte(0.0) and rest > 0 else []
    return " + ".join(f"{units.byte(size)} {words}" for size, words in known) or "what the step holds"
