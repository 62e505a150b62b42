"""Reads what sparse tensors hold, which no profiler records, and when a step makes a compressed one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from roofline.costs.calls import UNKNOWN
from roofline.pytorch.execution_trace import Stored
from roofline.pytorch.recording.addresses import Given

#: Layouts of which torch's observer cannot take the strides: it ends the process where it meets some of them.
COMPRESSED = frozenset((torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc))
_SPARSE = COMPRESSED | {torch.sparse_coo}
#: What makes a sparse tensor, of Python's functions.
_METHODS = ("to_sparse", *(f"to_sparse_{layout}" for layout in ("csr", "csc", "bsr", "bsc")))
_FUNCTIONS = tuple(f"sparse_{layout}_tensor" for layout in ("compressed", "csr", "csc", "bsr", "bsc"))


@dataclass(frozen=True, slots=True)
class Held:
    """Holds what a sparse tensor of this shape holds. places: that have an index, of numbers or of blocks of them."""

    layout: torch.layout
    shape: tuple[int, ...]
    numbers: int
    places: int


def held(tensor: torch.Tensor) -> Held:
    """Ask a sparse tensor what it holds."""
    values = tensor._values() if tensor.layout == torch.sparse_coo else tensor.values()
    return Held(tensor.layout, tuple(tensor.shape), values.numel(), tensor._nnz())


def among(tensors: Iterable[torch.Tensor]) -> dict[int, Held]:
    """Ask the sparse ones among tensors what they hold, by their address."""
    return {tensor._cdata: held(tensor) for tensor in tensors if tensor.layout in _SPARSE}


def given_to_calls(given: Iterable[Given], known: Mapping[int, Held]) -> dict[int, Stored]:
    """Tensor -> what it holds, or `UNKNOWN`, of the sparse ones among what calls are given.

    known: what those hold that Python knew, by their address.
    """
    sparse = ((tensor[0], known.get(seen.impl_ptr)) for tensor, seen in given if seen.layout in _SPARSE)
    return {
        number: (UNKNOWN, UNKNOWN) if holding is None else (holding.numbers, holding.places)
        for number, holding in sparse
    }


@contextmanager
def watched(tell: Callable[[torch.Tensor], None]) -> Iterator[None]:
    """While active, `tell` gets each sparse tensor that Python makes."""
    owners = [(torch.Tensor, name) for name in _METHODS] + [(torch, name) for name in _FUNCTIONS]
    originals = [vars(owner).get(name) for owner, name in owners]

    def telling(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            if isinstance(result, torch.Tensor) and result.layout in _SPARSE:
                tell(result)
            return result

        return call

    for owner, name in owners:
        setattr(owner, name, telling(getattr(owner, name)))
    try:
        yield
    finally:
        for (owner, name), before in zip(owners, originals, strict=True):
            if before is None:
                delattr(owner, name)  # it is inherited
            else:
                setattr(owner, name, before)
