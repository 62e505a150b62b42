"""One profile of each row of each preset, on the backend of its first column: `make reference` writes profiles/PRESET/.

A small machine is not the benchmark's: one sample, one thread, and of the models that it cannot hold or wait for, one
layer in full width, or the size tiny. Every profile says in which of this it differs from its row. A row that is there
is left as it is; --again measures it anew. Rows for a GPU alone are left to a machine that has one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from roofline import models
from roofline.published import presets
from roofline.published.presets.preset import Preset, Row

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "profiles"
#: Seven billion parameters, or minutes a step on one thread.
ONE_LAYER = ("gemma", "mistral", "segment-anything")
#: Half a minute a step, and more, with one block per level.
TINY = ("stable-diffusion",)
#: Fewer tokens than published, where a layer of a large model is what runs; as many new ones.
TOKENS = 8
THREADS = 1
#: Steps of a second each; as many of 20 s would take an afternoon.
STEPS, FEW_STEPS = 10, 3


@dataclass(frozen=True, slots=True)
class Wanted:
    """A row of a preset as it is run here."""

    preset: Preset
    row: Row

    @property
    def batch(self) -> int:
        """Samples of a step here: one, but for small networks and where the benchmark has a row for each of two."""
        row = self.row
        if row.per_thread is not None:
            return row.per_thread * THREADS
        as_published = row.samples is not None or row.mode == "generate"
        return row.batch if as_published and row.batch is not None else 1

    @property
    def path(self) -> Path:
        """Where its profile is kept."""
        return FOLDER / self.preset.name / f"{self.row.model}-{self.row.mode}-b{self.batch}.json"

    def command(self) -> list[str]:
        """What a user would type for it, after `roofline`."""
        row = self.row
        said = ["profile", row.model, "--backend", self.preset.column[0].backend, "--mode", row.mode]
        said += ["--preset", self.preset.name, "--threads", str(THREADS), "--batch", str(self.batch)]
        if row.model in TINY:
            return [*said, "--size", "tiny", "--steps", str(STEPS)]
        if row.model not in ONE_LAYER:
            return [*said, "--steps", str(STEPS)]
        said += ["--size", "one-layer", "--precision", "fp32", "--steps", str(FEW_STEPS)]
        if "seq" in models.geometry(row.model).takes:
            said += ["--seq", str(TOKENS)]
        if row.mode == "generate":
            said += ["--new-tokens", str(TOKENS)]
        return said


def rows() -> Iterator[Wanted]:
    """Every row that a CPU can run."""
    for name in presets.names():
        preset = presets.load(name)
        for row in preset.row:
            if row.device in ("", "cpu"):
                yield Wanted(preset, row)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--again", action="store_true", help="measure what is there, too")
    parser.add_argument("--models", nargs="+", help="only these")
    asked = parser.parse_args()
    failed = []
    for wanted in rows():
        if (wanted.path.exists() and not asked.again) or (asked.models and wanted.row.model not in asked.models):
            continue
        wanted.path.parent.mkdir(exist_ok=True)
        # The command is recorded, with its output as it would be named in any folder.
        command = [sys.executable, "-m", "roofline", *wanted.command(), "-o", wanted.path.name, "--force"]
        print(" ".join(["roofline", *command[3:]]), flush=True)
        if subprocess.run(command, cwd=wanted.path.parent, check=False).returncode:
            failed.append(f"{wanted.path.relative_to(ROOT)}")
    if failed:
        sys.exit(f"Not measured: {', '.join(failed)}.")


if __name__ == "__main__":
    main()
