"""What runs are called, by backend and by what tells runs of one backend apart; and what kernels are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

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

#: What compilers append to the name of a kernel to tell it from others of one program.
_NUMBER = re.compile(r"[._]\d+$")


def kernel_name(recorded: str) -> str:
    """The name of a kernel, which is the same in another program."""
    return _NUMBER.sub("", recorded)


def called(profiles: Iterable[Profile]) -> tuple[str, ...]:
    """A name for each run that no other has: its backend, and where that is not enough, what sets it apart.

    Where nothing does, runs are numbered; if there are only two, they are A and B, as in all that is said of a pair.
    """
    names = _told_apart(tuple(profiles))
    if len(names) == 2 and names[0] == names[1]:
        return f"{names[0]} (A)", f"{names[1]} (B)"
    for name in _shared(names):
        place = 0
        for number in [number for number, other in enumerate(names) if other == name]:
            place += 1
            while f"{name} #{place}" in names:
                place += 1
            names[number] = f"{name} #{place}"
    return tuple(names)


def numbered(profiles: Iterable[Profile]) -> bool:
    """Whether nothing tells some of the runs apart, so that `called` numbers them."""
    return bool(_shared(_told_apart(tuple(profiles))))


def _told_apart(profiles: tuple[Profile, ...]) -> list[str]:
    names = [profile.backend for profile in profiles]
    for tell in _APART:
        for name in _shared(names):
            same = [number for number, other in enumerate(names) if other == name]
            told = [tell(profiles[number]) for number in same]
            if len(set(told)) > 1:
                for number, words in zip(same, told, strict=True):
                    names[number] = f"{name}{words}" if words != ":" else name
    return names


def _threads(number: str | None) -> str:
    return "" if number is None else f" ({number} {'thread' if number == '1' else 'threads'})"


def _shared(names: list[str]) -> list[str]:
    """The names that several runs have."""
    return [name for name in dict.fromkeys(names) if names.count(name) > 1]
