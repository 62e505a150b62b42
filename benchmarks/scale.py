"""What large profiles and many of them cost each verb, in processor time and memory: docs/reliability.md has the table.

`python benchmarks/scale.py [ops]`, by default a quarter of a million. Profiles are made by repeating the ops of one: of
an imported trace (of $ROOFLINE_TRACES, or of ../shared/traces; without them the synthetic trace of the tests), and of a
measured one, which knows its buffers, so that the caches are walked through. Many are copies of one of BERT-base, each
with steps of its own. Each run is a new process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from roofline.core.schema import Profile, load, save

ROOT = Path(__file__).resolve().parents[1]
RECORDED = Path(os.environ.get("ROOFLINE_TRACES", ROOT.parent / "shared" / "traces")) / "h100_qwen_0.5b_infer.json.gz"
SYNTHETIC = ROOT / "tests" / "data" / "synthetic_gpu_train.json"
MEASURED = ROOT / "profiles" / "h100" / "bert-torch-train-b32-tf32.json"
BERT = ROOT / "profiles" / "bert-torch-infer-b1-s128-amd-epyc-1.json"
FORMATS = ("json", "csv", "latex", "markdown", "perfetto")
OPS, MANY, COMPARED = 250_000, 1_000, 100


def repeated(profile: Profile, ops: int) -> Profile:
    """The profile of a step that does the same again and again, until it has so many ops."""
    times = -(-ops // len(profile.ops))
    rows = tuple(row for _ in range(times) for row in profile.ops)[:ops]
    walls = tuple(step * times for step in profile.wall.steps)
    profiled = profile.profiled
    if profiled is not None:
        longer = {name: tuple(x * times for x in getattr(profiled, name)) for name in ("walls", "corrected", "idle")}
        profiled = replace(profiled, **longer)
    return replace(profile, ops=rows, wall=replace(profile.wall, steps=walls), profiled=profiled)


def cost(*words: object) -> tuple[float, float]:
    """Run a command in a process of its own; return its processor time [s] and the most that it held [MB]."""
    command = [sys.executable, "-m", "roofline", *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    # A gate that fails (1) and times that nobody can judge (4) are answers, too.
    if process.returncode not in (0, 1, 4):
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def tell(what: str, *words: object) -> None:
    """Print the median processor time of three runs of a command, their range, and the memory of the last one."""
    runs = sorted(cost(*words) for _ in range(3))
    print(f"  {what:46s} {runs[1][0]:6.2f} s ({runs[0][0]:.2f} to {runs[2][0]:.2f})  {runs[1][1]:6.0f} MB", flush=True)


def copies(folder: Path, many: int) -> list[Path]:
    """Write so many profiles of one model, in which step times differ by up to 2 %."""
    profile, random = load(BERT), Random(0)
    paths = [folder / f"{number}.json" for number in range(many)]
    for path in paths:
        steps = tuple(step * random.uniform(0.99, 1.01) for step in profile.wall.steps)
        save(replace(profile, wall=replace(profile.wall, steps=steps)), path)
    return paths


def main() -> None:
    """Each command three times, on both profiles."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    ops = int(sys.argv[1]) if sys.argv[1:] else OPS
    print(f"load {os.getloadavg()[0]:.2f}, Python {sys.version.split()[0]}, {ops:,} ops")
    with TemporaryDirectory() as name:
        folder = Path(name)
        source, imported, large = (folder / file for file in ("trace.json", "imported.json", "measured.json"))
        cost("import", RECORDED if RECORDED.exists() else SYNTHETIC, "--device", "h100-sxm", "-o", source)
        for path, of in ((imported, source), (large, MEASURED)):
            save(repeated(load(of), ops), path)
        for file in (imported, large):
            for options in ("", "--by kernel", "--details", *(f"--format {name}" for name in FORMATS)):
                tell(f"{file.stem}: show {options}", "show", file, *options.split())
            tell(f"{file.stem}: whatif", "whatif", file, "--device", "mi300x")
            tell(f"{file.stem}: check", "check", file, file)
            tell(f"{file.stem}: check --counts-only", "check", file, file, "--counts-only")
            tell(f"{file.stem}: compare", "compare", file, file)
        many = copies(folder, MANY)
        tell(f"check of {MANY:,} profiles", "check", BERT, *many)
        tell(f"compare of {COMPARED} profiles", "compare", *many[:COMPARED])


if __name__ == "__main__":
    main()
