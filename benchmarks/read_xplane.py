"""What reading a profiler trace costs: a synthetic XSpace of about 100 MB, in a process of its own.

`python benchmarks/read_xplane.py [megabytes]`. The events are those of a JAX step on a CPU: thunks with their
stats, the ends of asynchronous ones, and the marks of the thread pools, which make up most of such a trace.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import roofline.traces.xplane.reader
from roofline.traces.xplane.proto import XEvent, XLine, XPlane, XSpace, XStat

LINES, INSTRUCTIONS, STEP = 4, 400, 1_000  # worker threads, kinds of thunks, thunks of a step
STATS = "hlo_op hlo_module program_id run_id device_ordinal _src _pt _p _ct _c".split()
KEY = {name: key for key, name in enumerate(STATS, 1)}
FIRST_TEXT, START, STOP, RECORD = 100, 1, 2, 3  # ids; those of instructions follow


def stat(name: str, **value: int) -> bytes:
    return XStat(metadata_id=KEY[name], **value).SerializeToString()


def thunk(number: int, time_ps: int, line: int) -> list[bytes]:
    """A thunk, its end, and what the thread pool tells around them."""
    kind = number % INSTRUCTIONS
    link = (line << 32) + number
    source = stat("_src", ref_value=FIRST_TEXT)
    mark = [stat("_ct", int64_value=15), stat("_c", int64_value=number), source]
    stats = [
        stat("hlo_op", ref_value=FIRST_TEXT + 2 + kind),
        stat("hlo_module", ref_value=FIRST_TEXT + 1),
        stat("program_id", int64_value=50),
        stat("run_id", int64_value=number // STEP + 1),
        stat("device_ordinal", int64_value=0),
        source,
        stat("_pt", int64_value=0),
        stat("_p", int64_value=link),
    ]
    ends = [stat("_ct", int64_value=0), stat("_c", int64_value=link), source]
    events = [
        XEvent(metadata_id=START, offset_ps=time_ps, stats=mark),
        XEvent(metadata_id=10 + kind, offset_ps=time_ps + 1000, duration_ps=20_000_000, stats=stats),
        XEvent(metadata_id=RECORD, offset_ps=time_ps + 2000, stats=mark),
        XEvent(metadata_id=10 + INSTRUCTIONS + kind, offset_ps=time_ps + 20_002_000, duration_ps=100_000, stats=ends),
        XEvent(metadata_id=STOP, offset_ps=time_ps + 20_003_000, stats=[source]),
    ]
    return [event.SerializeToString() for event in events]


def write(path: Path, size: int) -> int:
    """An XSpace of about `size` bytes; the number of its events."""
    plane = XPlane(name=b"/host:CPU")
    texts = [b"thunk_executor.cc", b"jit_train", *(b"fusion.%d" % i for i in range(INSTRUCTIONS))]
    names = [*(name.encode() for name in STATS)]
    for key, name in [*enumerate(names, 1), *enumerate(texts, FIRST_TEXT)]:
        plane.stat_metadata.add(key=key).value.name = name
    pool = [b"ThreadpoolListener::" + word for word in (b"StartRegion", b"StopRegion", b"Record")]
    kinds = [*texts[2:], *(b"end: " + name for name in texts[2:])]
    for key, name in [*enumerate(pool, 1), *enumerate(kinds, 10)]:
        plane.event_metadata.add(key=key).value.name = name
    events, filled = 0, 0
    for line in range(LINES):
        encoded: list[bytes] = []
        number = 0
        while filled < size * (line + 1) // LINES:
            some = thunk(number, number * 25_000_000, line + 1)
            filled += sum(map(len, some)) + 2 * len(some)
            encoded += some
            number += 1
        events += len(encoded)
        plane.lines.append(XLine(name=b"tf_XLAEigen/%d" % line, timestamp_ns=7682, events=encoded).SerializeToString())
    path.write_bytes(XSpace(planes=[plane.SerializeToString()]).SerializeToString())
    return events


def peak() -> float:
    """The most memory this process has had [bytes]."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def measure(path: Path) -> None:
    """Reads the trace once, in this process."""
    before = peak()
    begin, busy = time.perf_counter(), time.process_time()
    trace = roofline.traces.xplane.reader.read(path)
    busy = time.process_time() - busy
    print(time.perf_counter() - begin, busy, peak() - before, len(trace))


def child(*arguments: object) -> list[str]:
    """What this file prints in a process of its own, which has had no memory yet."""
    command = [sys.executable, __file__, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def main() -> None:
    """Makes the trace, and reads it three times, all in new processes."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "synthetic.xplane.pb"
        events = int(child("write", path, size * 10**6)[0])
        written = path.stat().st_size
        print(f"load {os.getloadavg()[0]:.2f}, {written / 1e6:.1f} MB, {events:,} events")
        for _ in range(3):
            seconds, busy, memory, kept = map(float, child("read", path))
            print(
                f"{seconds:5.2f} s ({busy:.2f} s of CPU) {written / seconds / 1e6:6.1f} MB/s "
                f"{events / seconds:10,.0f} events/s, {kept:,.0f} of them kept; peak "
                f"{memory / 1e6:,.0f} MB, {memory / written:.1f} times the trace",
                flush=True,
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["write"]:
        print(write(Path(sys.argv[2]), int(sys.argv[3])))
    elif sys.argv[1:2] == ["read"]:
        measure(Path(sys.argv[2]))
    else:
        main()
