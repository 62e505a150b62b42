"""Read Chrome traces, those of torch.profiler and of others, as text, as any bytes, and packed; those of rocprofv3."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Iterator

import mutation
import trace_seeds
from target import Target

from roofline.importing.ranks import rank_of
from roofline.traces.chrome import reader as chrome
from roofline.traces.kineto import reader as kineto
from roofline.traces.kineto.links import link
from roofline.traces.rocprof import reader as rocprof


def chrome_trace(data: bytes) -> None:
    """Read the header and the events of a trace, from bytes."""
    rank_of(chrome.head(data))
    trace = kineto.read(data)
    for events in (trace.ops, trace.launches, trace.device, trace.annotations):
        for row in range(min(len(events), 20)):
            events.arguments(row)


def rocprof_trace(data: bytes) -> None:
    """Read a trace of rocprofv3, and link its kernels to calls."""
    trace = rocprof.read(data)
    link(trace)
    for row in range(min(len(trace.device), 20)):
        trace.device.arguments(row)


def _others() -> Iterator[bytes]:
    yield trace_seeds.first_events(next(iter(trace_seeds.kineto())), 5)
    yield b'[{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 2, "ts": 1.5, "dur": 2}]'
    yield b'{"traceEvents": [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "x"}}]}'
    yield b'\xef\xbb\xbf[\n{"ph": "B", "name": "a", "ts": 1}, {"ph": "E", "ts": 2},\n'


def _packed() -> Iterator[bytes]:
    text = trace_seeds.first_events(next(iter(trace_seeds.kineto())), 5)
    yield gzip.compress(text, mtime=0)
    yield gzip.compress(text[:100], mtime=0) + gzip.compress(text[100:], mtime=0)
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", method) as packed:
            packed.writestr("trace.json", text)
        yield archive.getvalue()


TARGETS = {
    "rocprof": Target(rocprof_trace, trace_seeds.rocprof, mutation.of_json),
    "chrome-trace": Target(chrome_trace, _others, mutation.of_json),
    "chrome-bytes": Target(chrome_trace, _others),
    "chrome-packed": Target(chrome_trace, _packed),
}
