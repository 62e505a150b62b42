"""Steps that are told op by op."""

from __future__ import annotations

import numpy as np

from roofline.analysis.caches.accesses import Accesses

Op = tuple[list[tuple[int, float]], list[tuple[int, float]]]


def accesses(*ops: Op) -> Accesses:
    """Each op as the buffers that it reads and those that it writes, with the bytes that it touches of each."""
    touched = [access for op in ops for side in op for access in side]
    return Accesses(
        np.asarray([buffer for buffer, _ in touched], np.int64),
        np.asarray([size for _, size in touched], np.float64),
        np.asarray([len(reads) for reads, _ in ops], np.int64),
        np.asarray([len(writes) for _, writes in ops], np.int64),
    )
