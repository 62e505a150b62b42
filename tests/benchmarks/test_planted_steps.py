"""Both steps of a planted pair, and of one where nothing was changed, compute the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "benchmarks" / "planted"
PAIRS = tomllib.loads((ROOT / "tests" / "data" / "plants_seventh" / "plants.toml").read_text(encoding="utf-8"))["pair"]
#: float16 in a softmax, of results around 1.
CLOSE = 1e-3

#: Prints the largest difference of the results of two steps, relative to the largest result.
DIFFERENCE = """
import importlib, json, os, sys
import numpy as np


def result(step):
    file, name = step.split(":")
    sys.path.append(os.path.join(sys.argv[1], os.path.dirname(file)))
    return getattr(importlib.import_module(os.path.basename(file)[:-3]), name)()()


def arrays(result):
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (list, tuple)):
        return [array for part in result for array in arrays(part)]
    return [np.asarray(result, np.float64)]


for a, b in json.loads(sys.argv[2]):
    results, references = arrays(result(a)), arrays(result(b))
    assert results and len(results) == len(references), (a, b)
    pairs = zip(results, references)
    print(max(np.abs(x - y).max() / np.abs(y).max() if x.shape == y.shape else np.inf for x, y in pairs))
"""


def backends(pair: dict[str, Any]) -> tuple[str, ...]:
    """That of both steps, or that of each."""
    return (pair.get("backend", "torch"), *pair.get("b_arguments", [])[1:2])


def differences(pairs: Iterable[dict[str, Any]], keras: str) -> list[float]:
    """Of the two steps of each pair, all in one process."""
    steps = json.dumps([(pair["a"], pair["b"]) for pair in pairs])
    variables = os.environ | {"KERAS_BACKEND": keras, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-c", DIFFERENCE, str(MODELS), steps]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=500, check=False)
    assert not done.returncode, done.stderr
    return [float(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("backend", sorted({backends(pair) for pair in PAIRS}), ids="-".join)
def test_both_steps_compute_the_same(backend: tuple[str, ...]) -> None:
    for framework in backend:
        pytest.importorskip({"keras-tensorflow": "keras", "torch-compile": "torch"}.get(framework, framework))
    pairs = [pair for pair in PAIRS if backends(pair) == backend and pair["kind"] != "refused"]
    apart = differences(pairs, backend[0].removeprefix("keras-"))
    far = {pair["name"]: size for pair, size in zip(pairs, apart, strict=True) if not size <= CLOSE}
    assert not far
