"""`roofline.import_trace`: from a trace that was recorded elsewhere to a profile."""

from __future__ import annotations

from os import PathLike, fspath

from roofline import importing
from roofline.core.schema import Profile


def import_trace(
    trace: str | PathLike[str],
    *,
    device: str | None = None,
    capture: str | PathLike[str] | None = None,
    name: str | None = None,
) -> Profile:
    """Make a profile of a trace that somebody recorded, on whatever machine; nothing is run.

    trace: of torch.profiler (.json, .json.gz, .zip), or one of the other formats of `roofline import`. device: whose
    ceilings to use, a name or a file; by default those of the device that the trace names. capture: the trace of the
    graphs' capture, for kernels replayed from graphs. name: what the model is called, by default as its file is.

    Returns a Profile: times in seconds and work in FLOP and byte in its analysis. Raises InputError for what cannot be
    read, MeasurementError for a trace without anything to measure.

    >>> roofline.import_trace("trace.json.gz", name="mine")
    """
    command = f"roofline.import_trace({fspath(trace)!r})"
    return importing.read(
        [fspath(trace)],
        device=device,
        capture=None if capture is None else fspath(capture),
        name=name,
        command=command,
    )[0]
