"""What a step computes only for its host to read: `.item()`, a check for NaN, a number that is printed."""

from __future__ import annotations

from roofline.core.profile import Profile

#: Bytes of what is read with `.item()`, at most: a complex number in double precision.
_A_NUMBER = 16.0


def for_the_host(profile: Profile) -> list[bool]:
    """For each op whether all that is made of it are numbers that no op reads: what a host asks a device for.

    A number: no more bytes than `_A_NUMBER`. What is read before a buffer is written again is read of what was written.
    """
    readers: list[list[list[int]]] = []  # of each op, of each buffer that it writes
    latest: dict[int, list[int]] = {}
    for number, op in enumerate(profile.ops):
        for buffer in op.reads:
            if buffer in latest:
                latest[buffer].append(number)
        written: list[list[int]] = [[] for _ in op.writes]
        latest.update(zip(op.writes, written, strict=True))
        readers.append(written)
    found = [False] * len(profile.ops)
    for number in range(len(profile.ops) - 1, -1, -1):
        op = profile.ops[number]
        sizes = profile.signatures[op.signature].writes
        if op.writes and len(sizes) == len(op.writes):
            found[number] = all(
                all(found[one] for one in by) if by else size <= _A_NUMBER
                for by, size in zip(readers[number], sizes, strict=True)
            )
    return found
