"""Make small inputs to begin with: one profile in several shapes."""

from __future__ import annotations

from collections.abc import Iterator

import handmade
import msgspec
from msgspec.structs import replace

from roofline.core.schema import Profile, encode


def small() -> Profile:
    """Return a step of three ops on few ceilings: what is large takes long and tells no more."""
    whole = handmade.profile()
    few = ("matrix.fp32", "vector.fp32", "dram.copy", "launch.torch-eager")
    device = replace(whole.device, ceilings={name: whole.device.ceilings[name] for name in few})
    return replace(whole, ops=whole.ops[:3], signatures=whole.signatures[:3], device=device)


def profiles() -> Iterator[bytes]:
    """Encode the small step: as it is, counted only, on a GPU, as the import of a trace, and with names that act.

    Also without what it was idle: only then does it have a timeline, since its ops lie anywhere in it.
    """
    step = small()
    yield encode(step)
    yield encode(replace(step, profiled=replace(step.profiled, idle=())))
    yield encode(replace(step, profiled=None))
    yield encode(replace(step, device=replace(step.device, kind="cuda"), options={"attention": "sdpa"}))
    document = msgspec.to_builtins(step)
    imported = {"files": ["t.json"], "span": 0.1, "busy": 0.05, "idle": 0.05, "steps": 3, "marks": "x", "rule": "y"}
    yield msgspec.json.encode({**document, "imported": {**imported, "rank": 0, "ranks": 2}})
    hostile = handmade.hostile("<b>|x\x1b")
    yield encode(replace(hostile, ops=hostile.ops[:3]))
