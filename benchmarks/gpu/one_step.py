"""Runs the step of a saved profile once between cudaProfilerStart and cudaProfilerStop, for a profiler from outside.

Before it, inside the same range, `NOTHING` kernels on one element each: what the counters show of them is what they
show of nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from roofline import plugins
from roofline.core.schema import load
from roofline.core.step import Workload
from roofline.recording import backend as backends

NOTHING = 10
#: Steps before it: kernels are chosen, memory is mapped, the optimizer's state is made.
WARM = 3


def main(file: str) -> None:
    profile = load(Path(file))
    described = backends.load(profile.backend)
    workload = Workload(
        model=profile.model,
        mode=profile.mode,
        batch=profile.batch,
        seq=profile.seq,
        size=profile.size,
        layers=profile.layers,
        precision=profile.precision,
        device="cuda",
        options=described.model_options(profile.options),
    )
    step = plugins.load(described.models, profile.model, "model", sorted_by_kind=True).build(workload)
    one = torch.zeros(1, device="cuda")
    for _ in range(WARM):
        step.run()
        one.add_(1)
    torch.cuda.synchronize()
    runtime = torch.cuda.cudart()
    runtime.cudaProfilerStart()
    for _ in range(NOTHING):
        one.add_(1)
    step.run()
    torch.cuda.synchronize()
    runtime.cudaProfilerStop()


if __name__ == "__main__":
    main(sys.argv[1])
