"""How soon a device is at its rate: the part of an op's time that its work does not explain and no ceiling shortens.

Hockney's law: n of something take (n + n_half) / r, where r is the rate of the most and n_half what has to be done
before half of it is reached (Hockney and Jesshope, Parallel Computers, 1981). In seconds of work at the ceilings, an op
takes (work + startup) / e: startup is the time in which the device gets going, is waited for and runs empty, e what of
its rate the op's code attains. Two sizes of one op give both. Of a kernel of BERT-base on an H100, at batch 1 and 32 in
BF16, startup is 3.4 us, the median over inference weighted by time, and 2.5 us over training: twice as long as the
shortest kernel that adds two arrays (docs/whatif.md).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roofline.analysis.columns import Columns
from roofline.core.device import Device
from roofline.core.executor import executor_of
from roofline.core.schema import Profile

Array = NDArray[np.float64]

LATENCY = "latency.kernel"
#: Start-up time of a kernel over `latency.kernel`: see above.
_KERNELS = 2.0
#: The latency of a GPU whose own is not known [s]: in public traces of H100, MI300X and B200 (docs/whatif.md) the
#: shortest kernels that compute on arrays last 1.6 to 2.0 us.
_ANY_GPU = 1.8e-6


def startup(profile: Profile, columns: Columns, here: Device, there: Device) -> tuple[Array, Array]:
    """The start-up time of each op here and there [s]; 0 where nothing is known of it.

    A GPU's is that of its kernels; where one of two GPUs has no figure, both have the other's, or that of any. On a CPU
    it is the launch floor of what launches the op.
    """
    latencies = [device.rate(LATENCY) if device.kind != "cpu" else None for device in (here, there)]
    if here.kind != "cpu" and there.kind != "cpu" and None in latencies:
        latencies = [next((one for one in latencies if one is not None), _ANY_GPU)] * 2
    ours, theirs = (_of(profile, columns, *side) for side in zip((here, there), latencies, strict=True))
    # A copy that the driver makes is no launch of a kernel, and gets going all the same.
    launches = np.maximum(columns.launches, 1)
    return launches * ours, launches * theirs


def _of(profile: Profile, columns: Columns, device: Device, latency: float | None) -> Array:
    """The start-up time of one launch of each op [s]."""
    if device.kind != "cpu":
        return np.full(len(profile.ops), _KERNELS * (_ANY_GPU if latency is None else latency))
    step = executor_of(profile)
    floors = [device.rate(f"launch.{one.executor or step}") or 0.0 for one in profile.signatures]
    found: Array = np.asarray(floors, np.float64)[columns.signature]
    return found
