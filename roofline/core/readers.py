"""Find the ops that read what an op made, by the buffers that a profile names."""

from __future__ import annotations

from roofline.core.schema import Profile


def readers(profile: Profile) -> list[list[list[int]]]:
    """Return for each op and each buffer that it writes the numbers of the later ops of the step that read it.

    What is read before a buffer is written again is read of what was written.
    """
    by_op: list[list[list[int]]] = []
    latest: dict[int, list[int]] = {}
    for number, op in enumerate(profile.ops):
        for buffer in op.reads:
            if buffer in latest:
                latest[buffer].append(number)
        written: list[list[int]] = [[] for _ in op.writes]
        latest.update(zip(op.writes, written, strict=True))
        by_op.append(written)
    return by_op
