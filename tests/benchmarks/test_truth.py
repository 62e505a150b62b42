"""Random models are counted as their closed form says, to the last FLOP (`make truth`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parents[2] / "benchmarks" / "truth" / "run.py"
MODELS = 20
#: Models that are counted on these backends, a third of them on each, and those whose count is open: docs/counting.md.
THIRDS = {
    "jax": (range(0, MODELS, 3), []),
    "tensorflow": (range(1, MODELS, 3), [19]),
    "tensorflow-xla": (range(2, MODELS, 3), [2, 11, 17]),
}


def missed(backend: str, models: range) -> list[int]:
    """Count models: the numbers of those whose count is not their closed form."""
    command = [sys.executable, str(RUN), "--only", *map(str, models), "--backends", backend]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    assert f"of {len(models)} models as in the closed form" in done.stdout
    words = (line.split() for line in done.stdout.splitlines())
    return sorted({int(line[1]) for line in words if line[:1] == ["model"] and line[2:4] == ["on", f"{backend}:"]})


def test_twenty_models_on_torch() -> None:
    assert missed("torch", range(MODELS)) == []


@pytest.mark.parametrize("backend", ["jax", "tensorflow", pytest.param("tensorflow-xla", marks=pytest.mark.thorough)])
def test_a_third_of_them_on_another_backend(backend: str) -> None:
    models, still_open = THIRDS[backend]
    assert missed(backend, models) == still_open


@pytest.mark.thorough
@pytest.mark.timeout(3600)
def test_two_hundred_models_on_torch() -> None:
    assert missed("torch", range(200)) == []
