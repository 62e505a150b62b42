"""Whether the builders build the same net: outputs, losses and gradients of models, without roofline.

`alike.py FRAMEWORK NUMBER...` writes a line of JSON for each model; `alike.py NUMBER...` runs every framework in a
process of its own and prints what differs, or cannot be built.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np
from absent import absent
from built import build
from closed_form import closed_form
from draw import draw
from net import Model, places

FRAMEWORKS = ("torch", "jax", "tensorflow", "tensorflow-xla")
#: Largest difference, relative to the largest number; of 16 bits, and else.
CLOSE = {True: 0.1, False: 2e-3}


def main() -> None:
    if sys.argv[1] in FRAMEWORKS:
        for number in map(int, sys.argv[2:]):
            print(json.dumps(results(draw(number), sys.argv[1])), flush=True)
        return
    numbers = sys.argv[1:]
    lines = {framework: _lines(framework, numbers) for framework in FRAMEWORKS}
    for row, number in enumerate(numbers):
        compare(draw(int(number)), {framework: lines[framework][row] for framework in FRAMEWORKS})


def results(model: Model, framework: str) -> dict[str, Any]:
    if (reason := absent(model, framework)) is not None:
        return {"absent": reason}
    try:
        built = build(model, framework)
        output, norm = built.results()
    except Exception as error:
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {' '.join(str(error).split())[-400:]}"}
    return {
        "output": np.asarray(output, "f8").tolist(),
        "norm": norm,
        "parameters": built.parameters,
        "trained": built.trained,
    }


def _lines(framework: str, numbers: list[str]) -> list[dict[str, Any]]:
    """A line per model, in fresh processes where one dies."""
    found: list[dict[str, Any]] = []
    variables = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": "cpu"}
    while len(found) < len(numbers):
        command = [sys.executable, str(Path(__file__)), framework, *numbers[len(found) :]]
        with open(f"/tmp/alike-{framework}.log", "a") as log:
            child = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, text=True, env=variables, check=False)
        found += [json.loads(line) for line in child.stdout.splitlines() if line.startswith("{")]
        if child.returncode and len(found) < len(numbers):
            found.append({"error": f"ended with status {child.returncode}"})
    return found


def compare(model: Model, lines: dict[str, dict[str, Any]]) -> None:
    kinds = {place.layer.kind for place in places(model)}
    close = CLOSE["mixed" in kinds]
    parameters = closed_form(model).parameters
    reference: np.ndarray | None = None
    for framework, line in lines.items():
        if "output" not in line:
            print(f"model {model.number} on {framework}: {line.get('error') or line['absent']}")
            continue
        if line["parameters"] != parameters:
            print(f"model {model.number} on {framework}: {line['parameters']} parameters, not {parameters}")
        if "dropout" in kinds:
            continue
        own = np.asarray(line["output"], "f8")
        if reference is None:
            reference, norm = own, line["norm"]
        elif own.shape != reference.shape:
            print(f"model {model.number} on {framework}: shape {own.shape}, not {reference.shape}")
        else:
            apart = np.abs(own - reference).max() / max(np.abs(reference).max(), 1e-6)
            norms = abs(line["norm"] - norm) / max(norm, 1e-6)
            if not (apart <= close and norms <= 10 * close):
                print(f"model {model.number} on {framework}: results {apart:.2g} apart, gradients {norms:.2g}")


if __name__ == "__main__":
    main()
