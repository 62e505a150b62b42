"""What a step computes only for its host to read: `.item()`, a check for NaN, a number that is printed."""

from __future__ import annotations

from roofline.core.profile import Profile
from roofline.core.readers import readers

#: Bytes of what is read with `.item()`, at most: a complex number in double precision.
_A_NUMBER = 16.0


def for_the_host(profile: Profile) -> list[bool]:
    """For each op whether all that is made of it are numbers that no op reads: what a host asks a device for.

    A number: no more bytes than `_A_NUMBER`. Not the loss, which no op reads, but the backward pass begins with it.
    """
    read_by, loss = readers(profile), _loss(profile)
    found = [False] * len(profile.ops)
    for number in range(len(profile.ops) - 1, -1, -1):
        op = profile.ops[number]
        sizes = profile.signatures[op.signature].writes
        if op.writes and len(sizes) == len(op.writes) and number != loss:
            found[number] = all(
                all(found[one] for one in by) if by else size <= _A_NUMBER
                for by, size in zip(read_by[number], sizes, strict=True)
            )
    return found


def _loss(profile: Profile) -> int | None:
    """The number of the op whose result is differentiated: the last one of the forward pass, before a backward pass."""
    phases = [profile.phases[op.phase] for op in profile.ops]
    if "backward" not in phases:
        return None
    forward = [number for number, phase in enumerate(phases[: phases.index("backward")]) if phase == "forward"]
    return forward[-1] if forward else None
