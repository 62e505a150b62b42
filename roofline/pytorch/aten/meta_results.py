"""Results on meta tensors of ops that torch has no meta kernel for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from roofline.pytorch.aten.tables import FAKE_QUANTISED


def of(name: str, func: Any, args: Any, kwargs: Any) -> Any:
    """Return the results of a call on meta tensors, by torch itself where it can."""
    return _RESULTS[name](*args, **kwargs) if name in _RESULTS else func(*args, **kwargs)


def _projected(qkv: torch.Tensor, bias: torch.Tensor, heads: int) -> tuple[torch.Tensor, ...]:
    """Queries, keys and values, [batch, heads, length, width of a head] each, side by side in one storage."""
    batch, length, width = qkv.shape
    return qkv.new_empty(3, batch, heads, length, width // 3 // heads).unbind(0)


def _convolved(
    x: torch.Tensor, weight: torch.Tensor, bias: Any, padding: Any, stride: Any, dilation: Any, groups: int, *_: Any
) -> torch.Tensor:
    return torch.convolution(x, weight, bias, stride, padding, dilation, False, [0] * len(stride), groups)


def _within_limits(x: torch.Tensor, *_: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbers as 8 bits would hold them, and of each whether it lay within the limits."""
    return torch.empty_like(x), torch.empty_like(x, dtype=torch.bool)


_RESULTS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(FAKE_QUANTISED, _within_limits),
    "dequantize": lambda x: torch.empty_like(x, dtype=torch.float32),
    "_transform_bias_rescale_qkv": _projected,
    "_masked_softmax": lambda x, *_: torch.empty_like(x),
    **dict.fromkeys(("mkldnn_convolution", "miopen_convolution"), _convolved),
}
