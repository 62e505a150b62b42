"""A step that generates text: what its prompt takes, and what each pass of decode takes and must read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roofline.analysis.analysis import Analysis
from roofline.analysis.floors import cache_time
from roofline.core.numerals import whole
from roofline.core.vocabulary import PASSES

#: The block that reads the cache of keys and values.
_ATTENTION = "attention core"


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """The two phases of a step, without what is in the gap and cannot be told apart.

    prefill, decode: time of their ops [s], and of the host before them where that was recorded. gap: its rest [s].
    passes: of decode; None: the step does not say. floor: of the ops of decode [s].
    weights: the least time to read all parameters once [s]; None: not known. attention: bytes that the attention core
    reads in decode, or, where no block is called so, ops of the class attention; None where there is neither.
    """

    prefill: float
    decode: float
    gap: float
    passes: int | None
    floor: float
    weights: float | None
    attention: float | None


def generation(analysis: Analysis) -> Generation | None:
    """Split a step into prefill and decode; None for a step without them."""
    profile = analysis.profile
    phases = analysis.by("phase")
    if "decode" not in phases:
        return None
    decoding = np.asarray([profile.phases[op.phase] == "decode" for op in profile.ops])
    shares = _gap_before(analysis)
    before = (0.0, 0.0) if shares is None else (float(shares[~decoding].sum()), float(shares[decoding].sum()))
    prefill = sum(total.seconds for phase, total in phases.items() if phase != "decode")
    return Generation(
        prefill=prefill + before[0],
        decode=phases["decode"].seconds + before[1],
        gap=max(0.0, analysis.gap) - sum(before),
        passes=_passes(analysis),
        floor=phases["decode"].floor,
        weights=_reading_weights(analysis),
        attention=_read_by_attention(analysis),
    )


def _gap_before(analysis: Analysis) -> np.ndarray | None:
    """Return the gap before each op [s], in proportion to how long no op ran there; None where not recorded."""
    host = [op.host_ns for op in analysis.profile.ops]
    if any(waits is None for waits in host):
        return None
    waited = np.asarray([sum(waits) for waits in host if waits is not None], np.float64)
    total = float(waited.sum())
    return waited * (max(0.0, analysis.gap) / total) if total else None


def _passes(analysis: Analysis) -> int | None:
    return whole(analysis.profile.switches.get(PASSES, "")) or None


def _reading_weights(analysis: Analysis) -> float | None:
    """Return the least time of reading weights [s], from caches that hold them, else from memory."""
    size, device = analysis.profile.memory.parameters, analysis.device
    if not size:
        return None
    sizes = [cache.size for cache in device.caches if cache.size and device.rate(f"cache.{cache.level}")]
    if size <= max(sizes, default=0.0):
        return cache_time(size, size, device)[0]
    return size / device.bandwidth if device.bandwidth else None


def _read_by_attention(analysis: Analysis) -> float | None:
    profile = analysis.profile
    decoding = [op for op in profile.ops if profile.phases[op.phase] == "decode"]
    core = [op for op in decoding if profile.blocks[op.block] == _ATTENTION]
    core = core or [op for op in decoding if profile.signatures[op.signature].op_class == "attention"]
    reads = [profile.signatures[op.signature].cost.bytes_read for op in core]
    return None if not reads or any(size is None for size in reads) else float(sum(size for size in reads if size))
