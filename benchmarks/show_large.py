"""What a large profile costs to show and to project: the ops of a profile again and again, each run a new process.

`python benchmarks/show_large.py [ops]`, by default a quarter of a million. One profile is an imported trace (of
$ROOFLINE_TRACES, or of ../shared/traces; without them the synthetic trace of the tests) and one is measured: that one
knows its buffers, so that the caches are walked through.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from msgspec.structs import replace

from roofline.core.schema import Profile, load, save

ROOT = Path(__file__).resolve().parents[1]
RECORDED = Path(os.environ.get("ROOFLINE_TRACES", ROOT.parent / "shared" / "traces")) / "h100_qwen_0.5b_infer.json.gz"
SYNTHETIC = ROOT / "tests" / "data" / "synthetic_gpu_train.json"
MEASURED = ROOT / "profiles" / "h100" / "bert-torch-train-b32-tf32.json"
OPS = 250_000


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


def cpu(*words: object) -> float:
    """CPU seconds of a command in a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "roofline", *map(str, words)], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Each command three times, on both profiles."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    ops = int(sys.argv[1]) if sys.argv[1:] else OPS
    print(f"load {os.getloadavg()[0]:.2f}, Python {sys.version.split()[0]}, {ops:,} ops")
    with tempfile.TemporaryDirectory() as folder:
        imported, large = Path(folder) / "imported.json", Path(folder) / "large.json"
        trace = RECORDED if RECORDED.exists() else SYNTHETIC
        cpu("import", trace, "--device", "h100-sxm", "-o", imported)
        for what, source in (("imported", imported), ("measured", MEASURED)):
            save(repeated(load(source), ops), large)
            for command in (("show", large), ("show", large, "--by", "op"), ("whatif", large, "--device", "mi300x")):
                taken = sorted(cpu(*command) for _ in range(3))
                words = " ".join(str(word) for word in command if word is not large)
                print(f"  {what}: {words:28s} {taken[1]:5.2f} s of CPU ({taken[0]:.2f} to {taken[2]:.2f})", flush=True)


if __name__ == "__main__":
    main()
