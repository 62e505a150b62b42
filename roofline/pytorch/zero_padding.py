"""Counts what is asked for of a convolution whose image another op filled up with zeros, or whose result is cut.

A framework that pads by a layer of its own (Keras), and a padding that PyTorch's convolutions do not have (of one side
only), come as `constant_pad_nd` before a convolution that pads nothing. Products with these zeros run, but nobody asked
for them, as nobody does where the convolution pads: model FLOPs are of positions inside the image. Nor did anybody ask
for results that padding added at an edge and that are cut off again (Keras's transposed convolutions, a causal
convolution that pads both sides), nor for the gradients of these, which are zeros. Where more is cut off, a part of the
results is taken, which is asked for as a part of any other product is: whole.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeGuard

from roofline.costs import formulas
from roofline.costs.calls import Call, Tensor
from roofline.costs.margins import Margins, added, undone
from roofline.pytorch.aten.tables import COPIES, base
from roofline.pytorch.uses import Uses

#: Which argument of a convolution tells its groups, and of its backward which gradients are wanted.
_GROUPS, _GRADIENTS = 8, 10
_FORWARD = frozenset(("convolution", "_convolution", "convolution_overrideable"))
#: A chain of biases longer than this is not followed.
HOPS = 20


class ZeroPadding:
    """Follows the calls of a step: which storages hold an image with zeros around it."""

    def __init__(self) -> None:
        """No image is padded yet."""
        # By storage: the margins of the dimension that has this stride and this size. A view keeps both.
        self._known: dict[int, dict[tuple[int, int], tuple[int, int]]] = {}

    def follow(self, call: Call, writes: Collection[int]) -> None:
        """Take note of a call. writes: the storages that it writes, whose former contents are gone."""
        name, result = base(call.name), call.outputs[0] if call.outputs else None
        margins = None
        if result is not None and name in COPIES:
            margins = self._of(call.inputs[0])
        elif result is not None and name in ("constant_pad_nd", "slice_backward"):
            inner = self._of(call.inputs[0])
            margins = padding_of(call) if name == "constant_pad_nd" else around_slice(call)
            margins = added(margins, inner) if margins and inner else margins
        for storage in writes:
            self._known.pop(storage, None)
        if margins is None or not starts_storage(result) or len(result.shape) != len(margins):
            return
        self._known[result.storage] = {
            (stride, size): edges
            for stride, size, edges in zip(result.stride or (), result.shape, margins, strict=True)
            if edges != (0, 0)
        }

    def flops(self, node: int, call: Call, uses: Uses) -> float | None:
        """Count the FLOPs of a convolution, or of its gradients, without pairs with such zeros; None for other calls.

        node: of the call. uses: what later ops take of a convolution's result, of which the rest is cut off.
        """
        name, values = base(call.name), call.inputs
        if name in _FORWARD and call.outputs:
            result, wanted = call.outputs[0], 1
            cut_margins = _cut_off(node, call, uses)
        elif name == "convolution_backward" and len(values) > _GRADIENTS:
            result, wanted = values[0], sum(bool(flag) for flag in values[_GRADIENTS][:2])
            cut_margins, values = self._of(result), values[1:]
        else:
            return None
        before = self._of(values[0]) if len(values) > _GROUPS else None
        if before is None and cut_margins is None:
            return None
        if any(edges != (0, 0) for edges in (before or ())[:2]):
            return None  # of images or channels; where results are cut so, a part of them is taken
        image, weight, _, stride, padding, dilation, transposed, output_padding, groups = values[: _GROUPS + 1]
        dimensions = len(weight.shape) - 2
        none = ((0, 0),) * dimensions
        stride, padding, dilation, output_padding = (
            option * dimensions if len(option) == 1 else option
            for option in (stride, padding, dilation, output_padding)
        )
        around, cut = (margins[2:] if margins else none for margins in (before, cut_margins))
        zeros = [(pad + low, pad + high) for pad, (low, high) in zip(padding, around, strict=True)]
        if transposed:  # by what a convolution would pad that does the same to an image with holes
            reach = [(taps - 1) * step for taps, step in zip(weight.shape[2:], dilation, strict=True)]
            pads = zip(reach, padding, output_padding, strict=True)
            zeros = [(far - pad, far - pad + last) for far, pad, last in pads]
        steps = (1,) * dimensions if transposed else stride
        cut = tuple(map(undone, cut, zeros, steps))
        inputs, outputs = (image.shape[2:], around), (result.shape[2:], cut)
        if transposed:  # the gradient of the convolution that maps its result back to its image
            inputs, outputs = outputs, inputs
        (size, around), (positions, cut) = inputs, outputs
        work = formulas.convolution(
            batch=image.shape[0],
            channels_in=weight.shape[1] * groups,
            channels_out=weight.shape[0],
            groups=groups,
            size=[length - sum(edges) for length, edges in zip(size, around, strict=True)],
            kernel=weight.shape[2:],
            stride=stride,
            padding=[
                zeros + low - lost * step
                for zeros, (low, _), (lost, _), step in zip(padding, around, cut, stride, strict=True)
            ],
            dilation=dilation,
            outputs=[length - sum(edges) for length, edges in zip(positions, cut, strict=True)],
        )
        return None if work.flops is None else wanted * work.flops

    def _of(self, value: object) -> Margins | None:
        if not starts_storage(value) or value.storage not in self._known:
            return None
        edges_of = self._known[value.storage]
        margins = tuple(edges_of.get(key, (0, 0)) for key in zip(value.stride or (), value.shape, strict=True))
        return margins if any(edges != (0, 0) for edges in margins) else None


def _cut_off(node: int, call: Call, uses: Uses, hops: int = HOPS) -> Margins | None:
    """Return what nobody reads at the edges of a result; None where a call takes the whole, or nothing is known.

    What adds a bias reads the whole, but asks for no more than is read of what it makes.
    """
    result = call.outputs[0] if call.outputs else None
    if not starts_storage(result):
        return None
    margins_of_readers: list[Margins] = []
    for reader, call_of_reader, view in uses.readers(node, call):
        margins = margins_of(view, result)
        if margins is not None and hops and adds_bias(call_of_reader, view):
            behind = _cut_off(reader, call_of_reader, uses, hops - 1)
            margins = margins if behind is None else _of_result(behind, view, result)
        if margins is None:
            return None
        margins_of_readers.append(margins)
    if not margins_of_readers:
        return None
    edges_of_dimensions = zip(*margins_of_readers, strict=True)
    least = tuple((min(low for low, _ in edges), min(high for _, high in edges)) for edges in edges_of_dimensions)
    return least if any(edges != (0, 0) for edges in least) else None


def adds_bias(call: Call, taken: Tensor) -> bool:
    """Tell whether a call adds a number of its own to each channel of what it takes, as a convolution may do it."""
    if base(call.name) != "add" or not call.outputs or call.outputs[0].shape != taken.shape:
        return False
    others = [value for value in call.inputs[:2] if isinstance(value, Tensor) and value.storage != taken.storage]
    return len(others) == 1 and others[0].numel in (1, *others[0].shape)


def _of_result(margins: Margins, view: Tensor, result: Tensor) -> Margins | None:
    """Return margins of a view of the whole result as those of the result; None where it joins or splits dimensions."""
    edges_of = dict(zip(zip(view.stride or (), view.shape, strict=True), margins, strict=True))
    keys = list(zip(result.stride or (), result.shape, strict=True))
    is_same = all(key in keys or edges == (0, 0) for key, edges in edges_of.items())
    return tuple(edges_of.get(key, (0, 0)) for key in keys) if is_same else None


def margins_of(view: Tensor, result: Tensor) -> Margins | None:
    """Return what a view leaves out at the edges of a result.

    Dimensions are known by stride: they may be in another order, joined or split.
    """
    if view.stride is None or result.stride is None or view.numel == 0:
        return None
    sizes: dict[int, int] = {}
    begins: dict[int, int] = {}  # a row of elements that are as far apart: by where it ends where it begins
    for stride, size in sorted(
        (stride, size) for size, stride in zip(view.shape, view.stride, strict=True) if size > 1
    ):
        first = begins.pop(stride, stride)
        if first in sizes and first == stride:
            return None  # elements that are taken twice
        sizes[first] = sizes.get(first, 1) * size
        begins[first * sizes[first]] = first
    pairs = [(stride, size) for size, stride in zip(result.shape, result.stride, strict=True)]
    inner_first = sorted(range(len(pairs)), key=lambda dim: pairs[dim])
    lengths = {}
    for dim in inner_first:
        stride, size = pairs[dim]
        length = sizes.pop(stride, 1) if size > 1 else 1
        if length > size:  # joined with the next one, so all of this one is taken
            if length % size or stride * size in sizes:
                return None
            sizes[stride * size], length = length // size, size
        lengths[dim] = length
    distance, margins = view.offset - result.offset, {}
    for dim in reversed(inner_first):
        stride, size = pairs[dim]
        start = distance // stride if stride and size > 1 else 0
        if start < 0 or start + lengths[dim] > size:
            return None
        distance -= start * stride
        margins[dim] = (start, size - start - lengths[dim])
    return None if distance or sizes else tuple(margins[dim] for dim in range(len(pairs)))


def padding_of(call: Call) -> Margins | None:
    """Return what `constant_pad_nd` puts around each dimension, of which it names the last first; None for no zeros."""
    image, edges, value = (*call.inputs, 0)[:3]
    pairs = list(zip(edges[::2], edges[1::2], strict=True))
    if value or not pairs or min(edges) < 0:
        return None
    return (*((0, 0),) * (len(image.shape) - len(pairs)), *reversed(pairs))


def cut_by_padding(call: Call) -> Margins | None:
    """Return what `constant_pad_nd` takes off each dimension, as in its own gradient; None where it adds anything."""
    image, edges = call.inputs[:2]
    pairs = [(-low, -high) for low, high in zip(edges[::2], edges[1::2], strict=True)]
    if max(edges, default=0) > 0:
        return None
    return (*((0, 0),) * (len(image.shape) - len(pairs)), *reversed(pairs))


def around_slice(call: Call) -> Margins | None:
    """Return the zeros around what `slice_backward` puts back into place; None where it was every other element."""
    _, sizes, dim, start, end, step = call.inputs
    if step != 1 or not all(isinstance(position, int) for position in (dim, start, end)):
        return None
    dim, size = dim % len(sizes), sizes[dim]
    start, end = (min(max(position + size if position < 0 else position, 0), size) for position in (start, end))
    return tuple((start, size - end) if place == dim else (0, 0) for place in range(len(sizes)))


def starts_storage(value: object) -> TypeGuard[Tensor]:
    """Tell whether a value is a tensor of known layout that begins where its storage does."""
    return isinstance(value, Tensor) and value.storage >= 0 and value.stride is not None and value.offset == 0
