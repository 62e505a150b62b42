"""Calls of PyTorch's fused attention that no fused kernel carries out: products and a softmax, one by one.

`scaled_dot_product_attention` chooses among its kernels by its arguments; where none takes them it computes what the
formula says (`_scaled_dot_product_attention_math`). The program asks for the fused kernel all the same, so that what
helps is other arguments, and not another call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from roofline.core.cost import not_fused
from roofline.costs.calls import Call, Tensor
from roofline.traces import nesting

#: The call of a program; what carries it out lies in it.
_CALLED = "aten::scaled_dot_product_attention"
#: Its arguments by place: query, key, value, mask, rate of dropout.
_TENSORS, _MASK, _DROPOUT = ("query", "key", "value"), 3, 4
#: Dimensions of the tensors, and of a mask, that the kernel of a CPU takes.
_DIMENSIONS, _OF_MASKS = 4, (2, 4)


def notes(names: Sequence[str], parent: NDArray[np.int64], call: Callable[[int], Call]) -> Mapping[int, str]:
    """For each recorded call inside of such a call the note on it, with what keeps fused kernels out, where known."""
    called = np.asarray([name == _CALLED for name in names], bool)
    outer = nesting.nearest(parent, called)
    notes_of = {number: not_fused(obstacle(call(number))) for number in np.flatnonzero(called).tolist()}
    return {inner: notes_of[outer[inner]] for inner in np.flatnonzero(outer >= 0).tolist()}


def obstacle(call: Call) -> str:
    """Name what of its arguments no fused kernel takes; "" where that is not known.

    As PyTorch checks it (aten/src/ATen/native/transformers/sdp_utils_cpp.h and .cpp; tried on 2.13). Whether a mask
    requires a gradient, which no kernel of a CPU computes, is not recorded.
    """
    inputs = [argument if isinstance(argument, Tensor) else None for argument in call.inputs[: len(_TENSORS)]]
    if None in inputs or len(inputs) < len(_TENSORS):
        return ""
    tensors = [argument for argument in inputs if argument is not None]
    strided = [name for name, tensor in zip(_TENSORS, tensors, strict=True) if _strided(tensor)]
    if strided:
        return f"the strided last dimension of {' and '.join(filter(None, (', '.join(strided[:-1]), strided[-1])))}"
    dimensions = next((len(tensor.shape) for tensor in tensors if len(tensor.shape) != _DIMENSIONS), _DIMENSIONS)
    if dimensions != _DIMENSIONS:
        return f"tensors of {dimensions} dimensions instead of {_DIMENSIONS}"
    if any(tensor.device != "cpu" for tensor in tensors):
        return ""  # kernels of GPUs take more, each something else
    dropout = call.inputs[_DROPOUT] if len(call.inputs) > _DROPOUT else None
    if isinstance(dropout, int | float) and dropout:
        return "its dropout, which the kernel of a CPU lacks"
    if tensors[0].shape[-1] != tensors[2].shape[-1]:
        return "the other width of value's heads"
    mask = call.inputs[_MASK] if len(call.inputs) > _MASK else None
    if isinstance(mask, Tensor) and len(mask.shape) not in _OF_MASKS:
        return f"a mask of {len(mask.shape)} dimensions"
    return ""


def _strided(tensor: Tensor) -> bool:
    """Tell whether neighbours in the last dimension lie apart in memory, as far as that was recorded."""
    return tensor.stride is not None and bool(tensor.shape) and tensor.shape[-1] > 1 and tensor.stride[-1] != 1
