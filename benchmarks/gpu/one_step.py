"""Runs the step of a saved profile once for ncu, as `roofline.measuring.one_step` does, behind kernels on nothing.

Before the step, inside the same range, `NOTHING` kernels on one element each: what the counters show of them is what
they show of nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from roofline.core.schema import load
from roofline.measuring import one_step
from roofline.measuring.requests import request_of

NOTHING = 10


class Marks(one_step.CudaMarks):
    """Marks of the step, behind kernels on one element."""

    def start(self) -> None:
        element = torch.zeros(1, device="cuda")
        element.add_(1)
        super().start()
        for _ in range(NOTHING):
            element.add_(1)


if __name__ == "__main__":
    one_step.run(request_of(load(Path(sys.argv[1]))), Marks())
