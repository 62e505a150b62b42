"""What a step computes only for its host to read: `.item()`, a check for NaN, a number that is printed."""

from __future__ import annotations

from roofline.core.readers import readers
from roofline.core.schema import Profile

#: Bytes of what is read with `.item()`, at most. By definition: a complex number in double precision.
_A_NUMBER = 16.0


def for_the_host(profile: Profile) -> list[bool]:
    """For each op whether all that is made of it are numbers that no op reads: what a host asks a device for.

    A number: no more bytes than `_A_NUMBER`. Not a loss, which no op reads, but a backward pass begins with it; nor one
    that is there already and is written in place: an optimizer counts its steps.
    """
    read_by, kept = readers(profile), _losses(profile) | _counters(profile)
    found = [False] * len(profile.ops)
    for number in range(len(profile.ops) - 1, -1, -1):
        op = profile.ops[number]
        sizes = profile.signatures[op.signature].writes
        if op.writes and len(sizes) == len(op.writes) and number not in kept:
            found[number] = all(
                all(found[one] for one in by) if by else size <= _A_NUMBER
                for by, size in zip(read_by[number], sizes, strict=True)
            )
    return found


def _counters(profile: Profile) -> set[int]:
    """The numbers of the ops that write in place into what no op of the step has made."""
    made: set[int] = set()
    found = set()
    for number, op in enumerate(profile.ops):
        if profile.signatures[op.signature].inplace and not made.issuperset(op.writes):
            found.add(number)
        made.update(op.writes)
    return found


def _losses(profile: Profile) -> set[int]:
    """The numbers of the ops whose results are differentiated: the last number of a forward pass, before its backward.

    Not a truth value, such as a check of the loss has.
    """
    phases = [profile.phases[op.phase] for op in profile.ops]
    found, last = set(), None
    for number, op in enumerate(profile.ops):
        sizes = profile.signatures[op.signature].writes
        if phases[number] == "forward" and sizes and 1 < max(sizes) <= _A_NUMBER:
            last = number
        elif phases[number] == "backward" and last is not None:
            found.add(last)
            last = None
    return found
