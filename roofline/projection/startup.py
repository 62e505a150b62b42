"""Estimate start-up time: the part of an op's time that its work does not explain and no ceiling shortens.

Hockney's law: n operations take (n + n_half) / r, where r is the asymptotic rate and n_half the number of operations at
which half of r is reached (Hockney and Jesshope, Parallel Computers, 1981). In seconds of work at the ceilings, an op
takes (work + startup) / e: startup is the time to fill, to synchronise and to drain the device, e the fraction of its
rate that the op's code reaches. Two sizes of one op give both. For kernels of BERT-base on an H100, at batch 1 and 32
in BF16, startup is 3.4 us in inference and 1.5 us in training (medians weighted by time). Matmuls and attention, which
take most of that time, start up in twice the time of the shortest kernel that adds two arrays (docs/whatif.md).
"""

from __future__ import annotations

import numpy as np

from roofline.analysis.columns import Columns
from roofline.core.arrays import Array
from roofline.core.device import Device
from roofline.core.executor import executor_of
from roofline.core.schema import Profile

LATENCY = "latency.kernel"
#: Start-up time of a kernel over `latency.kernel` (the module's docstring).
_KERNELS = 2.0
#: The latency of a GPU whose own is not known [s]: in public traces of H100, MI300X and B200 (docs/whatif.md) the
#: shortest kernels that compute on arrays last 1.6 to 2.0 us.
_ANY_GPU = 1.8e-6


def between(work: float, small: tuple[float, float], large: tuple[float, float]) -> float:
    """Return the time of a work by the law through two sizes, each a work and its time [s].

    (work + startup) / e with startup and e of both. Of equal work: the geometric mean of both times.
    """
    (work_small, seconds_small), (work_large, seconds_large) = small, large
    if work_small == work_large:
        return float(np.sqrt(seconds_small * seconds_large))
    share = min(1.0, max(0.0, (work - work_small) / (work_large - work_small)))
    return seconds_small + share * (seconds_large - seconds_small)


def startup_times(profile: Profile, columns: Columns, source: Device, target: Device) -> tuple[Array, Array]:
    """Estimate the start-up time of each op on source and target [s]; 0 where it is not known.

    A GPU has that of its kernels; where one of two GPUs has no figure, both get the other's, or that of any GPU. On a
    CPU it is the launch floor of the op's executor.
    """
    latencies = [device.rate(LATENCY) if device.kind != "cpu" else None for device in (source, target)]
    if source.kind != "cpu" and target.kind != "cpu" and None in latencies:
        latencies = [next((latency for latency in latencies if latency is not None), _ANY_GPU)] * 2
    ours, theirs = (_launch_startup(profile, columns, *side) for side in zip((source, target), latencies, strict=True))
    # A copy that the driver makes is no launch of a kernel, and gets going all the same.
    launches = np.maximum(columns.launches, 1)
    return launches * ours, launches * theirs


def _launch_startup(profile: Profile, columns: Columns, device: Device, latency: float | None) -> Array:
    """Estimate the start-up time of one launch of each op [s]; shape (ops,)."""
    if device.kind != "cpu":
        return np.full(len(profile.ops), _KERNELS * (_ANY_GPU if latency is None else latency))
    step = executor_of(profile)
    floors = [device.rate(f"launch.{signature.executor or step}") or 0.0 for signature in profile.signatures]
    startups: Array = np.asarray(floors, np.float64)[columns.signature]
    return startups
