"""Measure the link between a GPU and its host."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from roofline.devices.cuda import timer
from roofline.devices.sampling import Candidate, Finding, ceiling, fastest_first

_MIB = 2**20


def link(wanted: Collection[str], *, seconds: float, conditions: str, date: str) -> Finding:
    """Measure the bandwidth of copies each way, from and to pinned memory."""
    import torch

    size = 256 * _MIB
    host = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    card = torch.empty(size, dtype=torch.uint8, device="cuda")
    copies = {"h2d": (card, host), "d2h": (host, card)}
    ceilings = {}
    for name, (target, source) in copies.items():
        if f"link.{name}" in wanted:
            run = partial(target.copy_, source, non_blocking=True)
            label = f"copy of {size // _MIB} MiB, pinned memory"
            best = fastest_first([Candidate(label, float(size), run)], seconds / 2, timer.events)[0]
            ceilings[f"link.{name}"] = ceiling(best, conditions, date)
    return Finding(ceilings)
