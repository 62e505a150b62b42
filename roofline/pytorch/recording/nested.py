"""Tells where there are nested tensors of the old layout, whose sizes and strides torch's observer cannot take.

It leaves out calls that take one and ends the process at some of them. Jagged ones it knows by their parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


def are_among(tensors: Iterable[torch.Tensor]) -> bool:
    """Tell whether any of these tensors is one."""
    return any(tensor.is_nested and tensor.layout == torch.strided for tensor in tensors)


@contextmanager
def packing_watched(tell: Callable[[], None]) -> Iterator[None]:
    """While active, `tell` is called before `nn.TransformerEncoder` packs padded sequences into one.

    Its layers end the process then (seen of torch 2.13).
    """
    original = torch._nested_tensor_from_mask

    def pack(*args: Any, **kwargs: Any) -> torch.Tensor:
        tell()
        return original(*args, **kwargs)

    torch._nested_tensor_from_mask = pack
    try:
        yield
    finally:
        torch._nested_tensor_from_mask = original
