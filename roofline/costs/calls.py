"""A recorded call of an op: its name and arguments as values, whichever profiler wrote them down.

Live recordings (an execution trace, with storages and outputs) and imported ones (a Chrome trace's `Input Dims`,
without) both become `Call`s, and the same engine costs them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from roofline.costs import strides
from roofline.costs.dtypes import DTYPES

#: How many numbers a sparse tensor holds that nobody was asked for.
UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor argument. stride None: not recorded. storage -1: identity not recorded. device "": not recorded.

    stored: how many numbers a sparse one holds, `UNKNOWN` where that was not recorded; None of a dense one. places: how
    many of its numbers, or blocks of them, have an index; None: all numbers.
    """

    shape: tuple[int, ...]
    stride: tuple[int, ...] | None
    dtype: str
    storage: int = -1
    offset: int = 0
    device: str = "cpu"
    stored: int | None = None
    places: int | None = None

    @property
    def numel(self) -> int:
        """Number of elements."""
        number = 1
        for size in self.shape:
            number *= size
        return number

    @property
    def distinct(self) -> int:
        """Number of distinct elements: what lies in one place, as along a stride of 0 (broadcast), counts once."""
        if self.stride is None or len(self.stride) != len(self.shape):
            return self.numel
        return strides.distinct(self.shape, self.stride)


def size(tensor: Tensor) -> float:
    """Return the bytes of the distinct elements. KeyError for a type of unknown size."""
    return float(tensor.distinct * DTYPES[tensor.dtype][1])


@dataclass(frozen=True, slots=True)
class Call:
    """Hold one execution of an op: `name` as dispatched ("aten::addmm"), its overload where recorded ("" is the default
    overload, None is not recorded), arguments in schema order, and results where recorded.

    Arguments are Tensor, numbers, strings, None, or tuples of these.
    """

    name: str
    overload: str | None
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...] | None = None

    def canonical(self) -> Call:
        """Number the storages of the call by first appearance, so that equal work has equal calls."""
        numbers: dict[int, int] = {}

        def rename(value: Any) -> Any:
            if isinstance(value, Tensor):
                storage = -1 if value.storage < 0 else numbers.setdefault(value.storage, len(numbers))
                return replace(value, storage=storage)
            if isinstance(value, tuple):
                return tuple(rename(item) for item in value)
            return value

        inputs = rename(self.inputs)
        return Call(self.name, self.overload, inputs, None if self.outputs is None else rename(self.outputs))


def tensors(value: Any) -> Iterator[Tensor]:
    """All tensors in an argument list, depth first: the order in which accesses are numbered."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from tensors(item)


def memory_format(call: Call) -> str:
    """ "channels_last" where an argument is laid out so, with the channels of each place beside each other; else "".

    A tensor of one channel, or of one place, is laid out both ways.
    """
    return "channels_last" if any(map(_channels_last, tensors(call.inputs))) else ""


def _channels_last(tensor: Tensor) -> bool:
    shape, stride = tensor.shape, tensor.stride
    if stride is None or len(shape) not in (4, 5) or len(stride) != len(shape):
        return False
    places = 1
    for size in shape[2:]:
        places *= size
    dense = [1]  # strides from the innermost dimension on: channels, then places from the last to the first
    for size in (shape[1], *shape[:1:-1]):
        dense.append(dense[-1] * size)
    return shape[1] > 1 and places > 1 and [stride[1], *stride[:1:-1]] == dense[:-1]


def describe(call: Call) -> str:
    """The shapes of the tensor arguments, for people: "[128,768] x [768,768]"; long lists are cut."""
    shapes = ["[" + ",".join(map(str, tensor.shape)) + "]" for tensor in tensors(call.inputs)]
    shown = shapes[:3]
    return " x ".join(shown) + (f" +{len(shapes) - 3}" if len(shapes) > 3 else "")
