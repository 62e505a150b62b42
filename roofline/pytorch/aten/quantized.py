"""Ops on numbers of 8 bits with a scale and a zero point: those of `torch.ao.quantization`, and oneDNN's.

The weights of `quantized::` ops are in an object that no profiler records. Results, which a live run records, say how
large those of a linear or recurrent layer are; what a convolution is packed with is put in its place where it was seen
(`recording.packed`): weight, strides, paddings, dilations, groups. What is left open is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import msgspec
import torch

from roofline.core.cost import Cost
from roofline.core.vocabulary import OpClass
from roofline.costs import formulas
from roofline.pytorch.aten.contractions import by_name
from roofline.pytorch.aten.schema import Unresolved
from roofline.pytorch.aten.tables import base

_NAMESPACES = ("quantized", "onednn")
#: FLOP per number: to 8 bits (over the scale, plus the zero point, two limits), back again, and its range before.
_TO, _BACK, _RANGE = 4.0, 2.0, 2.0
#: And how the names go on of layers that have an activation.
_ACTIVATIONS = ("", "_relu")
_LINEAR = frozenset(f"linear{activation}{kind}" for activation in _ACTIVATIONS for kind in ("", "_dynamic"))
_LINEAR_FP16 = frozenset(f"linear{activation}_dynamic_fp16" for activation in _ACTIVATIONS)
_CONVOLUTIONS = frozenset(
    f"conv{transposed}{dimensions}d{end}"
    for transposed in ("", "_transpose")
    for dimensions in (1, 2, 3)
    for end in ("", "_relu", "_add", "_add_relu", "_dynamic")
)
_ONEDNN_LINEAR = "qlinear_pointwise"
_ONEDNN_CONVOLUTIONS = frozenset(f"qconv{dimensions}_pointwise" for dimensions in ("", "1d", "2d", "3d"))
_PAIRS = frozenset(f"{op}{activation}" for op in ("add", "mul") for activation in _ACTIVATIONS)
#: Recurrent layers and cells, by the formula of a cell (`formulas.RECURRENT`) and its number of gates.
_LAYERS = {"quantized_lstm": ("lstm", 4), "quantized_gru": ("gru", 3)}
_CELLS = {
    "quantized_lstm_cell_dynamic": ("lstm", 4),
    "quantized_gru_cell_dynamic": ("gru", 3),
    "quantized_rnn_tanh_cell_dynamic": ("tanh", 1),
    "quantized_rnn_relu_cell_dynamic": ("relu", 1),
}
#: FLOP and functions per number of ops that take one number after the other, on the number and not its 8 bits.
_POINTWISE: dict[str, tuple[float, dict[str, float]]] = {
    "sigmoid": (0.0, {"sigmoid": 1.0}),
    "hardswish": (3.0, {}),  # x (x + 3) / 6, within limits
    "leaky_relu": (1.0, {}),
    "prelu": (1.0, {}),
    "elu": (1.0, {"expm1": 1.0}),
    "celu": (2.0, {"expm1": 1.0}),
    **{f"batch_norm{dims}{end}": (2.0, {}) for dims in ("", "1d", "2d", "3d") for end in _ACTIVATIONS},
}
_POINTWISE_RELU = frozenset(["leaky_relu"])  # an op of its own, and no layer with an activation
#: What is done to the 8 bits as they are, or to the scale and zero point of all of them alone.
_KEPT = frozenset("clamp relu6 threshold dropout add_scalar mul_scalar add_scalar_relu mul_scalar_relu".split())
#: What moves them, the weights of a layer into an object among it.
_MOVED = frozenset(["cat", "cat_relu", "qlinear_prepack", "qconv_prepack"]).union(
    f"{layer}_prepack" for layer in ("linear", "linear_dynamic", *(name for name in _CONVOLUTIONS if name[-1] == "d"))
)
_NORMS = frozenset(("layer_norm", "group_norm", "instance_norm"))
_LOOKUPS = frozenset(f"embedding{bag}_{bits}" for bag in ("", "_bag") for bits in ("byte", "4bit"))


def is_quantised(overload: Any) -> bool:
    """Tell whether an op is one of these, which torch cannot run on meta tensors."""
    return overload.namespace in _NAMESPACES or base(overload._schema.name) in _LAYERS


def kind(name: str) -> str | None:
    """Our op kind of a product among them, as of "quantized::linear_dynamic"; None for other ops."""
    namespace, plain = name.partition("::")[0], base(name)
    if namespace not in _NAMESPACES:
        return None
    if plain in _LINEAR | _LINEAR_FP16 | {_ONEDNN_LINEAR, "matmul"}:
        return "matmul"
    return "convolution" if plain in _CONVOLUTIONS | _ONEDNN_CONVOLUTIONS else None


def op_class(name: str) -> OpClass | None:
    """The class of one of these ops; None for other ops, and where it goes by its name like aten's."""
    namespace, plain = name.partition("::")[0], base(name)
    if kind(name) is not None or plain in _LAYERS or plain in _CELLS:
        return "contraction"
    if namespace not in _NAMESPACES:
        return None
    if plain.startswith("batch_norm"):
        return "normalisation"
    if plain in _LOOKUPS:
        return "embedding"
    if plain in _MOVED:
        return "movement"
    return "pointwise" if plain in _POINTWISE or plain in _PAIRS or plain in _KEPT else None


def multiplies(name: str) -> str | None:
    """The type that such an op multiplies in, where it is not that of its inputs."""
    is_int8 = kind(name) is not None and base(name) not in _LINEAR_FP16
    return "int8" if is_int8 or base(name) in _LAYERS or base(name) in _CELLS else None


def weight_bytes(func: Any, args: Any, kwargs: Any, out: Any) -> float:
    """Bytes read of weights that are in an object of unknown size; 0 for other ops."""
    name = base(func._schema.name)
    if func.namespace == "quantized" and name in _LINEAR | _LINEAR_FP16:
        return float(args[0].shape[-1] * out.shape[-1] * (2 if name in _LINEAR_FP16 else 1))
    if name in _LAYERS or name in _CELLS:
        size = 2.0 if kwargs.get("dtype") == torch.float16 else 1.0
        return size * sum(number * weights for number, weights, *_ in _matrices(func, args, kwargs))
    if name in _LOOKUPS:  # a scale and the least number with each row
        rows = by_name(func, args, kwargs)["indices"].numel()
        return float(rows * (out.shape[-1] * (0.5 if "4bit" in name else 1.0) + 2 * 4))
    return 0.0


def _linear(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    """A product and a bias. A dynamic layer looks for the range of its input first, and gives floating numbers."""
    name, x, results = base(func._schema.name), args[0], out.numel()
    cost = formulas.matmul(x.numel() // max(1, x.shape[-1]), out.shape[-1], x.shape[-1])
    if name in _LINEAR_FP16:
        return cost + Cost(vector_flops=1.0 * results + _activated(name, out))
    return cost + _around(name, x, out)


def _around(name: str, x: Any, out: Any) -> Cost:
    """Count what a layer does besides its product: its input to 8 bits where it is dynamic, a bias, and its results."""
    results = _activated(name, out) + out.numel()
    if "_dynamic" in name:
        return Cost(vector_flops=(_RANGE + _TO) * x.numel() + _BACK * out.numel() + results)
    added = (_BACK + 1.0) * out.numel() if "_add" in name else 0.0
    return Cost(vector_flops=_TO * out.numel() + added + results)


def _activated(name: str, out: Any) -> float:
    return float(out.numel()) if "_relu" in name and name not in _POINTWISE_RELU else 0.0


def _convolution(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    """A convolution with packed weights: [weight, strides, paddings, dilations, groups]."""
    packed = next((arg for arg in args if isinstance(arg, list) and len(arg) == _PACKED), None)
    if packed is None:
        raise Unresolved("what it is packed with was not recorded")
    name = base(func._schema.name)
    cost = _pairs(args[0], packed, out, transposed="_transpose" in name)
    return cost + _around(name, args[0], out)


#: So many values replace the object of a convolution.
_PACKED = 5


def _pairs(x: Any, packed: Any, out: Any, transposed: bool = False) -> Cost:
    """The products of a convolution; what is packed of one in one dimension has two."""
    (weight, *windows, groups), number = packed, x.dim() - 2
    stride, padding, dilation = ((list(option) * number)[-number:] for option in windows)
    small, large = (x, out) if transposed else (out, x)  # the gradient of the one that maps back pairs the same
    return formulas.convolution(
        x.shape[0],
        large.shape[1],
        small.shape[1],
        groups,
        large.shape[2:],
        weight.shape[-number:],
        stride,
        padding,
        dilation,
        small.shape[2:],
    )


def _onednn(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    """A product by oneDNN with what is done to its results: bias, sum with another tensor, activation, 8 bits."""
    named = by_name(func, args, kwargs)
    x = named["qx"]
    if "stride" in named:
        windows = named["stride"], named["padding"], named["dilation"]
        cost = _pairs(x, (named["qw"], *windows, named["groups"]), out)
    else:
        cost = formulas.matmul(x.numel() // max(1, x.shape[-1]), out.shape[-1], x.shape[-1])
    per_result = _BACK if out.is_floating_point() else _TO
    per_result += 1.0 if named.get("bias") is not None else 0.0
    addend = next((named[name] for name in ("qaccum", "other") if named.get(name) is not None), None)
    if addend is not None:
        per_result += 1.0 if addend.is_floating_point() else 1.0 + _BACK
    activation = next((named[name] for name in _POST_OPS if named.get(name)), "none")
    flops, functions = _ACTIVATION.get(activation, (None, {}))
    if flops is None:
        raise Unresolved(f"the activation {activation} is not in our table")
    number = float(out.numel())
    return cost + Cost(
        vector_flops=(per_result + flops) * number,
        functions={name: times * number for name, times in functions.items()},
    )


#: Arguments that name the activation after a product, and FLOP and functions of each per number.
_POST_OPS = ("attr", "post_op_name", "unary_attr", "unary_post_op")
_ACTIVATION: dict[str, tuple[float, dict[str, float]]] = {
    "none": (0.0, {}),
    "relu": (1.0, {}),
    "hardtanh": (0.0, {}),
    "hardswish": (3.0, {}),
    "swish": (1.0, {"sigmoid": 1.0}),
    "sigmoid": (0.0, {"sigmoid": 1.0}),
    "tanh": (0.0, {"tanh": 1.0}),
    "gelu": (4.0, {"erf": 1.0}),
}


def _matrices(func: Any, args: Any, kwargs: Any) -> list[tuple[int, int, int, int]]:
    """Return of each layer the directions, and of one of them the elements of its matrices, width and hidden units."""
    name, named = base(func._schema.name), by_name(func, args, kwargs)
    x, hx = named["data" if "data" in named else "input"], named["hx"]
    states = hx if isinstance(hx, torch.Tensor) else hx[0]
    _, gates = (_LAYERS | _CELLS)[name]
    directions, hidden, width = 2 if named.get("bidirectional") else 1, states.shape[-1], x.shape[-1]
    layers = []
    for _ in range(named.get("num_layers", 1)):
        layers.append((directions, gates * hidden * (width + hidden), width, hidden))
        width = directions * hidden
    return layers


def _recurrent(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    """All layers and directions; what meets weights of 8 bits is quantised as it comes, and its products back."""
    name = base(func._schema.name)
    cell, gates = (_LAYERS | _CELLS)[name]
    steps, biased = (
        args[0].numel() // max(1, args[0].shape[-1]),
        bool(by_name(func, args, kwargs).get("has_biases", True)),
    )
    total = Cost()
    for directions, weights, width, hidden in _matrices(func, args, kwargs):
        cost = formulas.recurrent(cell, steps, weights, hidden, biased)
        if kwargs.get("dtype") != torch.float16:
            quantised = (_RANGE + _TO) * (width + hidden) + 2 * _BACK * gates * hidden
            cost = cost + Cost(vector_flops=quantised * steps)
        total = total + directions * cost
    if not any(argument.name == "dtype" for argument in func._schema.arguments):  # of its weights: LSTM layers say it
        return msgspec.structs.replace(total, quality="assumed", note="the weights are taken to be of 8 bits")
    return total


def _pair(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    """Both numbers back from 8 bits, the sum or product, and it to 8 bits."""
    return Cost(vector_flops=(2.0 * _BACK + 1.0 + _TO) * out.numel() + _activated(func._schema.name, out))


def _pointwise(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    name, number = base(func._schema.name), float(out.numel())
    flops, functions = _POINTWISE[name]
    return Cost(
        vector_flops=(_BACK + flops + _TO) * number + _activated(name, out),
        functions={function: times * number for function, times in functions.items()},
    )


def _norm(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    """Mean and variance of each row; of each number the difference, times 1 / deviation, times and plus a weight."""
    name, x, number = base(func._schema.name), args[0], float(out.numel())
    rows = {
        "layer_norm": lambda: x.numel() // max(1, prod(args[1])),
        "group_norm": lambda: x.shape[0] * args[1],
        "instance_norm": lambda: x.shape[0] * x.shape[1],
    }[name]()
    scaling = Cost(vector_flops=(_BACK + 4.0 + _TO) * number, functions={"rsqrt": float(rows)})
    return formulas.variance(x.numel(), rows) + scaling


def _lookup(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    """Each number of a row back from its bits, and the rows of a bag added up."""
    named = by_name(func, args, kwargs)
    numbers = float(named["indices"].numel() * out.shape[-1])
    summed = numbers - out.numel() if "_bag" in func._schema.name else 0.0
    return Cost(vector_flops=_BACK * numbers + max(0.0, summed))


def _matmul(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    a = args[0]
    cost = formulas.matmul(out.shape[-2], out.shape[-1], a.shape[-1], prod(out.shape[:-2]))
    return cost + Cost(vector_flops=_TO * out.numel())


#: The rule of each op, as `flops` calls them.
RULES: dict[str, Callable[[Any, Any, Any, Any], Cost]] = {
    **dict.fromkeys(_LINEAR | _LINEAR_FP16, _linear),
    **dict.fromkeys(_CONVOLUTIONS, _convolution),
    **dict.fromkeys(_ONEDNN_CONVOLUTIONS | {_ONEDNN_LINEAR}, _onednn),
    **dict.fromkeys([*_LAYERS, *_CELLS], _recurrent),
    **dict.fromkeys(_PAIRS, _pair),
    **dict.fromkeys(_POINTWISE, _pointwise),
    **dict.fromkeys(_KEPT | _MOVED, lambda func, args, kwargs, out: Cost()),
    **dict.fromkeys(_NORMS, _norm),
    **dict.fromkeys(_LOOKUPS, _lookup),
    "matmul": _matmul,
}
