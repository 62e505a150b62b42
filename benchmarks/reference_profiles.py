"""Two profiles of each row of each preset, on two of its backends: `make reference` writes profiles/PRESET/.

The first backend is that of the preset's first column; the second is the first of OTHERS that has the model, a column
of the preset before any other. A small machine is not the benchmark's: one sample, one thread, and of the models that
it cannot hold or wait for, one layer in full width, or the size tiny. Every profile says in which of this it differs
from its row. A profile that is there stays as it is; --again measures it anew. Rows for a GPU alone are left out.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from roofline import models, plugins
from roofline.published import presets
from roofline.published.presets.preset import Preset, Row
from roofline.recording import backend as backends

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
#: The second backend of a row, the best choice first: another framework tells more than another way to run one.
OTHERS = ("jax", "keras-jax", "tensorflow", "torchscript", "torch-compile")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A row of a preset on one backend, as it is run here."""

    preset: Preset
    row: Row
    backend: str

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
        """Where its profile is kept, below `profiles/`."""
        return Path(self.preset.name) / f"{self.row.model}-{self.row.mode}-b{self.batch}-{self.backend}.json"

    def command(self) -> list[str]:
        """What a user would type for it, after `roofline`."""
        row = self.row
        said = ["profile", row.model, "--backend", self.backend, "--mode", row.mode]
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


def second_backend(preset: Preset, row: Row) -> str:
    """Choose the backend that a row is compared on with the preset's first one."""
    absent = {column for apart in row.absent for column in apart.columns}
    able = [name for name in OTHERS if builds(name, row) and getattr(preset.of(name), "name", None) not in absent]
    return next((name for name in able if preset.of(name)), able[0])


def builds(backend: str, row: Row) -> bool:
    """Say whether a model of ours runs a row on a backend."""
    described = backends.load(backend)
    return row.mode not in described.refuses and row.model in plugins.names(described.models, sorted_by_kind=True)


def rows() -> Iterator[Wanted]:
    """Every row that a CPU can run, on two backends."""
    for name in presets.names():
        preset = presets.load(name)
        for row in preset.row:
            if row.device in ("", "cpu"):
                yield Wanted(preset, row, preset.column[0].backend)
                yield Wanted(preset, row, second_backend(preset, row))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--again", action="store_true", help="measure what is there, too")
    parser.add_argument("--models", nargs="+", help="only these")
    parser.add_argument("--backends", nargs="+", help="only these")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where PRESET/ is written, by default profiles/")
    parser.add_argument("--dry-run", action="store_true", help="print the commands alone")
    asked = parser.parse_args()
    failed = []
    for wanted in rows():
        file = asked.folder / wanted.path
        if (
            (file.exists() and not asked.again)
            or (asked.models and wanted.row.model not in asked.models)
            or (asked.backends and wanted.backend not in asked.backends)
        ):
            continue
        # The command is recorded, with its output as it would be named in any folder.
        command = [sys.executable, "-m", "roofline", *wanted.command(), "-o", file.name, "--force"]
        print(" ".join(["roofline", *command[3:]]), flush=True)
        if asked.dry_run:
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        if subprocess.run(command, cwd=file.parent, check=False).returncode:
            failed.append(f"{wanted.path}")
    if failed:
        sys.exit(f"Not measured: {', '.join(failed)}.")


if __name__ == "__main__":
    main()
