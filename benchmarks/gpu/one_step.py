"""Runs the step of a saved profile once for ncu, as `roofline.measuring.one_step` does, behind kernels on nothing.

Before the step, inside the same range, `NOTHING` kernels on one element each: what the counters show of them is what
they show of nothing.
"""

from __future__ import annotations

import sys

from roofline.measuring import one_step

NOTHING = 10


class Marks(one_step.CudaMarks):
    """Marks of the step, behind kernels on one element, which are PyTorch's whichever framework runs the step."""

    def start(self) -> None:
        import torch  # not sooner: variables are set for the framework of the step before any is loaded

        element = torch.zeros(1, device="cuda")
        element.add_(1)
        super().start()
        for _ in range(NOTHING):
            element.add_(1)


if __name__ == "__main__":
    sys.exit(one_step.main(sys.argv[1], Marks))
