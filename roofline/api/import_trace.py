"""Make a profile of a trace that was recorded elsewhere: `roofline.import_trace`."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path

from roofline import importing
from roofline.core.schema import Profile
from roofline.importing.selection import selected


def import_trace(
    trace: str | PathLike[str],
    *,
    device: str | None = None,
    capture: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None,
    inductor_cache: str | PathLike[str] | None = None,
    name: str | None = None,
    steps: str | None = None,
    between: str | None = None,
    trim: str | None = None,
) -> Profile:
    """Make a profile of a trace that somebody recorded, on whatever machine; nothing is run.

    trace: of torch.profiler (.json, .json.gz, .zip), or one of the other formats of `roofline import`. device: the name
    or file of the device whose ceilings to use; by default the device that the trace names. capture: the trace
    of the graphs' capture, for kernels replayed from graphs, several of them, or a folder. inductor_cache: the cache
    folder of torch's compiler, with the sources of Triton kernels. name: of the model, by default the file's. steps,
    between, trim: what to take as steps, as the options of `roofline import` ("3:8"; a mark; "10:50", in ms).

    Returns a Profile: times in seconds and work in FLOP and byte in its analysis. Raises InputError for an unreadable
    trace, MeasurementError for one without ops.

    >>> roofline.import_trace("trace.json.gz", name="mine")
    """
    command = f"roofline.import_trace({fspath(trace)!r})"
    return importing.read(
        [fspath(trace)],
        device=device,
        capture=None if capture is None else _files(capture),
        inductor_cache=None if inductor_cache is None else fspath(inductor_cache),
        name=name,
        command=command,
        selection=selected(steps, between, trim),
    )[0]


def _files(capture: str | PathLike[str] | Sequence[str | PathLike[str]]) -> list[str | Path]:
    several = [capture] if isinstance(capture, str | PathLike) else capture
    return [fspath(file) for file in several]
