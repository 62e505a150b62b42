"""Make the inputs of a module or a function of the user's, by shape and type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from numpy.typing import NDArray

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
BOOLEAN = "bool"
DTYPES = (*FLOATS, *INTEGERS, BOOLEAN)


class Input(msgspec.Struct, frozen=True):
    """Describe an array: its shape, and its type by one of `DTYPES`."""

    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{'x'.join(map(str, self.shape))}:{self.dtype}"


def described(inputs: Sequence[Input]) -> str:
    """Write inputs as the command line takes them: "8x128:int64,8x3:float32"."""
    return ",".join(map(str, inputs))


def arrays(inputs: Sequence[Input], rows: int | None) -> list[NDArray[Any]]:
    """Make the values of inputs: equal ones in each process.

    Floating-point numbers are drawn from the standard normal distribution (bfloat16 as float32, for numpy has none).
    rows: of the smallest table that integers may index, from which they are drawn evenly; None: no table is known, and
    they are 0, which any table has. Booleans are true, as a mask is that hides nothing.
    """
    import numpy as np  # not above: `roofline --help` loads none

    generator = np.random.default_rng(0)
    made: list[NDArray[Any]] = []
    for asked in inputs:
        if asked.dtype in FLOATS:
            dtype = "float32" if asked.dtype == "bfloat16" else asked.dtype
            made.append(
                generator.standard_normal(asked.shape, "float64" if dtype == "float64" else "float32").astype(dtype)
            )
        elif asked.dtype == BOOLEAN:
            made.append(np.ones(asked.shape, bool))
        else:
            most = min(rows or 1, int(np.iinfo(asked.dtype).max))
            made.append(generator.integers(0, most, asked.shape).astype(asked.dtype))
    return made
