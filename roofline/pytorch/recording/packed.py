"""Reads what quantised convolutions are packed with, before the step: an object that no profiler looks into.

    packed = weights(layers)
    with marked(packed):              # the calls of layers that hold such objects are annotated
        ...                           # the recorded step
    nodes = replace(nodes, packed=of_calls(nodes, packed))

A traced or compiled model calls no Python layers. Its calls are told by those of the eager step beside it, as many of
the same op with arguments and results of the same sizes, in the same order. In a compiled step the only convolution of
its sizes is the model's layer that has them, where no other layer does. Else it is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.modules import module as hooks

from roofline.costs.calls import Call, Tensor, tensors
from roofline.pytorch.nodes import Nodes
from roofline.pytorch.recording import shapes
from roofline.traces import nesting

#: The annotation around the call of such a layer, followed by its number.
PACKED = "roofline:packed:"
#: Annotations around a step of the layers themselves and one of what was traced of them, in one recording.
EAGER, TRACED = "roofline:run:eager", "roofline:run:traced"
_OPS = ("quantized::conv1d", "quantized::conv2d", "quantized::conv3d", "quantized::conv_transpose")

_PREPACK = "_prepack"

#: Weight, strides, paddings, dilations, groups.
Packed = tuple[Tensor, tuple[int, ...], tuple[int, ...], tuple[int, ...], int]


def weights(layers: Iterable[torch.nn.Module]) -> dict[int, Packed]:
    """Read what the convolutions among layers hold packed, by the identity of the layer.

    A layer that holds several does not say which one it calls.
    """
    packed_of = {}
    for layer in layers:
        objects = [_packed(value) for value in vars(layer).values() if isinstance(value, torch.ScriptObject)]
        convolutions = [packed for packed in objects if packed is not None]
        if len(convolutions) == 1:
            (packed_of[id(layer)],) = convolutions
    return packed_of


def _packed(value: Any) -> Packed | None:
    """Read an object, if it is that of a convolution."""
    if not all(hasattr(value, name) for name in ("unpack", "stride", "padding", "dilation", "groups")):
        return None
    weight = value.unpack()[0]
    windows = (tuple(int(size) for size in option()) for option in (value.stride, value.padding, value.dilation))
    packed_weight = Tensor(tuple(weight.shape), None, "c10::qint8")
    stride, padding, dilation = windows
    return packed_weight, stride, padding, dilation, int(value.groups())


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


def of_calls(nodes: Nodes, layers: Mapping[int, Packed], model: Collection[int] = ()) -> dict[int, Packed]:
    """Find what each recorded convolution was packed with, by node.

    The layer around it tells, or the only call that packs anything after the convolution before it, or its twin in an
    eager step. model: the layers of a compiled model, of which nothing is seen in the step.
    """
    convolutions: list[int] = []
    packed_of: dict[int, Packed] = {}
    held, around = list(layers.values()), _mark_around(nodes, PACKED)
    just_packed: list[Packed] = []
    packs = False
    for node, name in enumerate(nodes.names):
        if not name.startswith(_OPS):
            continue
        call = nodes.call(node)
        if name.endswith(_PREPACK):
            weight, _bias, stride, padding, *_, dilation, groups = call.inputs
            just_packed.append((weight, stride, padding, dilation, groups))
            packs = True
            continue
        mark = around[node]
        candidates = [held[int(nodes.names[mark].removeprefix(PACKED))]] if mark >= 0 else []
        candidates += just_packed if len(just_packed) == 1 else []
        just_packed = []
        convolutions.append(node)
        if fitting := [packed for packed in candidates if _fits(call, packed)]:
            packed_of[node] = fitting[0]
    for node, packed in _of_twins(nodes, convolutions, packed_of).items():
        packed_of.setdefault(node, packed)
    return packed_of if packs else {**_of_model(nodes, convolutions, layers, model), **packed_of}


def _of_model(
    nodes: Nodes, convolutions: Sequence[int], layers: Mapping[int, Packed], model: Collection[int]
) -> dict[int, Packed]:
    """Return what convolutions are packed with that alone have their sizes, as has one layer, which is the model's."""
    times = Counter(_sizes(nodes.call(node)) for node in convolutions)
    packed_of: dict[int, Packed] = {}
    for node in convolutions:
        call = nodes.call(node)
        fitting = [layer for layer, packed in layers.items() if _fits(call, packed)]
        if times[_sizes(call)] == 1 and len(fitting) == 1 and fitting[0] in model:
            packed_of[node] = layers[fitting[0]]
    return packed_of


def _mark_around(nodes: Nodes, prefix: str) -> NDArray[np.int64]:
    """Return the nearest annotation of a prefix around each call; -1 for none."""
    return nesting.nearest(nodes.parent, np.asarray([name.startswith(prefix) for name in nodes.names], bool))


def _of_twins(nodes: Nodes, convolutions: Sequence[int], packed_of: Mapping[int, Packed]) -> dict[int, Packed]:
    """Return what traced convolutions are packed with by the eager ones of their sizes, if these are as many."""
    eager: dict[object, list[int]] = {}
    traced: dict[object, list[int]] = {}
    for calls, mark in ((eager, EAGER), (traced, TRACED)):
        around = _mark_around(nodes, mark)
        for node in convolutions:
            if around[node] >= 0:
                calls.setdefault(_sizes(nodes.call(node)), []).append(node)
    pairs = ((eager[key], traced[key]) for key in eager if len(eager[key]) == len(traced.get(key, ())))
    return {late: packed_of[early] for pair in pairs for early, late in zip(*pair, strict=True) if early in packed_of}


def _fits(call: Call, packed: Packed) -> bool:
    """Tell whether a convolution of what is packed turns the argument of a call into its result."""
    argument, result = next(tensors(call.inputs), None), next(tensors(call.outputs or ()), None)
    weight, *windows, groups = packed
    if argument is None or result is None:
        return False
    small, large = (argument, result) if "_transpose" in call.name else (result, argument)
    channels = weight.shape[0], weight.shape[1] * groups
    number = len(argument.shape) - 2
    dimensions = zip(
        large.shape[2:], small.shape[2:], weight.shape[-number:], *(window[-number:] for window in windows), strict=True
    )
    return (small.shape[1], large.shape[1]) == channels and all(
        (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1 == outputs
        for size, outputs, kernel, stride, padding, dilation in dimensions
    )


def _sizes(call: Call) -> object:
    return call.name, *(tensor.shape for tensor in tensors((call.inputs, call.outputs or ())))
