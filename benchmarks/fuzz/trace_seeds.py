"""Make small traces to begin with: made ones of torch.profiler, and recorded ones of JAX cut down."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import make_kineto
import make_rocprof

from roofline.traces.xplane import reader as xplane
from roofline.traces.xplane.proto import XEvent, XLine, XPlane, XSpace, XStat
from roofline.xla.hlo.proto import HloProto

RECORDED = Path(__file__).resolve().parents[2] / "tests" / "data" / "h100"


def kineto() -> Iterator[bytes]:
    """Make traces of the beginning of a step on a GPU."""
    whole = make_kineto.training(1).write()
    yield first_events(whole, 4)
    yield first_events(whole, 16)


def rocprof() -> Iterator[bytes]:
    """Make traces of rocprofv3, of an older version and a newer one: two of each kind of record."""
    for older in (False, True):
        trace = make_rocprof.Trace(older=older)
        for number, name in enumerate(("hipLaunchKernel", "hipGraphLaunch")):
            zero = 10_000 * number
            trace.range("step", zero, zero + 9_000)
            launch = trace.call(name, zero + 1_000, zero + 2_000)
            trace.call("hsa_signal_store_screlease", zero + 1_100, zero + 1_200)
            trace.kernel("gemm", zero + 3_000, zero + 5_000, launch, stream=number)
            trace.copy(
                "DEVICE_TO_HOST", zero + 5_000, zero + 6_000, 64, trace.call("hipMemcpy", zero + 2_000, zero + 7_000)
            )
        yield trace.write()


def first_events(trace: bytes, number: int) -> bytes:
    """Cut a trace behind so many of its events."""
    lines = trace.split(b"\n")
    return b"\n".join(lines[: number + 1]).rstrip(b",") + b"\n]}"


def recorded_spaces() -> Iterator[bytes]:
    for name in ("jax-buffers-off-train.1", "jax-buffers-on-infer.1"):
        with gzip.open(RECORDED / f"{name}.xplane.pb.gz") as file:
            yield file.read()


def programs(longest: int = 12_000) -> Iterator[bytes]:
    """Return the small programs of recorded traces, with buffers and without."""
    seen: set[str] = set()
    for space in recorded_spaces():
        for name, encoded in xplane.read(space).modules.values():
            if name not in seen and len(encoded) < longest:
                seen.add(name)
                yield encoded
                yield HloProto.FromString(encoded).hlo_module.SerializeToString()


def spaces() -> Iterator[bytes]:
    """Cut recorded traces down: few lines, few events of each, and what these refer to."""
    for space in recorded_spaces():
        for most in (2, 6):
            yield _cut(XSpace.FromString(space), most)


def _cut(space: XSpace, most: int) -> bytes:
    """Keep `most` events of each line of the planes of devices and hosts, one program, and the names that they need."""
    kept = XSpace()
    for plane in map(XPlane.FromString, space.planes):
        name = bytes(plane.name)
        if name == b"/host:metadata":
            entries = [entry for entry in plane.event_metadata if entry.ByteSize() < 3000][:1]
            kept.planes.append(_plane(plane, [], entries))
        elif plane.lines and (name.startswith(b"/device:GPU") or name == b"/host:CPU"):
            lines = [XLine.FromString(line) for line in list(plane.lines)[:4]]
            for line in lines:
                del line.events[most:]
            kinds = {XEvent.FromString(event).metadata_id for line in lines for event in line.events}
            kept.planes.append(_plane(plane, lines, [entry for entry in plane.event_metadata if entry.key in kinds]))
    return kept.SerializeToString()


def _plane(plane: XPlane, lines: Sequence[XLine], entries: Sequence[Any]) -> bytes:
    """Write a plane with these lines and kinds of events, and with the names of their stats."""
    events = [XEvent.FromString(event) for line in lines for event in line.events]
    encoded = [
        *plane.stats,
        *(stat for owner in (*events, *(entry.value for entry in entries)) for stat in owner.stats),
    ]
    stats = list(map(XStat.FromString, encoded))
    named = {stat.metadata_id for stat in stats} | {stat.ref_value for stat in stats}
    few = XPlane(name=bytes(plane.name), lines=[line.SerializeToString() for line in lines], stats=list(plane.stats))
    few.stat_metadata.extend(entry for entry in plane.stat_metadata if entry.key in named)
    few.event_metadata.extend(entries)
    return few.SerializeToString()
