"""What a trace of torch.profiler costs: recorded ones repeated, read and linked, and imported whole.

Each run is a new process, imports and all. The first import of a trace costs its calls with torch, the others find them
in the cache.

`python benchmarks/import_kineto.py [events...]`, by default 132 thousand and 1.06 million. The traces are those of
$ROOFLINE_TRACES, or of ../shared/traces; without them the synthetic trace of the tests is repeated.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parents[1]
RECORDED = Path(os.environ.get("ROOFLINE_TRACES", ROOT.parent / "shared" / "traces"))
SOURCES = ("h100_qwen_0.5b_infer.json.gz", "a100_recsys_train.json.gz")
SYNTHETIC = ROOT / "tests" / "data" / "synthetic_gpu_train.json"
SIZES = (132_152, 1_056_796)
#: Keys of `args` that number events, and must differ from one repetition to the next.
IDS = ("correlation", "External id", "Ev Idx", "Profiler Event Index", "Sequence number", "Record function id")
PERIOD = 1_000  # [us] between one repetition and the next


def repeat(source: Path, events: int, target: Path) -> None:
    """Writes a trace of `events` events: those of `source` again and again, later and with other ids.

    The last repetition is cut by time, as by a profiler that stops.
    """
    text = source.read_bytes()
    trace = json.loads(gzip.decompress(text) if source.suffix == ".gz" else text)
    recorded = trace.pop("traceEvents")
    times = [e["ts"] for e in recorded if e.get("ph") == "X"]
    step = max(e["ts"] + e["dur"] for e in recorded if e.get("ph") == "X") - min(times) + PERIOD
    largest = max(e["args"].get(key, 0) for e in recorded if "args" in e for key in IDS) + 1
    stacks = "Python id"
    frames = max((e["args"].get(stacks, 0) for e in recorded if "args" in e), default=0) + 1
    with gzip.open(target, "wb", compresslevel=6) as file:
        file.write(json.dumps(trace)[:-1].encode() + b', "traceEvents": [\n')
        written = 0
        while written < events:
            some = sorted(recorded, key=lambda e: e.get("ts", 0))[: events - written]
            chosen = {id(event) for event in some}
            lines = [_line(event) for event in recorded if id(event) in chosen]
            file.write((b",\n" if written else b"") + b",\n".join(lines))
            written += len(lines)
            for event in recorded:
                _later(event, step, largest, frames)
        file.write(b"\n]}\n")


def _line(event: dict[str, Any]) -> bytes:
    """An event as Kineto indents it."""
    return msgspec.json.format(msgspec.json.encode(event), indent=2)


def _later(event: dict[str, Any], step: float, ids: int, frames: int) -> None:
    if "ts" in event:
        event["ts"] = event["ts"] + step if isinstance(event["ts"], int) else round(event["ts"] + step, 3)
    if isinstance(event.get("id"), int):
        event["id"] += ids
    args = event.get("args", {})
    for key in IDS:
        if args.get(key, 0) > 0:
            args[key] += ids
    for key in ("Python id", "Python parent id"):
        if isinstance(args.get(key), int):
            args[key] += frames


def measure(path: Path) -> None:
    """Reads and links the trace once, in this process; CPU seconds count from its start, imports and all."""
    from roofline.traces.kineto import links as link
    from roofline.traces.kineto import reader

    before = time.process_time()
    trace = reader.read(path)
    between = time.process_time()
    links = link.link(trace)
    after = time.process_time()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    kept = sum(map(len, (trace.ops, trace.launches, trace.device, trace.annotations)))
    print(after, before, between - before, after - between, memory, trace.recorded, kept, links.linked)


def whole(path: Path) -> None:
    """Imports the trace as a user does; prints peak memory [MB] and whether torch was imported."""
    from roofline import importing
    from roofline.core.schema import save

    (profile,) = importing.read([path], say=lambda text: None)
    save(profile, path.with_suffix(".profile"))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(memory, int("torch" in sys.modules), len(profile.ops))


def child(*arguments: object) -> tuple[list[str], float]:
    """What this file prints in a process of its own, and the CPU seconds of that process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, __file__, *map(str, arguments)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return printed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Makes each trace, reads it three times, and imports it three times."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sizes = [int(size) for size in sys.argv[1:]] or SIZES
    sources = [RECORDED / name for name in SOURCES if (RECORDED / name).exists()] or [SYNTHETIC]
    print(f"load {os.getloadavg()[0]:.2f}, Python {sys.version.split()[0]}")
    with tempfile.TemporaryDirectory() as folder:
        for source in sources:
            for size in sizes:
                path = Path(folder) / "repeated.json.gz"
                child("write", source, size, path)
                print(f"{source.name.split('.')[0]}, {size:,} events, {path.stat().st_size / 1e6:.1f} MB:")
                for _ in range(3):
                    printed, busy = child("read", path)
                    _, before, read, link, memory, recorded, kept, linked = map(float, printed)
                    print(
                        f"  {busy:5.2f} s of CPU (imports {before:.2f}, reading {read:.2f}, linking {link:.2f}); peak "
                        f"{memory:,.0f} MB; {recorded:,.0f} events, {kept:,.0f} kept, linked {linked:.3f}",
                        flush=True,
                    )
                os.environ["ROOFLINE_CACHE"] = folder
                (Path(folder) / "costs.msgpack").unlink(missing_ok=True)
                for _ in range(3):
                    (memory, torch, ops), busy = child("import", path)
                    how = "with torch" if int(torch) else "warm cache"
                    print(
                        f"  {busy:5.2f} s of CPU imported whole, {how}; peak {float(memory):,.0f} MB; {ops} ops",
                        flush=True,
                    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["write"]:
        repeat(Path(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
    elif sys.argv[1:2] == ["read"]:
        measure(Path(sys.argv[2]))
    elif sys.argv[1:2] == ["import"]:
        whole(Path(sys.argv[2]))
    else:
        main()
