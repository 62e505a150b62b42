"""Find what lies around a call of a trace: the kernels that it launched, calls inside it, the batch of its step."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from roofline.core.batch import Batch
from roofline.costs.calls import Call
from roofline.costs.context import Context, Kernel
from roofline.costs.dtypes import said
from roofline.importing.work.arguments import decoded, recorded
from roofline.traces.kineto.batches import Always, Batches
from roofline.traces.kineto.launches import plain_name
from roofline.traces.kineto.links import Links
from roofline.traces.kineto.reader import KERNEL, KinetoTrace

_MOST = 10_000  # calls inside one call: what has more is no kernel's wrapper


class _Geometry(msgspec.Struct, gc=False):
    grid: tuple[int, ...] = ()


class Surroundings:
    """The surroundings of the calls of one trace."""

    def __init__(self, trace: KinetoTrace, links: Links, batches: Batches | Always) -> None:
        """batches: those of the trace whose steps the calls are of."""
        self._trace, self._links, self._batches = trace, links, batches
        self._calls: dict[tuple[str, tuple[bytes, ...]], Call] = {}

    def of(self, op: int, events: Iterable[int], alike: bool) -> Context:
        """Return the context of a call. op: its row. events: rows of the device events that it launched itself."""
        inside = sorted([*self._within(op), *self._launched(events)], key=lambda event: event[0])
        return Context(tuple(event for _, event in inside), self._batch(op), alike)

    def _batch(self, op: int) -> Batch | None:
        return self._batches.at(int(self._trace.ops.start[op]))

    def _within(self, op: int) -> list[tuple[int, Call | Kernel]]:
        ops = self._trace.ops
        end = int(np.searchsorted(ops.start, ops.end[op], "right"))
        rows = (
            op
            + 1
            + np.flatnonzero((ops.thread[op + 1 : end] == ops.thread[op]) & (ops.end[op + 1 : end] <= ops.end[op]))
        )
        if len(rows) > _MOST:
            return []
        names = [self._trace.names[code] for code in ops.name[rows].tolist()]
        texts = [record.text for record in recorded(ops.select(rows))]
        calls = (self._call(name, text) for name, text in zip(names, texts, strict=True))
        return list(zip(ops.start[rows].tolist(), calls, strict=True))

    def _call(self, name: str, text: tuple[bytes, ...]) -> Call:
        key = name, text
        if key not in self._calls:
            call = decoded(name, text)
            self._calls[key] = Call(name, None, said(call.inputs))
        return self._calls[key]

    def _launched(self, events: Iterable[int]) -> list[tuple[int, Call | Kernel]]:
        device, launches = self._trace.device, self._trace.launches
        rows = np.asarray([event for event in events if device.kind[event] == KERNEL], np.int64)
        launch = self._links.launch[rows]
        launched = np.flatnonzero(launch >= 0)
        sizes = device.decoded(rows, _Geometry)
        by_launch = dict(zip(launched.tolist(), launches.decoded(launch[launched], _Geometry), strict=True))
        kernels: list[tuple[int, Call | Kernel]] = []
        for place, event in enumerate(rows.tolist()):
            size = sizes[place] or _Geometry()
            grid = size.grid or (by_launch.get(place) or _Geometry()).grid
            begin = int(launches.start[launch[place]] if launch[place] >= 0 else device.start[event])
            kernels.append((begin, Kernel(plain_name(self._trace.names[int(device.name[event])]), grid)))
        return kernels
