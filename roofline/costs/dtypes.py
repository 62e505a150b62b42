"""The types of numbers as profilers write them and as we call them, those of an op, and values that were not kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

from roofline.core.vocabulary import FLOATING

DTYPES: dict[str, tuple[str, int]] = {
    # as profilers write them: (our name, bytes)
    "float": ("fp32", 4),
    "double": ("fp64", 8),
    "c10::Half": ("fp16", 2),
    "c10::BFloat16": ("bf16", 2),
    "long": ("int64", 8),
    "long int": ("int64", 8),
    "long long": ("int64", 8),
    "int": ("int32", 4),
    "short": ("int16", 2),
    "short int": ("int16", 2),
    "signed char": ("int8", 1),
    "unsigned char": ("uint8", 1),
    "bool": ("bool", 1),
    "c10::complex<float>": ("complex64", 8),
    "c10::complex<double>": ("complex128", 16),
    "c10::Float8_e4m3fn": ("fp8", 1),
    "c10::Float8_e5m2": ("fp8", 1),
    "c10::Float8_e4m3fnuz": ("fp8", 1),
    "c10::Float8_e5m2fnuz": ("fp8", 1),
    "unsigned short": ("uint16", 2),
    "unsigned int": ("uint32", 4),
    "unsigned long": ("uint64", 8),
    "c10::qint8": ("int8", 1),
    "c10::quint8": ("uint8", 1),
    "c10::qint32": ("int32", 4),
}

_SPELLINGS = {name.removeprefix("c10::").lower(): name for name in DTYPES}

#: Of a number, by our name of its type.
BYTES = dict(DTYPES.values())


def profiler_name(spelling: str) -> str:
    """Return the key of `DTYPES` of a type in any spelling: `c10::bfloat16`, `BFloat16`; of an unknown type itself."""
    return _SPELLINGS.get(spelling.removeprefix("c10::").lower(), spelling)


def of_most(amounts: Iterable[tuple[str | None, float]]) -> str | None:
    """Return the type of most bytes of (type, bytes) pairs, of equal ones the first; None where there is no type."""
    sums: dict[str, float] = {}
    for dtype, size in amounts:
        if dtype is not None:
            sums[dtype] = sums.get(dtype, 0.0) + size
    return max(sums, key=sums.__getitem__, default=None)


def computed(inputs: Sequence[str], output: str | None, product: bool) -> str | None:
    """Return the type that an op computes in.

    A product computes in what it multiplies. Other ops promote mixed inputs to the type of their result; where that is
    no floating number, as of a comparison, they compute in the widest input that is one.
    """
    floating = [dtype for dtype in inputs if dtype in FLOATING]
    if product:
        return next(iter(floating or inputs), output)
    if output in FLOATING:
        return output
    return max(floating, key=lambda dtype: BYTES.get(dtype, 0), default=next(iter(inputs), output))


class Unsaid(Enum):
    """An argument of which a profiler kept the kind and not the value, as those of 2022 and 2023 did.

    None is an argument that was not given; these may well have been.
    """

    SCALAR = "a number, truth value or type that was given"
    LIST = "a list of numbers that was given"
    ANY = "a list, text or device, or nothing"


def said(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments for who asks only what is known: None where the value was not recorded."""
    return tuple(None if isinstance(value, Unsaid) else value for value in inputs)


#: What the names of ops and kernels contain that exchange data between devices, whoever wrote them.
COLLECTIVE = re.compile(
    r"nccl|rccl|symm_mem|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast_coalesced", re.IGNORECASE
)
