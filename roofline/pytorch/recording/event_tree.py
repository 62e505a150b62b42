"""The calls of a step from the events of torch's profiler: a second channel, for tensors that break the first one.

The execution trace takes the strides of all tensors and ends the process at a compressed sparse one; the profiler
records these as well. It knows no results and no overloads, as a trace recorded elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from roofline.costs.calls import UNKNOWN, Call, Tensor, tensors
from roofline.pytorch.aten import schema
from roofline.pytorch.aten.tables import SPARSE_PRODUCTS, base
from roofline.pytorch.recording.sparse import Held

#: Ops whose result is dense, or has the places of their first argument.
_PLACES_KEPT = frozenset(
    "t transpose numpy_T mT mH adjoint detach alias clone to _to_copy contiguous copy neg sparse_sampled_addmm "
    "values crow_indices col_indices ccol_indices row_indices _values _indices _nnz sparse_dim dense_dim "
    "to_dense _to_dense".split()
)
#: Products, dense where one factor is.
_PRODUCTS = SPARSE_PRODUCTS | {"matmul", "linear"}
_TYPES = {dtype: name for name, dtype in reversed(schema.DTYPE.items())}


@dataclass(frozen=True, slots=True)
class Nodes:
    """See `roofline.pytorch.nodes.Nodes`. addresses: of storages [byte]."""

    names: tuple[str, ...]
    is_op: NDArray[np.bool_]
    parent: NDArray[np.int64]
    sequence: NDArray[np.int64]
    thread: NDArray[np.int64]
    calls: tuple[Call, ...]
    addresses: dict[int, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.names)

    def call(self, index: int) -> Call:
        """The arguments of one event."""
        return self.calls[index]


def read(tree: Iterable[Any], stored: Mapping[int, Held]) -> Nodes:
    """Read the calls of `experimental_event_tree()`, in the order they began.

    stored: what sparse tensors hold, by their address. One that is made of them, as a transposed one, holds what all of
    its sizes hold. It is not known where these differ, nor after an op whose sparse result may hold more or less than
    its arguments do: events tell no results.
    """
    sizes: dict[tuple[int, ...], set[tuple[int, int]]] = {}
    for held in stored.values():
        sizes.setdefault(tuple(sorted(held.shape)), set()).add((held.numbers, held.places))

    places_known = True

    def numbers(value: Any) -> tuple[int, int]:
        held = stored.get(value.impl_ptr)
        if held:
            return held.numbers, held.places
        alike = sizes.get(tuple(sorted(value.sizes)), set())
        return next(iter(alike)) if places_known and len(alike) == 1 else (UNKNOWN, UNKNOWN)

    events = sorted(_flat(tree, -1, []), key=lambda pair: pair[0].start_time_ns)
    place = {id(event): number for number, (event, _) in enumerate(events)}
    storages: dict[int, int] = {}
    calls: list[Call] = []
    lies_inside: list[bool] = []  # of an op, whose results are what counts
    for event, above in events:
        call = Call(
            event.name, None, tuple(_value(argument, numbers, storages) for argument in event.extra_fields.inputs)
        )
        around = None if above is None else place[id(above)]
        lies_inside.append(around is not None and (lies_inside[around] or _computes(calls[around])))
        places_known = places_known and (lies_inside[-1] or not _computes(call) or _keeps_places(call))
        calls.append(call)
    return Nodes(
        names=tuple(event.name for event, _ in events),
        is_op=np.asarray([_computes(call) for call in calls], bool),
        parent=np.asarray([-1 if above is None else place[id(above)] for _, above in events], np.int64),
        sequence=np.asarray([_sequence(event) for event, _ in events], np.int64),
        thread=np.asarray([event.start_tid for event, _ in events], np.int64),
        calls=tuple(calls),
        addresses={number: address for address, number in storages.items()},
    )


def _keeps_places(call: Call) -> bool:
    """Tell whether what a call makes is dense, or holds numbers at the places of its sparse argument, turned or not."""
    name, arguments = base(call.name), list(tensors(call.inputs))
    sparse = sum(tensor.stored is not None for tensor in arguments)
    if not sparse or name in _PLACES_KEPT or name.startswith("to_sparse"):  # what Python makes is told by `stored`
        return True
    if name == "mul":
        return sparse == 1 and all(tensor.stored is not None or not tensor.shape for tensor in arguments)
    return name in _PRODUCTS and sparse == 1


def _flat(tree: Iterable[Any], above: Any, events: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """List the events of ops and annotations, each with the one around it."""
    for event in tree:
        inner = above
        if event.tag.name == "TorchOp":
            events.append((event, None if above == -1 else above))
            inner = event
        _flat(event.children, inner, events)
    return events


def _sequence(event: Any) -> int:
    number = event.extra_fields.sequence_number
    return number if isinstance(number, int) and 0 <= number < 1 << 62 else -1


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "sizes")


def _value(value: Any, numbers: Callable[[Any], tuple[int, int]], storages: dict[int, int]) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(_value(member, numbers, storages) for member in value)
    if not _is_tensor(value):
        return value
    address = value.storage_data_ptr
    storage = storages.setdefault(address, len(storages) + 1) if address else -1
    dense = value.layout == torch.strided
    strides = tuple(value.strides) if dense else None
    held = (None, None) if dense else numbers(value)
    device = str(value.device)
    return Tensor(tuple(value.sizes), strides, _TYPES.get(value.dtype, ""), storage, 0, device, *held)


def _computes(call: Call) -> bool:
    if schema.packet(call.name) is None:
        return False
    overload = None
    if schema.is_mixed(call.name):
        try:
            overload = schema.overloads(call)[0]._overloadname
        except schema.Unresolved:
            overload = None
    return schema.computes(call.name, overload, has_schema=True)
