"""Tell copies between a host and a device by the names that CUDA, HIP and XLA give them: "Memcpy DtoH", "MemcpyD2H"."""

from __future__ import annotations

import re

#: The first group: into the device; the second: out of it.
CROSSING = (
    r"^\W*(?:cuda |hip)?(?:mem)?co?py(?:.?|[^(]*\((?=\w+ -> \w+\)))"
    r"(?:(htod|h2d|host ?to ?device|(?:host|pageable|pinned) -> device)"
    r"|(dtoh|d2h|device ?to ?host|device -> (?:host|pageable|pinned)))"
)
_COPY = re.compile(CROSSING, re.IGNORECASE)


def crossing(name: str) -> str:
    """Return whether a copy goes "in" to the device from the host, or "out"; "" for one that stays on its side."""
    match = _COPY.match(name[:2000])
    return "" if match is None else "in" if match[1] else "out"
