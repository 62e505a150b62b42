"""Name runs by backend, and runs of one backend by the first setting in which they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count

from roofline.core.schema import Profile

#: What tells runs of one backend apart, the first that does, as it stands behind the name.
_APART: tuple[Callable[[Profile], str], ...] = (
    lambda profile: ":" + ",".join(f"{name}={value}" for name, value in sorted(profile.options.items())),
    lambda profile: f" ({profile.device.name})",
    lambda profile: f" ({profile.precision})",
    lambda profile: "" if profile.batch is None else f" (b{profile.batch})",
    lambda profile: "" if profile.seq is None else f" (s{profile.seq})",
    lambda profile: _threads(profile.environment.get("threads")),
    lambda profile: f" ({profile.mode})",
    lambda profile: f" ({profile.model})",
    lambda profile: f" ({profile.size})",
)


def called(profiles: Iterable[Profile]) -> tuple[str, ...]:
    """Give each run a name that no other has: its backend, and where that is not enough, what sets it apart.

    Where nothing does, runs are numbered; if there are only two, they are A and B, as in all that is said of a pair.
    """
    profiles = tuple(profiles)
    names = [profile.backend for profile in profiles]
    for tell in _APART:
        for name, sharing in _shared(names):
            suffixes = [tell(profiles[number]) for number in sharing]
            if len(set(suffixes)) > 1:
                for number, suffix in zip(sharing, suffixes, strict=True):
                    names[number] = f"{name}{suffix}" if suffix != ":" else name
    if len(names) == 2 and names[0] == names[1]:
        return f"{names[0]} (A)", f"{names[1]} (B)"
    for name, sharing in _shared(names):
        free = (label for place in count(1) if (label := f"{name} #{place}") not in names)
        for number in sharing:
            names[number] = next(free)
    return tuple(names)


def _threads(number: str | None) -> str:
    return "" if number is None else f" ({number} {'thread' if number == '1' else 'threads'})"


def _shared(names: list[str]) -> list[tuple[str, list[int]]]:
    """List the names that several runs have, each with the numbers of these runs."""
    runs = [
        (name, [number for number, run_name in enumerate(names) if run_name == name]) for name in dict.fromkeys(names)
    ]
    return [(name, sharing) for name, sharing in runs if len(sharing) > 1]
