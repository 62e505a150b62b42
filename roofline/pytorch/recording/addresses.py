"""Find where the storages of a counted step lie: the profiler's events know pointers, the execution trace numbers.

Both recorders see the same calls in the same order. PyTorch's observer numbers a storage by its data pointer (seen
of torch 2.13, execution_trace_observer.cpp), so a number has one address, and a storage that gets the block of one that
is gone has its number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from roofline.pytorch.execution_trace import Nodes, tensors_of
from roofline.traces.alignment import align_threads

#: A tensor that a call is given, as the trace recorded it, with what the profiler noted of it.
Given = tuple[list[Any], Any]


def addresses(given: Iterable[Given]) -> dict[int, int]:
    """Storage -> address of its first byte [byte], of those that are an argument of any call."""
    pointers = ((tensor[1], seen.storage_data_ptr) for tensor, seen in given)
    return {storage: begin for storage, begin in pointers if begin}


def twins(nodes: Nodes, roots: Sequence[Any]) -> Iterator[tuple[Any, int]]:
    """Yield the events that are recorded calls, each with the number of its call.

    roots: of the event tree of a profiler that ran beside the observer.
    """
    events = sorted(_calls(roots), key=lambda event: event.correlation_id)  # in the order they began
    codes: dict[str, int] = {}
    name = np.asarray([codes.setdefault(event.name, len(codes)) for event in events], np.int64)
    thread = np.asarray([event.start_tid for event in events], np.uint64).astype(np.int64)
    recorded = np.asarray([codes.setdefault(name, len(codes)) for name in nodes.names], np.int64)
    aligned = align_threads(name, thread, recorded, nodes.thread).tolist()
    return ((event, node) for event, node in zip(events, aligned, strict=True) if node >= 0)


def arguments(nodes: Nodes, pairs: Iterable[tuple[Any, int]]) -> Iterator[Given]:
    """Yield each tensor that a call is given. pairs: of `twins`, whose events noted arguments."""
    for event, node in pairs:
        tensors = list(tensors_of(nodes.recorded(node)[1]))
        noted = list(_tensors(event.typed[1].inputs))
        if len(tensors) == len(noted):
            yield from zip(tensors, noted, strict=True)


def touched(nodes: Nodes, pairs: Iterable[tuple[Any, int]]) -> dict[int, tuple[int, str, int]]:
    """Address of a storage -> its bytes as far as calls were given them, the type of its device, its first use [ns]."""
    storages: dict[int, tuple[int, str, int]] = {}
    for event, node in pairs:
        when = event.start_time_ns
        for (_, _, offset, elements, size, device), seen in arguments(nodes, [(event, node)]):
            known = storages.get(seen.storage_data_ptr, (0, "", when))
            end = (offset + elements) * size
            storages[seen.storage_data_ptr] = max(known[0], end), device.partition(":")[0], min(known[2], when)
    storages.pop(0, None)
    return storages


def _calls(roots: Sequence[Any]) -> Iterator[Any]:
    """The events of calls, and not of memory."""
    waiting = list(roots)
    while waiting:
        event = waiting.pop()
        waiting += event.children
        if hasattr(event.typed[1], "inputs"):
            yield event


def _tensors(arguments: Sequence[Any]) -> Iterator[Any]:
    """The tensors among the arguments of a call, those in lists as well."""
    for argument in arguments:
        if isinstance(argument, list | tuple):
            yield from _tensors(argument)
        elif hasattr(argument, "storage_data_ptr"):
            yield argument
