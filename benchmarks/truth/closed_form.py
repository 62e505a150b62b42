"""Model FLOPs and parameters of a random model by its description alone: the rules of docs/counting.md as arithmetic.

A product of M x K with K x N is 2 M K N. It has two gradients of as many FLOPs, each asked for only where something
that is trained lies behind that factor. Norms, pooling, softmax, pointwise functions, gathers and scatters, one-hot
products and the resizing of images ask for no product. A recomputed layer is asked for once, a loop in each trip, of a
branch what ran. A convolution asks for the pairs of a tap and a place that lie on the image, whoever made the zeros
around it, and a transposed one for those whose result is not cut off. A slice right behind either undoes its padding
where it takes away no more than that added.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import prod
from typing import NamedTuple

from net import GATES, Layer, Model, Padding, Shape, after, axes, einsum_sizes, windows


class Work(NamedTuple):
    """Model FLOPs of both passes, and whether the result depends on something that is trained."""

    forward: int
    backward: int
    learned: bool


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """Model FLOPs of a step by kind of layer, and the parameters of the net."""

    forward: Counter[str]
    backward: Counter[str]
    parameters: int

    @property
    def flops(self) -> int:
        return self.forward.total() + self.backward.total()


def closed_form(model: Model) -> ClosedForm:
    forward: Counter[str] = Counter()
    backward: Counter[str] = Counter()
    shape, learned = model.shape, False
    for layer, behind in zip(model.layers, (*model.layers[1:], None), strict=True):
        learned = flops(_undone(layer, behind, shape), shape, learned, forward, backward)
        shape = after(layer, shape)
    return ClosedForm(forward, backward if model.trains else Counter(), _parameters(model.layers, model.shape))


def _undone(layer: Layer, behind: Layer | None, shape: Shape) -> Layer:
    """A layer, where the one behind it takes away what its padding added with the places that are cut off."""
    if layer.kind not in ("conv", "conv_transpose") or behind is None or behind.options.get("form") != "slice":
        return layer
    axis, window = axes(layer, shape)[0], windows(layer, shape)[0]
    cut = window.size - behind["size"]
    zeros, step = window.high, axis.stride
    if layer.kind == "conv_transpose":  # as a convolution of its image with holes has them
        zeros, step = (axis.kernel - 1) * axis.dilation - window.high, 1
    return replace(layer, options={**layer.options, "cut": cut}) if cut * step <= zeros else layer


def flops(layer: Layer, shape: Shape, learned: bool, forward: Counter[str], backward: Counter[str]) -> bool:
    """Add the FLOPs of a layer and of those within; whether its result is learned."""
    if layer.inner:
        inner_shape, inner_learned = shape, learned
        for inner in layer.inner:
            inner_learned = flops(inner, inner_shape, inner_learned, forward, backward)
            inner_shape = after(inner, inner_shape)
        return inner_learned or (layer.kind == "residual" and learned)
    work = _WORK[layer.kind](layer, shape, learned) if layer.kind in _WORK else Work(0, 0, learned or _trains(layer))
    forward[layer.kind] += work.forward
    backward[layer.kind] += work.backward
    return work.learned


def _trains(layer: Layer) -> bool:
    """Whether a layer without products has weights."""
    return layer.kind in ("embedding", "offset") or (layer.kind == "norm" and layer["affine"])


def _linear(layer: Layer, shape: Shape, learned: bool) -> Work:
    product = 2 * prod(shape) * layer["out"]
    trained = not layer["frozen"]
    return Work(product, product * (learned + trained), learned or trained)


def _conv(layer: Layer, shape: Shape, learned: bool) -> Work:
    """Each tap on each place of the image, for each pair of channels of a group."""
    pairs = 1
    for axis, window in zip(axes(layer, shape), _kept(layer, shape), strict=True):
        pairs *= _meetings(window.size, axis.size, axis.kernel, axis.stride, axis.dilation, window.low)
    product = 2 * shape[0] * pairs * (shape[-1] // layer["groups"]) * layer["out"]
    trained = not layer["frozen"]
    return Work(product, product * (learned + trained), learned or trained)


def _conv_transpose(layer: Layer, shape: Shape, learned: bool) -> Work:
    """Each place of the image on each tap that leads to a result, for each pair of channels of a group."""
    pairs = 1
    for axis, window in zip(axes(layer, shape), _kept(layer, shape), strict=True):
        pairs *= _meetings(axis.size, window.size, axis.kernel, axis.stride, axis.dilation, window.low)
    product = 2 * shape[0] * pairs * shape[-1] * (layer["out"] // layer["groups"])
    return Work(product, product * (learned + 1), True)


def _kept(layer: Layer, shape: Shape) -> list[Padding]:
    """The windows of a convolution without the results at the end of a sequence that a slice takes away again."""
    first, *others = windows(layer, shape)
    return [first._replace(size=first.size - layer.options.get("cut", 0)), *others]


def _meetings(few: int, many: int, kernel: int, stride: int, dilation: int, low: int) -> int:
    """Count the pairs of a window and a tap whose place lies within the longer side."""
    return sum(0 <= window * stride + tap * dilation - low < many for window in range(few) for tap in range(kernel))


def _attention(layer: Layer, shape: Shape, learned: bool) -> Work:
    """Four projections, and scores and their sum by query head over the whole mask; keys of a memory have no batch."""
    batch, tokens, features = shape
    keys = layer["memory"] or tokens
    queries, shared = layer["heads"] * layer["size"], layer["kv_heads"] * layer["size"]
    query = 2 * batch * tokens * features * queries
    key = 2 * (layer["memory"] or batch * tokens) * features * shared
    scores = 2 * batch * layer["heads"] * tokens * keys * layer["size"]
    out = 2 * batch * tokens * queries * features
    keys_learned = bool(layer["memory"]) or learned
    backward = query * (learned + 1) + 2 * key * (keys_learned + 1) + 2 * (2 * scores) + out * 2
    return Work(query + 2 * key + 2 * scores + out, backward, True)


def _einsum(layer: Layer, shape: Shape, learned: bool) -> Work:
    product = 2 * prod(einsum_sizes(layer, shape).values())
    if layer["itself"]:  # both factors are the input
        return Work(product, product * 2 * learned, learned)
    return Work(product, product * (learned + 1), True)


def _rnn(layer: Layer, shape: Shape, learned: bool) -> Work:
    """Each step of each sequence with both matrices of each gate.

    Where the loop is written out and begins with zeros, nobody asks for the gradient of these.
    """
    batch, tokens, features = shape
    hidden = layer["hidden"]
    ends = 2 if layer["both"] else 1
    gates = GATES[layer["cell"]] * hidden * ends
    from_input = 2 * batch * tokens * features * gates
    a_step = 2 * batch * hidden * gates
    steps_back = tokens - (layer["form"] == "loop" and layer["state"] == "zero")
    backward = from_input * (learned + 1) + a_step * (steps_back + tokens)
    return Work(from_input + a_step * tokens, backward, True)


def _scan(layer: Layer, shape: Shape, learned: bool) -> Work:
    product = 2 * prod(shape) * shape[-1] * layer["trips"]
    return Work(product, product * 2, True)


def _map(layer: Layer, shape: Shape, learned: bool) -> Work:
    product = 2 * prod(shape) * layer["out"]
    return Work(product, product * (learned + 1), True)


def _cond(layer: Layer, shape: Shape, learned: bool) -> Work:
    """One product in the first branch, two in the second; the input of the latter's second product is learned."""
    if layer["first"]:
        product = 2 * prod(shape) * shape[-1]
        return Work(product, product * (learned + 1), True)
    product = 2 * prod(shape) * layer["wide"]
    return Work(2 * product, product * (learned + 1) + product * 2, True)


def _tied(layer: Layer, shape: Shape, learned: bool) -> Work:
    """The table of the embedding once more, so that what comes here is learned."""
    product = 2 * prod(shape) * layer["out"]
    return Work(product, product * 2, True)


_WORK = {
    "linear": _linear,
    "conv": _conv,
    "conv_transpose": _conv_transpose,
    "attention": _attention,
    "einsum": _einsum,
    "rnn": _rnn,
    "scan": _scan,
    "while": _scan,
    "map": _map,
    "experts": _map,  # each row is of one expert
    "cond": _cond,
    "tied": _tied,
}


def _parameters(layers: tuple[Layer, ...], shape: Shape) -> int:
    number = 0
    for layer in layers:
        number += _parameters(layer.inner, shape) + _own_parameters(layer, shape)
        shape = after(layer, shape)
    return number


def _own_parameters(layer: Layer, shape: Shape) -> int:
    features = shape[-1]
    match layer.kind:
        case "linear":
            return (features + layer["bias"]) * layer["out"]
        case "conv":
            taps = prod(axis.kernel for axis in axes(layer, shape))
            return (taps * features // layer["groups"] + layer["bias"]) * layer["out"]
        case "conv_transpose":
            taps = prod(axis.kernel for axis in axes(layer, shape))
            return taps * features * layer["out"] // layer["groups"] + layer["bias"] * layer["out"]
        case "norm":
            return features * layer["affine"] * (1 if layer["form"] == "rms" else 2)
        case "attention":
            widths = 2 * layer["size"] * (layer["heads"] + layer["kv_heads"])
            biases = layer["size"] * (layer["heads"] + 2 * layer["kv_heads"]) + features if layer["bias"] else 0
            return features * widths + biases + layer["memory"] * features
        case "embedding":
            return (layer["rows"] + (shape[1] if layer["positions"] else 0)) * layer["out"]
        case "offset":
            return prod(shape[1:])
        case "einsum" if not layer["itself"]:
            second = layer["rule"].partition("->")[0].partition(",")[2]
            sizes = einsum_sizes(layer, shape)
            return prod(sizes[letter] for letter in second)
        case "rnn":
            hidden, gates = layer["hidden"], GATES[layer["cell"]]
            states = (2 if layer["cell"] == "lstm" else 1) * hidden if layer["state"] == "learned" else 0
            return (gates * hidden * (features + hidden + 2 * layer["bias"]) + states) * (2 if layer["both"] else 1)
        case "scan":
            return layer["trips"] * features * (features + 1)
        case "while":
            return features * features
        case "map":
            return features * layer["out"]
        case "cond":
            return features * (features + 2 * layer["wide"])
        case "experts":
            return len(layer["sizes"]) * features * layer["out"]
    return 0
