"""Steps of a trace as annotations that mark them: what somebody else recorded gets them, and a GPU's are moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roofline.traces.xplane.reader import Line, XTrace

_COLUMNS = (
    *("start", "end", "name", "line", "hlo_op", "program", "run", "produces", "consumes", "scope", "bytes", "graph"),
)


def without(trace: XTrace, gone: NDArray[np.bool_]) -> XTrace:
    """The trace without the events for which `gone` is true; shape (n,)."""
    rows = np.flatnonzero(~gone)
    columns: dict[str, Any] = {name: getattr(trace, name)[rows] for name in _COLUMNS}
    return replace(trace, **columns)


def shortened(trace: XTrace, prefix: str, seconds: Sequence[float]) -> XTrace:
    """The trace whose annotations prefix#0, prefix#1, ... end so much sooner [s].

    None of them ends before an instruction does that began in it. A trace that shows another number stays as it is.
    """
    marked = np.asarray([name.startswith(f"{prefix}#") for name in trace.names] + [False], bool)[trace.name]
    rows = np.flatnonzero(marked)
    rows = rows[np.argsort(trace.start[rows], kind="stable")]
    if len(rows) != len(seconds):
        return trace
    end, ran = trace.end.copy(), trace.hlo_op >= 0
    for row, shortening in zip(rows.tolist(), seconds, strict=True):
        inside = ran & (trace.start >= trace.start[row]) & (trace.start < trace.end[row])
        last = int(trace.end[inside].max()) if inside.any() else int(trace.start[row])
        end[row] = min(int(end[row]), max(int(end[row]) - round(1e12 * shortening), last))
    return replace(trace, end=end)


def with_marks(trace: XTrace, windows: Sequence[tuple[int, int]], prefix: str) -> XTrace:
    """The trace with annotations prefix#0, prefix#1, ... at `windows`, (start, end) [ps], on a line of their own."""
    size = len(windows)
    mark_columns = {name: np.full(size, -1) for name in ("hlo_op", "produces", "consumes", "scope", "bytes")}
    mark_columns |= {name: np.zeros(size, np.int64) for name in ("program", "run", "graph")}
    mark_columns["start"], mark_columns["end"] = np.asarray(windows, np.int64).reshape(-1, 2).T
    mark_columns["name"] = np.arange(len(trace.names), len(trace.names) + size)
    mark_columns["line"] = np.full(size, len(trace.lines))
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(trace, name), mark_columns[name].astype(getattr(trace, name).dtype)])
        for name in _COLUMNS
    }
    names = (*trace.names, *(f"{prefix}#{number}" for number in range(size)))
    return replace(trace, names=names, lines=(*trace.lines, Line("/host:CPU", "roofline")), **columns)
