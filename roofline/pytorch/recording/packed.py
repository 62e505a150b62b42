"""What quantised convolutions are packed with: an object that no profiler looks into, read before the step.

    layers = weights()
    with marked(layers):              # the calls of layers that hold such objects are annotated
        ...                           # the recorded step
    nodes = replace(nodes, packed=of_calls(nodes, layers))

A traced or compiled model calls no Python layers. Its calls are told by those of the eager step beside it, the same op
with arguments and results of the same sizes in the same order, or by the only layer whose results have such sizes.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.nn.modules import module as hooks

from roofline.costs.calls import Call, Tensor, tensors
from roofline.pytorch.count import Nodes
from roofline.pytorch.recording import shapes
from roofline.traces import nesting

#: The annotation around the call of such a layer, followed by its number.
PACKED = "roofline:packed:"
_OPS = ("quantized::conv1d", "quantized::conv2d", "quantized::conv3d", "quantized::conv_transpose")

_PREPACK = "_prepack"

#: Weight, strides, paddings, dilations, groups.
Packed = tuple[Tensor, tuple[int, ...], tuple[int, ...], tuple[int, ...], int]


def weights() -> dict[int, Packed]:
    """Read what the convolutions among all layers that there are hold packed, by the identity of the layer."""
    # By type: asking an object for its class may run somebody's code.
    layers = (each for each in gc.get_objects() if issubclass(type(each), torch.nn.Module))
    found = {}
    for layer in layers:
        for value in vars(layer).values():
            if isinstance(value, torch.ScriptObject) and (packed := _packed(value)) is not None:
                found[id(layer)] = packed
    return found


def _packed(value: Any) -> Packed | None:
    """What an object holds, where it is that of a convolution."""
    if not all(hasattr(value, name) for name in ("unpack", "stride", "padding", "dilation", "groups")):
        return None
    weight = value.unpack()[0]
    windows = (tuple(int(size) for size in each()) for each in (value.stride, value.padding, value.dilation))
    made = Tensor(tuple(weight.shape), None, "c10::qint8")
    stride, padding, dilation = windows
    return made, stride, padding, dilation, int(value.groups())


@contextmanager
def marked(layers: Mapping[int, Packed]) -> Iterator[None]:
    """While active, the calls of these layers are annotated."""
    if not layers:
        yield
        return
    number = {identity: place for place, identity in enumerate(layers)}
    open_: list[Any] = []

    def before(module: torch.nn.Module, _: Any) -> None:
        if id(module) in number:
            open_.append(shapes.mark(f"{PACKED}{number[id(module)]}"))
            open_[-1].__enter__()

    def after(module: torch.nn.Module, _inputs: Any, _output: Any) -> None:
        if id(module) in number and open_:
            open_.pop().__exit__(None, None, None)

    handles = (
        hooks.register_module_forward_pre_hook(before),
        hooks.register_module_forward_hook(after, always_call=True),
    )
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def of_calls(nodes: Nodes, layers: Mapping[int, Packed]) -> dict[int, Packed]:
    """Find what each recorded convolution was packed with, by node.

    The layer around it tells, or the call that packs it in the step, its twin in an eager step, or its sizes.
    """
    held = list(layers.values())
    is_mark = np.asarray([name.startswith(PACKED) for name in nodes.names], bool)
    around = nesting.nearest(nodes.parent, is_mark)
    found: dict[int, Packed] = {}
    alike: dict[object, list[Packed]] = {}
    times: dict[object, int] = {}
    just_packed: Packed | None = None
    for node, name in enumerate(nodes.names):
        if not name.startswith(_OPS):
            continue
        call = nodes.call(node)
        if name.endswith(_PREPACK):
            weight, _bias, stride, padding, *_, dilation, groups = call.inputs
            just_packed = weight, stride, padding, dilation, groups
            continue
        key, mark = _sizes(call), around[node]
        if mark >= 0 or just_packed is not None:
            found[node] = held[int(nodes.names[mark].removeprefix(PACKED))] if just_packed is None else just_packed
            just_packed = None
            alike.setdefault(key, []).append(found[node])
        elif key in alike:
            times[key] = times.get(key, 0) + 1
            found[node] = alike[key][(times[key] - 1) % len(alike[key])]
        elif len(fitting := {one for one in held if _fits(call, one)}) == 1:
            (found[node],) = fitting
    return found


def _fits(call: Call, packed: Packed) -> bool:
    """Whether a convolution of what is packed turns the argument of a call into its result."""
    given, made = next(tensors(call.inputs), None), next(tensors(call.outputs or ()), None)
    weight, *windows, groups = packed
    if given is None or made is None:
        return False
    small, large = (given, made) if "_transpose" in call.name else (made, given)
    channels = weight.shape[0], weight.shape[1] * groups
    number = len(given.shape) - 2
    dimensions = zip(
        large.shape[2:], small.shape[2:], weight.shape[-number:], *(each[-number:] for each in windows), strict=True
    )
    return (small.shape[1], large.shape[1]) == channels and all(
        (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1 == outputs
        for size, outputs, kernel, stride, padding, dilation in dimensions
    )


def _sizes(call: Call) -> object:
    return call.name, *(tensor.shape for tensor in tensors((call.inputs, call.outputs or ())))
