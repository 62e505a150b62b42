"""Make profiles of traces: whole, in part, with a capture of their graphs, of rocprofv3, and of XLA's profiler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import make_kineto
import mutation
import trace_seeds
from target import Target, written

from roofline import devices, plugins
from roofline.core import schema
from roofline.importing import from_kineto, from_xplane
from roofline.importing.ranks import rank_of
from roofline.importing.selection import ALL, Selection, selected
from roofline.importing.work import cache as cost_cache
from roofline.importing.work.costs import Costs
from roofline.traces.kineto import reader
from roofline.traces.kineto.reader import KinetoTrace
from roofline.traces.rocprof import reader as rocprof

# They read datasheets, rules and installed versions from files, which change in no execution.
devices._sheets = cache(devices._sheets)
cost_cache.rules = cache(cost_cache.rules)
plugins.version_of = cache(plugins.version_of)


def _profile(trace: KinetoTrace, captures: Sequence[KinetoTrace] = (), selection: Selection = ALL) -> None:
    """Make the profile of a trace, as `importing.traces.Importer` does; it can be saved and read again."""
    rank, file = rank_of(trace.metadata), Path("trace.json")
    made = from_kineto.profile(file, trace, rank, captures, Costs(), None, "fuzz", False, selection)
    schema.decode(schema.encode(made))


def import_kineto(data: bytes) -> None:
    """Make a profile of a trace."""
    _profile(reader.read(data))


def import_part(data: bytes) -> None:
    """Make a profile of a part of a trace, its steps between marks of a name."""
    _profile(reader.read(data), selection=selected("0:2", "aten::mm", ":500"))


def import_rocprof(data: bytes) -> None:
    """Make a profile of a trace of rocprofv3."""
    _profile(rocprof.read(data))


@cache
def _replayed() -> KinetoTrace:
    trace = make_kineto.Trace()
    for number in range(2):
        zero = 100 * number
        trace.annotation(f"ProfilerStep#{number}", zero, zero + 95)
        launch = trace.call("hipGraphLaunch", zero + 5, zero + 8)
        trace.kernel("gemm", zero + 20, zero + 40, launch)
        trace.copy("Memcpy DtoD", zero + 41, zero + 42, launch, 64)
    return reader.read(trace.write())


def import_with_capture(data: bytes) -> None:
    """Make a profile of a trace of replayed graphs; the input is that of their capture."""
    _profile(_replayed(), [reader.read(data)])


def import_xplane(data: bytes) -> None:
    """Make a profile of an XPlane trace; it can be saved and read again."""
    made = from_xplane.profile(written("trace.xplane.pb", data), None, "fuzz", lambda text: None)
    schema.decode(schema.encode(made))


def _marked() -> Iterator[bytes]:
    trace = make_kineto.Trace()
    for zero in (0, 100, 200):
        trace.op("aten::mm", zero + 5, zero + 30, make_kineto.X, make_kineto.WT)
        trace.launch("gemm", zero + 10, zero + 20, zero + 40)
    yield trace.write()


def _captures() -> Iterator[bytes]:
    trace = make_kineto.Trace()
    trace.annotation("capture_32_decode", 0, 50)
    trace.call("hipStreamBeginCapture", 1, 2)
    trace.op("aten::mm", 5, 30, make_kineto.X, make_kineto.WT)
    trace.call("hipLaunchKernel", 10, 12)
    trace.events[-1]["args"]["kernel"] = "gemm"
    trace.call("hipMemcpyAsync", 14, 16)
    trace.call("hipStreamEndCapture", 40, 42)
    yield trace.write()


TARGETS = {
    "kineto": Target(import_kineto, trace_seeds.kineto, mutation.of_json),
    "kineto-part": Target(import_part, _marked, mutation.of_json),
    "rocprof-import": Target(import_rocprof, trace_seeds.rocprof, mutation.of_json),
    "capture": Target(import_with_capture, _captures, mutation.of_json),
    "xplane-import": Target(import_xplane, trace_seeds.spaces, mutation.of_protobuf),
}
