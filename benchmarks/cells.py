"""Every model on every backend, by the command line a user types: `make cells` writes docs/cells.md.

A cell is one `roofline profile`; its profile is kept in `cells/` and not measured again while it is there, so that the
run can be broken off and go on. What fails is in the table with its sentence.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

from roofline import plugins
from roofline.analysis.analysis import Analysis, analyze
from roofline.core.schema import load
from roofline.errors import RooflineError
from roofline.recording.backend import load as backend_of

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "cells"
TABLE = ROOT / "docs" / "cells.md"
#: In the order of the table; others follow by name.
_FIRST = (
    *("torch", "torch-compile", "torchscript", "jax", "tensorflow", "tensorflow-xla"),
    *("keras-torch", "keras-jax", "keras-tensorflow", "keras2"),
)
BACKENDS = (*_FIRST, *(name for name in plugins.names("roofline.backends") if name not in _FIRST))
#: All but those that only PyTorch has and that are a part of others.
MODELS = tuple(
    name
    for name in plugins.names("roofline.models._geometry", ".toml", sorted_by_kind=True)
    if name not in ("bert-layer", "matmul")
)
MODES = ("infer", "train")
SIZES = ("tiny", "base")
#: Their weights alone take 34 and 29 GB in float32: measured at the tiny size only.
TOO_LARGE = ("gemma", "mistral")
#: Few steps: the table shows that and what every cell counts; what is compared is measured with the default ones.
STEPS = {"tiny": 10, "base": 5}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backends", nargs="+", default=BACKENDS)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--sizes", nargs="+", default=SIZES)
    parser.add_argument("--minutes", type=float, default=240.0, help="measure no further cell after so long")
    parser.add_argument("--table", action="store_true", help="only write the table of what is there")
    asked = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    end = time.monotonic() + 60 * asked.minutes
    if not asked.table:
        for size in asked.sizes:
            for model in asked.models:
                if size == "base" and model in TOO_LARGE:
                    continue
                for mode in MODES:
                    for backend in asked.backends:
                        if time.monotonic() < end and model in plugins.names(
                            backend_of(backend).models, sorted_by_kind=True
                        ):
                            measure(model, backend, mode, size)
    TABLE.write_text(table(), encoding="utf-8")
    print(f"Wrote {TABLE.relative_to(ROOT)}")


def path(model: str, backend: str, mode: str, size: str) -> Path:
    return FOLDER / f"{size}-{model}-{mode}-{backend}.json"


def measure(model: str, backend: str, mode: str, size: str) -> None:
    """One cell, unless it is there; why it failed is kept beside it."""
    file = path(model, backend, mode, size)
    if file.exists():
        return
    command = [sys.executable, "-m", "roofline", "profile", model, "--backend", backend, "--mode", mode]
    command += ["--size", size, "--steps", str(STEPS[size]), "-o", str(file), "--force"]
    begin = time.monotonic()
    # Waiting threads asleep: on a machine that others use too a cell is then not measured a second time.
    variables = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    failed = file.with_suffix(".failed")
    failed.unlink(missing_ok=True)
    if done.returncode:
        words = (done.stderr.strip() or done.stdout.strip()).splitlines()
        failed.write_text(words[-1] if words else f"exit {done.returncode}", encoding="utf-8")
    print(f"{file.stem:40s} exit {done.returncode}, {time.monotonic() - begin:.0f} s", flush=True)


COLUMNS = (
    *("backend", "ms", "parameters", "forward GFLOP", "backward GFLOP", "executed / model"),
    *("FLOPs known", "bytes known", "joined", "placed", "above", "flags"),
)


def table() -> str:
    """The whole table, as Markdown."""
    versions: dict[str, str] = {}
    device = ""
    parts = []
    for size in SIZES:
        for model in MODELS:
            for mode in MODES:
                rows = []
                for backend in BACKENDS:
                    file = path(model, backend, mode, size)
                    if file.exists():
                        analysis = analyze(load(file))
                        versions |= analysis.profile.versions
                        device = analysis.profile.device.name
                        rows.append(row(backend, analysis))
                    elif file.with_suffix(".failed").exists():
                        rows.append([backend, file.with_suffix(".failed").read_text(encoding="utf-8")])
                if rows:
                    parts.append(f"## {model}, {mode}, {size}\n")
                    parts.append("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
                    parts += ["| " + " | ".join(cells) + " |" for cells in rows]
                    parts.append("")
    known = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    head = (
        "# Every model on every backend\n\n"
        f"Made by `make cells` on {date.today().isoformat()}: {device}; {known}.\n\n"
        "One command per cell, 5 plain steps at the published size and 10 at the tiny one, on a machine that others\n"
        "use too: the times say that a cell runs and roughly how fast, and are no comparison. GFLOP are model FLOPs\n"
        "of contractions; `placed` is the share of busy time with a known block; `above` counts ops above a\n"
        "ceiling.\n\n"
    )
    return head + "\n".join(parts)


def row(backend: str, analysis: Analysis) -> list[str]:
    phases = analysis.by("phase")
    blocks = analysis.by("block")
    lost = sum(total.seconds for name, total in blocks.items() if name in ("other", "(no op)", ""))
    coverage = analysis.coverage

    def model(phase: str) -> str:
        return f"{phases[phase].model_flops / 1e9:.6g}" if phase in phases else ""

    ratios = [f"{name} {total.flops / total.model_flops:.4g}" for name, total in phases.items() if total.model_flops]
    return [
        backend,
        f"{analysis.wall * 1e3:.4g}",
        "" if analysis.profile.parameters is None else f"{analysis.profile.parameters:,}",
        model("forward"),
        model("backward"),
        ", ".join(ratios),
        share(coverage["flops"]),
        share(coverage["bytes"]),
        share(coverage["time"]),
        share(1 - lost / analysis.busy if analysis.busy else None),
        str(analysis.above_ceiling),
        ", ".join(analysis.flags),
    ]


def share(value: Any) -> str:
    return "" if value is None else f"{100 * value:.1f} %"


if __name__ == "__main__":
    try:
        main()
    except RooflineError as error:
        sys.exit(str(error))
