"""Random models are counted as their closed form says, on every backend (`make truth`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parents[2] / "benchmarks" / "truth" / "run.py"


def misses(models: int, *backends: str) -> list[str]:
    """Counts the first models on these backends: a line for each count that is another one."""
    command = [sys.executable, str(RUN), "--models", str(models), "--backends", *backends]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("model ")]


@pytest.mark.parametrize("backend", ["torch", "jax", "tensorflow", "tensorflow-xla"])
def test_twenty_models(backend: str) -> None:
    assert misses(20, backend) == []


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("backend", ["torch", "torchscript", "torch-compile", "jax", "tensorflow", "tensorflow-xla"])
def test_two_hundred_models(backend: str) -> None:
    assert misses(200, backend) == []
