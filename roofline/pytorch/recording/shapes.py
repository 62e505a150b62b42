"""Counting a step of arrays without data: a model of billions of parameters on a machine that could not hold it.

PyTorch's fake tensors have shapes, types and devices, and no memory: a step of them dispatches the ops that it would
dispatch, on to the kernels of the device that they say they are on, and computes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)
from torch.profiler import record_function
from torch.utils._python_dispatch import _disable_current_modes

from roofline.pytorch import execution_trace
from roofline.recording.backend import NeedsData
from roofline.traces import nesting


@contextmanager
def without_data() -> Iterator[None]:
    """While active, tensors that are made have no data. Raises NeedsData where somebody asks for it."""
    try:
        with FakeTensorMode(allow_non_fake_inputs=True):
            yield
    except (DataDependentOutputException, DynamicOutputShapeException) as error:
        raise NeedsData(f"the numbers that {error.func} makes of others") from error


class Buffers:
    """Numbers for the buffers of tensors without data, of which PyTorch records none: all have no storage alike.

    A tensor is known by its number, which is used again when it is gone. What an op makes is a new buffer; a view, and
    what is written in place, is the buffer of what it is made of.
    """

    def __init__(self) -> None:
        """None yet."""
        self._of_tensor: dict[int, int] = {}
        self._made = 0

    def enter(self, schema: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Number the tensors of a call, [tensor, storage, ...] each, in the place of their storages; calls in order."""
        arguments = list(execution_trace.tensors_of(inputs))
        for tensor in arguments:
            tensor[1] = self._of_tensor.setdefault(tensor[0], self._new())
        # In a schema "Tensor(a)" is a view of the argument of that mark; `_unsafe_view` is one and does not say so.
        alias = arguments and ("Tensor(" in schema.rpartition("->")[2] or "::_unsafe_view" in schema)
        argument_ids = {tensor[0] for tensor in arguments}
        for tensor in execution_trace.tensors_of(outputs):
            if tensor[0] not in argument_ids:
                self._of_tensor[tensor[0]] = arguments[0][1] if alias else self._new()
            tensor[1] = self._of_tensor[tensor[0]]

    def _new(self) -> int:
        self._made += 1
        return self._made


def number_buffers(nodes: execution_trace.Nodes) -> None:
    """Give the tensors of recorded calls without data the numbers of `Buffers`, in place."""
    buffers = Buffers()
    unit = nesting.outermost(nodes.parent, nodes.is_op)
    for call in np.flatnonzero(unit == np.arange(len(nodes))).tolist():  # of one step, in the order they began
        buffers.enter(*nodes.recorded(call))


class mark:
    """An annotation around what runs inside. It begins and ends by ops, which are no ops of the step without data."""

    def __init__(self, name: str) -> None:
        """Not begun."""
        self._recorded = record_function(name)

    def __enter__(self) -> None:
        with _disable_current_modes():
            self._recorded.__enter__()

    def __exit__(self, *error: object) -> None:
        with _disable_current_modes():
            self._recorded.__exit__(None, None, None)


def has_data() -> bool:
    """Tell whether tensors that are made here have data."""
    return type(torch.empty(0)) is torch.Tensor
