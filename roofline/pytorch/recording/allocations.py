"""Find which memory a counted step holds, and from which op to which: what the allocators tell the profiler.

The profiler sees each block that is allocated and released while it is on. What lies there before is known by the
tensors: parameters, their gradients and the state of optimizers, PyTorch's and Keras's, by the objects that hold them,
all else by the calls that are given it. A CPU's allocator does not tell the release of such a block (seen of torch
2.13), so Python is asked to tell that of the gradients, which a step gives up when it begins or before it goes back.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.optim.optimizer import register_optimizer_step_pre_hook

from roofline.core.schema import Storages
from roofline.core.vocabulary import STORAGE_KINDS, StorageKind
from roofline.costs.counted import PHASES, Counted
from roofline.pytorch.recording.living import Living
from roofline.pytorch.recording.memory import parameters_of

SOURCE = "allocator"
_FORWARD = frozenset(map(PHASES.index, ("forward", "prefill", "decode")))
_BACKWARD = PHASES.index("backward")


@dataclass(frozen=True, slots=True)
class Held:
    """A storage that was there before the step: address, bytes, type of its device, and what it is for.

    parameter: address of the parameter that it is, or whose gradient or optimizer's state it is; 0: of none.
    """

    address: int
    bytes: int
    device: str
    kind: StorageKind
    parameter: int = 0


class HeldTensors:
    """The storages of parameters, their gradients and optimizers' states, before a step and after it."""

    def __init__(self, model: Any, living: Living) -> None:
        """Look them up now. model: its parameters count whether or not the step uses them; None: not known."""
        self._optimizers, self._keras_optimizers = living.optimizers, living.keras_optimizers
        parameters = [tensor for tensor in living.tensors if issubclass(type(tensor), torch.nn.Parameter)]
        of_model = [held for held in self._keras_optimizers if held is getattr(model, "optimizer", None)]
        own, state = parameters_of(model) or [], _state(of_model)
        groups = chain.from_iterable(optimizer.param_groups for optimizer in self._optimizers)
        others = chain.from_iterable(group["params"] for group in groups)
        self._parameters = list({id(tensor): tensor for tensor in (*own, *others, *parameters)}.values())
        self.of_model = frozenset(map(_address, (*own, *state)))
        self.before = tuple(self._now())
        self.gradients = {(held.address, held.bytes) for held in self.before if held.kind == "gradients"}
        self.released: dict[int, int] = {}
        self._watched = [self._watch(tensor.grad) for tensor in self._parameters if _is_dense(tensor.grad)]

    def _watch(self, gradient: torch.Tensor) -> weakref.ref[Any]:
        storage = gradient.untyped_storage()
        address = storage.data_ptr()
        return weakref.ref(storage, lambda _: self.released.setdefault(address, time.time_ns()))

    def _now(self) -> Iterator[Held]:
        known: set[int] = set()
        # They go first, as Keras makes a parameter of each of its variables.
        for tensor in _state(self._keras_optimizers):
            yield from _held([tensor], "optimizer", tensor, known)
        for tensor in self._parameters:
            states = (optimizer.state.get(tensor, {}) for optimizer in self._optimizers)
            values = [value for state in states for value in state.values()]
            yield from _held([tensor], "parameters", tensor, known)
            yield from _held([tensor.grad], "gradients", tensor, known)
            yield from _held(values, "optimizer", tensor, known)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """While active, the places of gradients are noted: before each optimizer's step, and at the end."""
        handle = register_optimizer_step_pre_hook(self._note_gradients)
        try:
            yield
            self._note_gradients()
        finally:
            handle.remove()

    def _note_gradients(self, *_: object) -> None:
        self.gradients |= {(held.address, held.bytes) for held in self._now() if held.kind == "gradients"}

    def state_after(self) -> set[tuple[int, int]]:
        """Return where the optimizers' states lie now, with their bytes."""
        return {(held.address, held.bytes) for held in self._now() if held.kind == "optimizer"}


def _state(optimizers: Iterable[Any]) -> list[Any]:
    """List what optimizers of Keras hold: moments, the count of steps, the learning rate."""
    return [variable.value for optimizer in optimizers for variable in optimizer.variables]


def _held(tensors: Iterable[Any], kind: StorageKind, parameter: Any, known: set[int]) -> Iterator[Held]:
    """Yield the storages of dense tensors that are not known yet."""
    for tensor in tensors:
        address = _address(tensor)
        if address and address not in known:
            known.add(address)
            size = tensor.untyped_storage().nbytes()
            yield Held(address, size, tensor.device.type, kind, _address(parameter))


def _address(tensor: Any) -> int:
    """Return where the storage of a dense tensor lies; 0 of all else."""
    return int(tensor.untyped_storage().data_ptr()) if _is_dense(tensor) else 0


def _is_dense(tensor: Any) -> bool:
    return isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided and not tensor.is_nested


@dataclass(frozen=True, slots=True)
class Allocations:
    """Blocks of memory that were allocated (bytes > 0) and released (bytes < 0) in a recorded step, in order of time.

    time: [ns]; address, bytes, device (its type): of each. begin, end: of each recorded call [ns], -1 where the
    profiler did not show it. held: what was there before. released: when gradients that were there were released [ns],
    by address. gradients, state: (address, bytes) of gradients and of optimizers' state at the end.
    """

    time: tuple[int, ...]
    address: tuple[int, ...]
    bytes: tuple[int, ...]
    device: tuple[str, ...]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    held: tuple[Held, ...]
    released: Mapping[int, int] = field(default_factory=dict)
    gradients: frozenset[tuple[int, int]] = frozenset()
    state: frozenset[tuple[int, int]] = frozenset()


#: An event of the profiler, and the recorded call that it is.
Twin = tuple[Any, int]
#: Address of a storage -> its bytes as far as they were seen, the type of its device, and when it was first used [ns].
Touched = Mapping[int, tuple[int, str, int]]


def read(
    roots: Sequence[Any], twins: Sequence[Twin], calls: int, held: HeldTensors, touched: Touched
) -> Allocations | None:
    """Read the allocations of a recorded step; None where the profiler tells of none.

    roots: of its event tree. twins: events that are recorded calls, of which there are `calls`.
    """
    events = sorted(_allocations(roots), key=lambda event: event.start_time_ns)
    if not events:
        return None
    begin, end = np.full((2, calls), -1, np.int64)
    for event, node in twins:
        begin[node], end[node] = event.start_time_ns, event.end_time_ns
    blocks = [event.typed[1] for event in events]
    made: dict[int, int] = {}
    for event, block in zip(events, blocks, strict=True):
        if block.alloc_size > 0:
            made.setdefault(block.ptr, event.start_time_ns)
    known = {storage.address for storage in held.before}
    used = held.of_model | touched.keys()
    return Allocations(
        time=tuple(event.start_time_ns for event in events),
        address=tuple(block.ptr for block in blocks),
        bytes=tuple(block.alloc_size for block in blocks),
        device=tuple(str(block.device.type) for block in blocks),
        begin=begin,
        end=end,
        held=(
            *(storage for storage in held.before if storage.parameter in used),
            *(
                Held(address, size, device, "inputs")
                for address, (size, device, first) in touched.items()
                if address not in known and first < made.get(address, first + 1)
            ),
        ),
        released=dict(held.released),
        gradients=frozenset(held.gradients),
        state=frozenset(held.state_after()),
    )


def _allocations(roots: Sequence[Any]) -> Iterator[Any]:
    waiting = list(roots)
    while waiting:
        event = waiting.pop()
        waiting += event.children
        if event.tag.name == "Allocation":
            yield event


# ---------------------------------------------------------------------------------------------- storages


@dataclass(slots=True)
class _Block:
    """A storage while the events of a step are replayed: numbers of the events that made and released it, if any."""

    bytes: int
    kind: StorageKind | None
    address: int
    made: int = -1
    released: int | None = None


def with_storages(counted: Counted, nodes: Any, first_call: int = 0) -> Counted:
    """Add to a counted step the storages that were recorded with its calls, if they were (`storages`)."""
    return replace(counted, storages=storages(getattr(nodes, "allocations", None), counted, first_call))


def storages(allocations: Allocations | None, counted: Counted, first_call: int = 0) -> Storages | None:
    """Number the ops between which each storage of a step is there.

    An op stands for the moment in which most memory is in use between its begin and that of the next one: what is there
    for a part of it only and not then does not count.

    counted: the step; first_call: how many of the recorded calls are not its own, and lie before it.
    """
    if allocations is None or not counted.ops:
        return None
    nodes = np.asarray([op.node for op in counted.ops], np.int64) + first_call
    begin, end = allocations.begin[nodes], allocations.end[nodes]
    if (begin < 0).all():
        return None
    begin = np.maximum.accumulate(begin)
    end = np.maximum.accumulate(np.maximum(begin, end))
    device = "cuda" if "cuda" in allocations.device else "cpu"
    times, changes, blocks = _replayed(allocations, device)
    window = _windows(times, changes, begin, end)
    # What was released before the first op is of the step before.
    moment = _moments(changes, window, blocks, len(nodes), int(np.searchsorted(times, begin[0])))
    return _columns(blocks, window, moment, counted, allocations)


def _replayed(allocations: Allocations, device: str) -> tuple[NDArray[np.int64], NDArray[np.int64], list[_Block]]:
    """Return times and changes of memory on a device [ns, byte], one by one, and the storages with their events."""
    blocks = [
        _Block(held.bytes, held.kind, held.address) for held in allocations.held if held.device == device and held.bytes
    ]
    alive = {block.address: block for block in blocks}
    events = [
        (when, address, size)
        for when, address, size, where in zip(
            allocations.time, allocations.address, allocations.bytes, allocations.device, strict=True
        )
        if where == device
    ]
    events += [(when, address, 0) for address, when in allocations.released.items() if address in alive]
    times: list[int] = []
    changes: list[int] = []
    for when, address, size in sorted(events, key=lambda event: event[0]):
        block = alive.get(address)
        # It was there before and no call is given it, or Python and the allocator both tell its release.
        if size <= 0 and (block is None or (size == 0 and block.made >= 0)):
            continue
        alive.pop(address, None)
        if block is not None:
            block.released = len(times)
            times.append(when)
            changes.append(-block.bytes)
        if size > 0:
            alive[address] = _Block(size, None, address, len(times))
            blocks.append(alive[address])
            times.append(when)
            changes.append(size)
    return np.asarray(times, np.int64), np.asarray(changes, np.int64), blocks


def _windows(
    times: NDArray[np.int64], changes: NDArray[np.int64], begin: NDArray[np.int64], end: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the op that each change of memory belongs to.

    Between two ops what is released belongs to the one before, and what is allocated to the one behind.
    """
    op = np.searchsorted(begin, times, side="right") - 1
    behind = -1
    windows = np.zeros(len(times), np.int64)
    for event, (row, when, change) in enumerate(zip(op.tolist(), times.tolist(), changes.tolist(), strict=True)):
        outside = row < 0 or when > end[row]
        if outside and (change > 0 or behind == row):
            behind = row
            row += 1
        windows[event] = min(max(row, 0), len(begin) - 1)
    return windows


def _moments(
    changes: NDArray[np.int64], window: NDArray[np.int64], blocks: Sequence[_Block], ops: int, before: int
) -> NDArray[np.int64]:
    """Return for each op the number of events up to the moment in which most memory is in use.

    before: number of events before the first op.
    """
    level = np.concatenate([[0], np.cumsum(changes)]) + sum(block.bytes for block in blocks if block.made < 0)
    ends = np.searchsorted(window, np.arange(ops), side="right")
    begins = np.concatenate([[before], np.maximum(ends[:-1], before)])
    ends = np.maximum(ends, begins)
    moments = [first + int(np.argmax(level[first : last + 1])) for first, last in zip(begins, ends, strict=True)]
    return np.asarray(moments, np.int64)


def _columns(
    blocks: Sequence[_Block],
    window: NDArray[np.int64],
    moment: NDArray[np.int64],
    counted: Counted,
    allocations: Allocations,
) -> Storages:
    rows: list[tuple[int, int, int, int]] = []
    gradients = _last_made(blocks, window, counted, allocations.gradients)
    for block in blocks:
        first, last = 0, len(moment) - 1
        if block.made >= 0:
            at = int(window[block.made])
            first = at + int(block.made >= moment[at])
        if block.released is not None:
            at = int(window[block.released])
            last = at - int(block.released < moment[at])
        if first > last:
            continue
        kind = block.kind
        if kind is None and id(block) in gradients:
            kind = "gradients"
        elif kind is None and block.released is None and (block.address, block.bytes) in allocations.state:
            kind = "optimizer"
        elif kind is None:
            used_later = block.released is None or last > first
            kind = "activations" if used_later and int(counted.phase[first]) in _FORWARD else "workspace"
        rows.append((STORAGE_KINDS.index(kind), block.bytes, first, last))
    kinds, sizes, firsts, lasts = zip(*rows, strict=True) if rows else ((),) * 4
    return Storages(source=SOURCE, kind=kinds, bytes=sizes, first=firsts, last=lasts)


def _last_made(
    blocks: Sequence[_Block], window: NDArray[np.int64], counted: Counted, places: frozenset[tuple[int, int]]
) -> set[int]:
    """Return which blocks are gradients: of those that a backward pass made at their places the last ones."""
    last: dict[tuple[int, int], int] = {}
    for block in blocks:
        place = (block.address, block.bytes)
        if block.made >= 0 and place in places and int(counted.phase[window[block.made]]) == _BACKWARD:
            last[place] = id(block)
    return set(last.values())
