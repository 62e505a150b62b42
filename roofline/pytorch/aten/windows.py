"""Pooling, and images read between their points: the vector work of windows."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import torch

from roofline.core.cost import Cost
from roofline.costs import formulas, rare
from roofline.pytorch.aten.contractions import by_name
from roofline.pytorch.aten.tables import MAX_POOLS, base

#: Of the argument `interpolation_mode`, by number (aten/src/ATen/native/GridSamplerUtils.h).
_MODES = ("bilinear", "nearest", "bicubic")


def _dimensions(name: str) -> int:
    return next(number for number in (1, 3, 2) if f"{number}d" in name)


def _size(kernel: Any, dimensions: int) -> int:
    """Elements of a window; one number stands for all dimensions."""
    sizes = [kernel] if isinstance(kernel, int) else list(kernel)
    return int(prod(sizes if len(sizes) == dimensions else sizes[:1] * dimensions))


def _pool(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    """Each output is a reduction of its window; windows are taken whole."""
    result, name = out if isinstance(out, torch.Tensor) else out[0], base(func._schema.name)
    if "adaptive" in name:
        window = args[0].numel() / max(1, result.numel())
    else:
        window = float(_size(args[1], _dimensions(name)))
    return formulas.reduction(window * result.numel(), result.numel(), mean="avg" in name)


def _average_backward(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    """Each gradient is divided by the size of its window once, and added to every input of it."""
    gradients, name = args[0].numel(), base(func._schema.name)
    if "adaptive" in name:
        return Cost(vector_flops=float(gradients + args[1].numel()))
    return Cost(vector_flops=(1.0 + _size(args[2], _dimensions(name))) * gradients)


def _locations(grid: torch.Tensor) -> tuple[int, int]:
    """(places where the image is read, dimensions of the image)."""
    dimensions = grid.shape[-1]
    return grid.numel() // max(1, dimensions), dimensions


def _grid_sample(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    named = by_name(func, args, kwargs)
    return rare.grid_sample(out.numel(), *_locations(named["grid"]), _MODES[named["interpolation_mode"]])


def _grid_sample_backward(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    named = by_name(func, args, kwargs)
    mode, wanted = _MODES[named["interpolation_mode"]], named["output_mask"]
    return rare.grid_sample_backward(named["grad_output"].numel(), *_locations(named["grid"]), mode, *wanted)


#: Of antialiased resizing: what the filter is called, and its radius in pixels.
_FILTERS = {
    "_upsample_bilinear2d_aa": ("linear", 1.0),
    "_upsample_bicubic2d_aa": ("cubic", 2.0),
    "_upsample_lanczos2d_aa": ("lanczos", 3.0),
}


def _taps(named: dict[str, Any], sizes: Any, outputs: Any, radius: float) -> list[int]:
    """Count the taps of each dimension, as PyTorch scales it: corner on corner, by what was given, or by the sizes."""
    taps = []
    for axis, size, out in zip("hw", sizes, outputs, strict=True):
        scale_factor = named.get(f"scales_{axis}")
        corners = (size - 1) / (out - 1) if out > 1 else 0.0
        scale = corners if named["align_corners"] else 1 / scale_factor if scale_factor else size / out
        taps.append(rare.antialiased_taps(size, out, radius, scale))
    return taps


def _antialiased(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    weights, radius = _FILTERS[base(func._schema.name)]
    image = args[0]
    taps = _taps(by_name(func, args, kwargs), image.shape[-2:], out.shape[-2:], radius)
    return rare.resample(prod(image.shape[:-2]), image.shape[-2:], out.shape[-2:], taps, weights)


def _antialiased_backward(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    weights, radius = _FILTERS[base(func._schema.name).removesuffix("_backward")]
    gradient = args[0]
    taps = _taps(by_name(func, args, kwargs), out.shape[-2:], gradient.shape[-2:], radius)
    return rare.resample_backward(prod(gradient.shape[:-2]), taps, weights)


#: The rule of each op, as `flops` calls them.
RULES: dict[str, Callable[[Any, Any, Any, Any], Cost]] = {
    **{f"{kind}_pool{dim}d{end}": _pool for kind, end in MAX_POOLS for dim in (2, 3)},
    **{f"mkldnn_max_pool{dim}d": _pool for dim in (2, 3)},
    **{f"{kind}_pool{dim}d": _pool for kind in ("avg", "_adaptive_avg") for dim in (2, 3)},
    **{f"quantized_max_pool{dim}d": _pool for dim in (1, 2, 3)},
    **{f"{kind}_pool{dim}d_backward": _average_backward for kind in ("avg", "_adaptive_avg") for dim in (2, 3)},
    **dict.fromkeys(_FILTERS, _antialiased),
    **{f"{name}_backward": _antialiased_backward for name in _FILTERS},
    "grid_sampler_3d": _grid_sample,
    "grid_sampler_2d_backward": _grid_sample_backward,
    "grid_sampler_3d_backward": _grid_sample_backward,
}
