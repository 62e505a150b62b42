"""`make fuzz`: fuzz every reader and renderer of data that come from anywhere, one after another.

    make fuzz                         # all targets of targets.py, 20 s of processor time each
    make fuzz SECONDS=300 ONLY="hlo kineto"
    make fuzz ONLY=readers            # or renderers

Needs atheris and coverage, which `make fuzz` installs. Inputs that reached new code stay in fuzz/NAME/corpus, where the
next run goes on; what a target must not do stays in fuzz/NAME/finds, each input with its traceback. At the end there is
a table: executions, how many inputs were accepted, processor seconds, lines of the code that the target is to reach
which its corpus runs, and finds. Exits with 1 if there was a find.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from targets import CODE, READERS, RENDERERS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def main() -> None:
    """Fuzz the targets that are asked for, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20, help="of processor time for each target")
    parser.add_argument("--only", nargs="*", default=[], help="names of targets, or readers, or renderers")
    parser.add_argument("--output", type=Path, default=ROOT / "fuzz")
    asked = parser.parse_args()
    groups = {"readers": list(READERS), "renderers": list(RENDERERS)}
    names = [name for word in asked.only for name in groups.get(word, [word])] or list(CODE)
    if unknown := [name for name in names if name not in CODE]:
        parser.error(f"no target is called {unknown[0]}; there are: {', '.join(CODE)}")
    for program in ("campaign.py", "lines.py"):
        _run(program, asked.seconds, asked.output, names)
    finds = _print_table({name: _result(asked.output / name) for name in names})
    sys.exit(1 if finds else 0)


def _run(program: str, seconds: float, folder: Path, names: list[str]) -> None:
    """Run one of the programs beside this one; of the user's files it reads and writes none."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as scratch:
        environment = {**os.environ, "ROOFLINE_FUZZ_SCRATCH": scratch, "ROOFLINE_CACHE": scratch, "HOME": scratch}
        command = [sys.executable, str(HERE / program), str(seconds), str(folder), *names]
        subprocess.run(command, env=environment, check=False)


def _result(folder: Path) -> dict[str, Any]:
    ended, lines = ({}, "-")
    if (folder / "ended.json").exists():
        ended = json.loads((folder / "ended.json").read_text())
    if (folder / "lines.json").exists():
        lines = json.loads((folder / "lines.json").read_text())
    # What ended the process is kept, too, by libFuzzer.
    kept = [file for file in (folder / "finds").glob("*") if file.suffix != ".txt"]
    return {"executions": 0, "accepted": 0, "seconds": 0.0, **ended, "lines": lines, "kept": len(kept)}


def _print_table(results: dict[str, dict[str, Any]]) -> int:
    """Print a row for each target; return the number of finds."""
    print(f"{'target':18} {'executions':>10} {'accepted':>8} {'seconds':>7} {'lines':>10} {'finds':>5}")
    for name, of in results.items():
        accepted = f"{100 * of['accepted'] / max(1, of['executions']):.0f} %"
        numbers = f"{of['executions']:10,} {accepted:>8} {of['seconds']:7.0f} {of['lines']:>10} {of['kept']:5}"
        print(f"{name:18} {numbers}")
    total, finds = (sum(of[key] for of in results.values()) for key in ("executions", "kept"))
    print(f"{total:,} executions of {len(results)} targets, {finds} finds")
    return finds


if __name__ == "__main__":
    main()
