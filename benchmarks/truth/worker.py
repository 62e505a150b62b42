"""Counts models on one backend: `worker.py BACKEND MODEL...` writes a line of JSON for each, in that order.

Whoever starts it has set the environment that the backend asks for. After an error it ends, with status 0 and without
the remaining models, since what a failed step leaves in a process is nobody's business.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import traceback
from collections import Counter
from typing import Any

from absent import absent
from built import build
from draw import named
from net import Model

from roofline.core.step import Step
from roofline.recording.backend import load
from roofline.recording.recording import Plan, Recording


def main() -> None:
    backend, names = sys.argv[1], sys.argv[2:]
    results = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # libraries print where they like
    for name in names:
        result = count(named(name), backend)
        print(json.dumps({"model": name, **result}), file=results)
        if "error" in result:
            return
        forget(backend)
        if name == names[0]:
            gc.freeze()  # the framework: a million objects that stay need not be searched behind each model


def count(model: Model, backend: str) -> dict[str, Any]:
    """What roofline counts in a step of a model, or why there is nothing to count."""
    if (reason := absent(model, backend)) is not None:
        return {"absent": reason}
    begin = time.perf_counter()
    try:
        recording = recorded(model, backend)
    except Exception as error:
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {' '.join(str(error).split())[-400:]}"}
    return {**summary(recording), "seconds": round(time.perf_counter() - begin, 3)}


def recorded(model: Model, backend: str) -> Recording:
    """One step of the model as `roofline profile FILE:FUNCTION --count-only` counts it."""
    built = build(model, backend)
    step = Step(
        run=built.run,
        mode="train" if model.trains else "infer",
        model=built.model,
        parameters=built.parameters,
        trainable=built.trained,
    )
    plan = Plan(device="cpu", threads=1, count_only=True)
    return load(backend).recorder.record(step, plan, lambda text: None)


def summary(recording: Recording) -> dict[str, Any]:
    """Model FLOPs by phase, and the names of what is not known."""
    phases: Counter[str] = Counter()
    unknown: set[str] = set()
    executed = 0.0
    for op in recording.ops:
        signature = recording.signatures[op.signature]
        cost = signature.cost
        fields = (cost.model_flops, cost.flops, cost.vector_flops, cost.functions, cost.bytes_read, cost.bytes_written)
        if None in fields:
            unknown.add(f"{signature.name} ({cost.note})")
        phases[recording.phases[op.phase]] += cost.model_flops or 0
        executed += cost.flops or 0
    unknown.update(note for note in recording.notes if note.startswith("the work of "))
    return {
        "flops": sum(phases.values()),
        "phases": {phase: flops for phase, flops in phases.items() if flops},
        "executed": executed,
        "parameters": recording.parameters,
        "unknown": sorted(unknown),
        "flags": list(recording.flags),
    }


def forget(backend: str) -> None:
    """Free what compilers keep of a model."""
    if backend == "jax":
        import jax

        jax.clear_caches()
    elif backend == "torch-compile":
        import torch

        torch.compiler.reset()
    gc.collect()


if __name__ == "__main__":
    main()
