"""The description of a random model: layers with their dimensions, and the shapes that pass between them.

Shapes are of arrays with the batch first and the channels last: (batch, features), (batch, tokens, features) and
(batch, *image, channels). A layer of a net has a path, "3" or "3.1" within the fourth layer, under which the builders
keep its weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

Shape = tuple[int, ...]

GATES = {"lstm": 4, "gru": 3, "simple": 1}


@dataclass(frozen=True, slots=True)
class Layer:
    """A kind with its dimensions; inner: the layers that a residual, a checkpoint or a region of 16 bits wraps."""

    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)
    inner: tuple[Layer, ...] = ()

    def __getitem__(self, name: str) -> Any:
        return self.options[name]

    def __str__(self) -> str:
        options = " ".join(f"{name}={value}" for name, value in self.options.items())
        inner = f" [{'; '.join(map(str, self.inner))}]" if self.inner else ""
        return f"{self.kind} {options}".strip() + inner


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A net with its input and its step.

    shape: of the input; the first layer is an embedding where the input is tokens. mode: "infer" or "train". loss:
    "square" or "entropy", in training. update: a step of SGD behind the gradients. no_grad: how PyTorch is told that
    nothing is differentiated: "no_grad", "inference_mode", or "" where it is not told.
    """

    number: int
    mode: str
    shape: Shape
    layers: tuple[Layer, ...]
    loss: str = "square"
    update: bool = False
    no_grad: str = ""

    @property
    def trains(self) -> bool:
        return self.mode == "train"

    def __str__(self) -> str:
        step = f"train, {self.loss}{', sgd' if self.update else ''}" if self.trains else f"infer {self.no_grad}".strip()
        lines = [f"model {self.number}: {step}, input {'x'.join(map(str, self.shape))}"]
        return "\n".join([*lines, *(f"  {path:>4} {layer}" for path, layer in enumerate(self.layers))])


class Place(NamedTuple):
    """A layer in its net: its path, and the shape that it is given."""

    path: str
    layer: Layer
    shape: Shape


def places(model: Model) -> Iterator[Place]:
    """Every layer of a net in the order of their calls, those that wrap others before these."""
    yield from _places(model.layers, model.shape, "")


def _places(layers: tuple[Layer, ...], shape: Shape, above: str) -> Iterator[Place]:
    for number, layer in enumerate(layers):
        path = f"{above}{number}"
        yield Place(path, layer, shape)
        yield from _places(layer.inner, shape, f"{path}.")
        shape = after(layer, shape)


def count(layers: tuple[Layer, ...]) -> int:
    """Layers, inner ones included, without those that only wrap."""
    return sum(count(layer.inner) if layer.inner else 1 for layer in layers)


def output_shape(model: Model) -> Shape:
    return shape_after(model.layers, model.shape)


def shape_after(layers: tuple[Layer, ...], shape: Shape) -> Shape:
    for layer in layers:
        shape = after(layer, shape)
    return shape


class Padding(NamedTuple):
    """Of one dimension: zeros before and behind, and the size of the result."""

    low: int
    high: int
    size: int


def conv_padding(size: int, kernel: int, stride: int, dilation: int, padding: str | int) -> Padding:
    """Of a convolution; "same" is TensorFlow's: ceil(size / stride) results, the odd zero behind."""
    reach = (kernel - 1) * dilation + 1
    if padding == "same":
        result = -(-size // stride)
        total = max((result - 1) * stride + reach - size, 0)
        return Padding(total // 2, total - total // 2, result)
    zeros = 0 if padding == "valid" else int(padding)
    return Padding(zeros, zeros, (size + 2 * zeros - reach) // stride + 1)


def transposed_crop(size: int, kernel: int, stride: int, dilation: int, padding: str | int, more: int) -> Padding:
    """Of a transposed convolution: what is cut off before and behind (less than 0: zeros are added), and the size.

    more: PyTorch's output padding; 0 for "same", which gives size x stride results.
    """
    full = (size - 1) * stride + (kernel - 1) * dilation + 1
    if padding == "same":
        total = full - size * stride
        low = max(total, 0) // 2
        return Padding(low, total - low, size * stride)
    cut = 0 if padding == "valid" else int(padding)
    return Padding(cut, cut - more, full - 2 * cut + more)


def spread(value: Any, dimensions: int) -> tuple[Any, ...]:
    """One value per dimension."""
    return tuple(value) if isinstance(value, tuple | list) else (value,) * dimensions


class Axis(NamedTuple):
    """One spatial dimension of a convolution or its transpose."""

    size: int
    kernel: int
    stride: int
    dilation: int
    padding: str | int
    more: int


def axes(layer: Layer, shape: Shape) -> list[Axis]:
    sizes = shape[1:-1]
    columns = [spread(layer.options.get(name, 0), len(sizes)) for name in _AXIS]
    return [Axis(*row) for row in zip(sizes, *columns, strict=True)]


_AXIS = ("kernel", "stride", "dilation", "padding", "more")


def windows(layer: Layer, shape: Shape) -> list[Padding]:
    """The padding, or what is cut off, in each spatial dimension of a convolution or its transpose."""
    function = transposed_crop if layer.kind == "conv_transpose" else None
    return [conv_padding(*axis[:5]) if function is None else function(*axis) for axis in axes(layer, shape)]


def after(layer: Layer, shape: Shape) -> Shape:
    """The shape of what a layer gives for an input of that shape."""
    match layer.kind:
        case "linear" | "map" | "experts" | "tied":
            return (*shape[:-1], layer["out"])
        case "conv" | "conv_transpose":
            return (shape[0], *(window.size for window in windows(layer, shape)), layer["out"])
        case "embedding" if layer["form"] == "bag":
            return (shape[0], layer["out"])
        case "embedding":
            return (*shape, layer["out"])
        case "rnn":
            features = layer["hidden"] * (2 if layer["both"] else 1)
            return (shape[0], features) if layer["last"] else (*shape[:2], features)
        case "einsum":
            return _einsum(layer, shape)
        case "pool":
            return _pooled(layer, shape)
        case "scatter":
            return (shape[0], layer["slots"], shape[2])
        case "gather":
            return (shape[0], len(layer["rows"]), shape[2])
        case "residual":
            wrapped = shape_after(layer.inner, shape)
            return (*shape[:-1], shape[-1] + wrapped[-1]) if layer["by"] == "concat" else shape
        case "checkpoint" | "mixed":
            return shape_after(layer.inner, shape)
        case "activation" if layer["function"] == "glu":
            return (*shape[:-1], shape[-1] // 2)
        case "resize":
            return (shape[0], *(size * layer["factor"] for size in shape[1:-1]), shape[-1])
        case "top":
            return (*shape[:-1], layer["number"])
        case "reshape":
            return _reshaped(layer, shape)
    return shape


def _reshaped(layer: Layer, shape: Shape) -> Shape:
    match layer["form"]:
        case "tokens":  # an image to a sequence of its places
            return (shape[0], prod(shape[1:-1]), shape[-1])
        case "flat":
            return (shape[0], prod(shape[1:]))
        case "mean":
            return (shape[0], shape[-1])
        case "split":
            return (shape[0], layer["tokens"], shape[-1] // layer["tokens"])
        case "image":
            return (shape[0], layer["rows"], shape[1] // layer["rows"], shape[2])
        case "transpose":
            return (shape[0], shape[2], shape[1])
        case "slice":
            return (shape[0], layer["size"], *shape[2:])
        case "join":  # neighbours in pairs, as in a pyramid
            return (shape[0], shape[1] // 2, 2 * shape[2])
    return shape  # flip, roll


def _pooled(layer: Layer, shape: Shape) -> Shape:
    if layer["form"] == "window":
        return (shape[0], *(axis.size for axis in windows(layer, shape)), shape[-1])
    return (shape[0], *spread(layer["size"], len(shape) - 2), shape[-1])


def _einsum(layer: Layer, shape: Shape) -> Shape:
    sizes = einsum_sizes(layer, shape)
    dimensions = [sizes[letter] for letter in layer["rule"].partition("->")[2]]
    return (*dimensions[: layer["joined"]], prod(dimensions[layer["joined"] :])) if layer["joined"] else (*dimensions,)


def einsum_sizes(layer: Layer, shape: Shape) -> dict[str, int]:
    """The size of each index: those of the input, and those that only the weight has."""
    first = layer["rule"].partition(",")[0]
    return {**dict(zip(first, shape, strict=True)), **layer["sizes"]}


def weight_shape(layer: Layer, shape: Shape) -> Shape | None:
    """The second operand of an einsum; None where it is the input once more."""
    second = layer["rule"].partition("->")[0].partition(",")[2]
    sizes = einsum_sizes(layer, shape)
    return None if layer["itself"] else tuple(sizes[letter] for letter in second)
