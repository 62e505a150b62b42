"""Describe the memory of a step: its peak, where that is reached, and what for."""

from __future__ import annotations

from collections.abc import Iterator

from roofline import units
from roofline.core.schema import Profile
from roofline.memory.use import WORDS, MemoryUse, memory_use
from roofline.renderers import _words


def facts(profile: Profile) -> Iterator[tuple[str, str]]:
    """Yield the names of facts and their words."""
    use = memory_use(profile)
    if use.peak is not None:
        source = f" ({_words.plain(use.source, 200)})" if use.source else ""
        yield "peak memory", f"{'at least ' if use.at_least else ''}{units.byte(use.peak)}{source}"
        if use.op is not None:
            yield "", f"reached {place(profile, use.op)}: {parts(use)}"
    if profile.memory.resident is not None:
        yield "process memory", f"{units.byte(profile.memory.resident)} resident at most, libraries included"


def place(profile: Profile, number: int) -> str:
    """Name an op and where it is: "in aten::mm (backward, FFN)"."""
    op = profile.ops[number]
    name, phase, block = (
        profile.signatures[op.signature].name,
        profile.phases[op.phase],
        profile.blocks[op.block],
    )
    where = ", ".join(dict.fromkeys(_words.plain(word) for word in (phase, block) if word))
    return f"in {_words.plain(name)} ({where})"


def parts(use: MemoryUse) -> str:
    """List what is in use at the peak, the most first; what is not told apart is left out."""
    known = [(size, kind) for kind, size in use.parts.items() if size]
    return ", ".join(f"{WORDS[kind]} {units.byte(size)}" for size, kind in sorted(known, reverse=True))
