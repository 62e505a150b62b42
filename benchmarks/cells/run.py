"""Every model on every backend, by the command line a user types: `make cells` writes docs/cells.md.

A cell is one `roofline profile`. What it found is kept (kept.py) and not measured again, so that the run can be broken
off and go on; --again measures it anew. What fails is in the table with its sentence.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from datetime import date

import absent
import kept
import one_layer
import page
from cell import BACKENDS, FOLDER, MODELS, ROOT, SIZES, Cell, asked
from row import row

from roofline import models
from roofline.analysis.analysis import analyze
from roofline.core.schema import load
from roofline.errors import RooflineError

#: Few steps: the table shows that and what every cell counts; what is compared is measured with the default ones.
STEPS = {"tiny": 10, "base": 5, "one-layer": 5}
#: A thread that nobody waits for, where others use the machine too.
THREAD = ("--threads", "1")
#: A layer takes seconds a step: one sample, few tokens, in the arithmetic that every CPU has.
ONE_LAYER = ("--batch", "1", "--precision", "fp32")
TOKENS = ("--seq", "32")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backends", nargs="+", default=BACKENDS)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--sizes", nargs="+", default=SIZES)
    parser.add_argument("--minutes", type=float, default=240.0, help="measure no further cell after so long")
    parser.add_argument("--again", action="store_true", help="measure what was found before, too")
    parser.add_argument("--table", action="store_true", help="only write the tables of what is there")
    wanted = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    end = time.monotonic() + 60 * wanted.minutes
    for cell in asked(wanted.sizes, wanted.models, wanted.backends):
        known = cell in kept.load() and not wanted.again
        if absent.reason(cell) is None and not known and not wanted.table and time.monotonic() < end:
            kept.keep(measure(cell))
    for written in (page.write(), one_layer.write()):
        if written is not None:
            print(f"Wrote {written.relative_to(ROOT)}")


def measure(cell: Cell) -> kept.Found:
    """What one cell gives."""
    command = [sys.executable, "-m", "roofline", "profile", cell.model, "--backend", cell.backend, "--mode", cell.mode]
    command += ["--size", cell.size, "--steps", str(STEPS[cell.size]), "-o", str(cell.profile), "--force"]
    if cell.size != "base":
        command += THREAD
    if cell.size == "one-layer":
        command += [*ONE_LAYER, *(TOKENS if "seq" in models.geometry(cell.model).takes else ())]
    begin = time.monotonic()
    # Waiting threads asleep: on a machine that others use too a cell is then not measured a second time.
    variables = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    print(f"{cell.profile.stem:50s} exit {done.returncode}, {time.monotonic() - begin:.0f} s", flush=True)
    about = {"model": cell.model, "backend": cell.backend, "mode": cell.mode, "size": cell.size}
    today = date.today().isoformat()
    if done.returncode:
        words = (done.stderr.strip() or done.stdout.strip()).splitlines()
        return kept.Found(**about, date=today, failed=words[-1] if words else f"exit {done.returncode}")
    analysis = analyze(load(cell.profile))
    profile, found = analysis.profile, one_layer.row if cell.size == "one-layer" else row
    return kept.Found(
        **about, date=today, device=profile.device.name, versions=dict(profile.versions), row=found(analysis)
    )


if __name__ == "__main__":
    try:
        main()
    except RooflineError as error:
        sys.exit(str(error))
