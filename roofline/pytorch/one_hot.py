"""Products of which one factor is one-hot: each row, or column, has a single 1, and the rest of it are zeros.

Such a product picks rows of the other factor, and its gradient adds rows up by their index: what `embedding` and
`index_add` do without a product. It runs, but what the program asks for is no product. One-hot is what `one_hot` makes,
what `scatter_` writes into zeros, an `eye` or rows of it, and indices compared with `arange`. A convolution with an
`eye` in another shape picks the patches of an image.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from math import prod
from typing import Any, Literal

from roofline.costs.calls import Call, Tensor, tensors
from roofline.pytorch.aten.tables import ADDED, COPIES, base

#: What a storage holds, as far as it matters here. counting: 0, 1, 2, ... along one dimension.
_Holds = Literal["zeros", "identity", "counting", "one-hot"]

#: Products of two tensors; those that add something have it as their first argument.
_PRODUCTS = frozenset("mm bmm matmul mv dot linear einsum tensordot inner addmm baddbmm addmv addbmm".split())
#: Convolutions, and which argument is their kernel.
_KERNELS = {"convolution": 1, "_convolution": 1, "convolution_overrideable": 1, "convolution_backward": 2}
_ZEROS = frozenset(("zeros", "zeros_like", "new_zeros", "zero"))
#: Ops that fill their result with one number, and which argument that is.
_FILLED = {"scalar_tensor": 0, "full": 1, "full_like": 1, "new_full": 2}
_ROWS_OF = frozenset(("index", "index_select", "embedding"))


class OneHot:
    """Follows the calls of a step: which storages hold such a matrix."""

    def __init__(self) -> None:
        """Nothing is known of any storage yet."""
        self._holds: dict[int, _Holds] = {}

    def follow(self, call: Call, writes: Collection[int]) -> None:
        """Take note of a call. writes: the storages that it writes, whose former contents are gone."""
        holds = self._made_by(call)
        for storage in writes:
            self._holds.pop(storage, None)
        result = next(tensors(call.outputs or ()), None)
        if holds is not None and result is not None and result.storage >= 0:
            self._holds[result.storage] = holds

    def fill_with_zeros(self, call: Call) -> None:
        """Take note of a call that Python makes a tensor of zeros by."""
        self._holds.update((result.storage, "zeros") for result in tensors(call.outputs or ()) if result.storage >= 0)

    def picks(self, call: Call) -> bool:
        """Tell whether a call is a product with such a matrix."""
        name = base(call.name)
        if name in _KERNELS:
            kernel = call.inputs[_KERNELS[name]]
            return self._holding(kernel) == "identity" and prod(kernel.shape) == kernel.shape[0] ** 2
        if name not in _PRODUCTS:
            return False
        factors = call.inputs[1:] if name in ADDED else call.inputs
        return any(self._holding(factor) in ("one-hot", "identity") for factor in tensors(factors))

    def _made_by(self, call: Call) -> _Holds | None:
        name, values = base(call.name), call.inputs
        if name == "one_hot":
            return "one-hot"
        if name in _ZEROS or (name in _FILLED and len(values) > _FILLED[name] and _is_zero(values[_FILLED[name]])):
            return "zeros"
        if name == "arange":
            return "counting" if call.overload != "start_step" or values[2] == 1 else None
        if name == "eye":
            return "identity"
        first = self._holding(values[0]) if values else None
        if name in COPIES:
            return first
        if name in _ROWS_OF:
            return "one-hot" if first == "identity" else None
        if name == "scatter" and first == "zeros":
            return "one-hot" if _writes_one_per_row(values) else None
        if name == "where" and len(values) > 2 and self._holding(values[1]) == "one-hot":
            zeros = self._holding(values[2]) == "zeros" or _is_zero(values[2])
            return "one-hot" if zeros and _are_rows(values[0], values[1], values[2]) else None
        if name == "eq":
            return "one-hot" if any(self._names_each(*pair) for pair in _both_ways(values)) else None
        return None

    def _names_each(self, numbers: Any, indices: Any) -> bool:
        """Tell whether `numbers` counts along a dimension in which each of `indices` is repeated."""
        if self._holding(numbers) != "counting" or not isinstance(indices, Tensor):
            return False
        along = [place for place, size in enumerate(reversed(numbers.shape)) if size != 1]
        return len(along) == 1 and (tuple(reversed(indices.shape)) + (1,) * along[0] + (1,))[along[0]] == 1

    def _holding(self, value: Any) -> _Holds | None:
        return self._holds.get(value.storage) if isinstance(value, Tensor) and value.storage >= 0 else None


def _writes_one_per_row(values: tuple[Any, ...]) -> bool:
    """Tell whether `scatter` writes a 1 at one place of each row: (self, dim, index, value)."""
    dim, index, value = values[1:4] if len(values) > 3 else (None, None, None)
    if not isinstance(dim, int) or not isinstance(index, Tensor) or isinstance(value, Tensor):
        return False
    return value == 1 and -len(index.shape) <= dim < len(index.shape) and index.shape[dim] == 1


def _is_zero(value: Any) -> bool:
    return isinstance(value, (int, float)) and value == 0


def _are_rows(chosen: Any, rows: Any, replacement: Any) -> bool:
    """Tell whether `where` replaces whole rows by one number, as a program does where an index is none."""
    if not all(isinstance(array, Tensor) for array in (chosen, rows)) or (
        isinstance(replacement, Tensor) and replacement.shape
    ):
        return False
    return len(chosen.shape) == len(rows.shape) and any(
        chosen_size == 1 != size for chosen_size, size in zip(chosen.shape, rows.shape, strict=True)
    )


def _both_ways(values: tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
    if len(values) > 1:
        yield values[0], values[1]
        yield values[1], values[0]
