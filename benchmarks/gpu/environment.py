"""What a machine is, as JSON: versions, the GPU and its limits, and the clocks that it keeps under a load."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

DISTRIBUTIONS = (
    *("roofline", "torch", "triton", "jax", "jaxlib", "jax-cuda13-plugin", "jax-cuda12-plugin", "keras", "keras-hub"),
    *("transformers", "flax", "optax", "numpy", "msgspec", "nvidia-ml-py", "nvidia-cublas", "nvidia-cudnn-cu13"),
)
#: Of nvidia-smi; nothing that tells which machine it is.
GPU = (
    *("name", "driver_version", "memory.total", "memory.used", "pstate", "persistence_mode", "ecc.mode.current"),
    *("mig.mode.current", "power.limit", "power.max_limit", "temperature.gpu"),
    *("clocks.applications.graphics", "clocks.max.sm", "clocks.max.memory"),
)
CLOCKS = ("clocks.sm", "clocks.mem", "power.draw", "temperature.gpu", "clocks_event_reasons.active")
#: How long the products run while the clocks are read [s].
LOAD = 4.0


def parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    return words


def main() -> None:
    asked = parser().parse_args()
    found: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": sys.version.partition(" ")[0],
        "processors": os.cpu_count(),
        "versions": {name: version for name in DISTRIBUTIONS if (version := _version(name))},
        "tools": {name: shutil.which(name) is not None for name in ("ncu", "nvcc", "nsys")},
        "load": os.getloadavg(),
    }
    if asked.device == "cuda":
        found["gpu"] = _smi(GPU)
        found["torch"] = _torch()
        found["clocks"] = {"idle": _smi(CLOCKS), "under bf16 products": _under_load()}
    json.dump(found, sys.stdout, indent=1)
    print()


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _smi(fields: tuple[str, ...]) -> dict[str, str]:
    """Each field by its name; of a field that this driver does not know, its answer."""
    values = [value.strip() for value in _query(",".join(fields)).split(",")]
    if len(values) == len(fields):
        return dict(zip(fields, values, strict=True))
    return {field: _query(field) for field in fields}  # a driver that does not know one of many tells none


def _query(fields: str) -> str:
    words = ["nvidia-smi", "-i", "0", f"--query-gpu={fields}", "--format=csv,noheader"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=30)
    return (done.stdout.strip().splitlines() or [f"not known: exit {done.returncode}"])[0]


def _torch() -> dict[str, Any]:
    import torch

    properties = torch.cuda.get_device_properties(0)
    return {
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "capability": torch.cuda.get_device_capability(),
        "multiprocessors": properties.multi_processor_count,
        "L2": properties.L2_cache_size,
        "memory": properties.total_memory,
        "tf32 of products": torch.backends.cuda.matmul.allow_tf32,
    }


def _under_load() -> list[dict[str, Any]]:
    """Clocks every half second or so while large products run, with the rate that they reach meanwhile [FLOP/s]."""
    import torch

    n = 8192
    a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    torch.mm(a, b)
    torch.cuda.synchronize()
    seen = []
    end = time.monotonic() + LOAD
    while time.monotonic() < end:
        begin, count = time.perf_counter(), 300
        for _ in range(count):
            torch.mm(a, b)
        clocks = _smi(CLOCKS)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - begin
        seen.append({"clocks": clocks, "seconds": round(seconds, 4), "rate": 2 * n**3 * count / seconds})
    return seen


if __name__ == "__main__":
    main()
