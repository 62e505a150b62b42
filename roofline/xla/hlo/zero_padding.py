"""Count what is asked of a convolution whose image another instruction filled up with zeros first.

A framework that pads by a layer of its own asks for no products with these zeros, as one that leaves padding to the
convolution does not: model FLOPs are of positions inside the image. XLA folds such a `pad` into the convolution, where
it can. In the gradient of the image the margins are cut off again: what is cut off was not asked for either. Nor are
results of a convolution that padding added at an edge and that are cut off; where more is, a part of the results is
taken, and all of them are asked for. The gradients, in which zeros stand where results were cut off, ask for the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from roofline.costs.margins import Edges, Margins, added, inverted, reshaped, undone
from roofline.xla.hlo import custom_calls
from roofline.xla.hlo.live import live
from roofline.xla.hlo.module import Instruction, Module
from roofline.xla.hlo.origin import COPIES, Path, number, origin
from roofline.xla.hlo.patterns import is_backward
from roofline.xla.hlo.schedule import schedule
from roofline.xla.scopes import is_recomputed

#: What hands on a kernel to a convolution and, with its taps and channels turned, to the gradient of the image.
_ARRANGED = COPIES | {"reverse", "transpose", "reshape"}
#: What TensorFlow calls the gradient of a kernel; of a transposed convolution its image is a gradient, too.
_KERNEL_GRADIENT = "BackpropFilter"
#: A chain of these longer than this is damage.
_HOPS = 20


def flops(module: Module, convolution: Instruction, path: Path) -> float | None:
    """The FLOPs of a convolution without what pairs with such margins; None where there are none.

    path: the control instructions around it, outermost first.
    """
    if convolution.message.conv_kind:
        return None
    numbers = convolution.message.convolution_dimension_numbers
    image, kernel = convolution.operands[:2]
    before = _spatial(filled_up(image, path), numbers.input_spatial_dimensions)
    cut = _spatial(cut_off(module, convolution), numbers.output_spatial_dimensions)
    taps, gradient = None, _is_gradient(convolution, path)
    if gradient:
        cut = _of_images(module, cut, convolution, path)
        if _is_gradient(kernel, path):  # the gradient of the result, in that of the kernel
            taps = _spatial(filled_up(kernel, path), numbers.kernel_spatial_dimensions)
    if before is None and cut is None and taps is None:
        return None
    message: Any = type(convolution.message)()
    message.CopyFrom(convolution.message)
    windows = message.window.dimensions
    if gradient and taps is None and _is_gradient(image, path):  # likewise, in that of the image
        is_of_kernel = _KERNEL_GRADIENT in convolution.op_type
        forward = _of_transposed(convolution) if is_of_kernel else _of_forward(windows, cut, numbers)
        before = _undone(before, numbers.input_spatial_dimensions, *forward)
    for window, (low, high) in zip(windows, _along(before, numbers.input_spatial_dimensions), strict=True):
        window.padding_low += low * (window.base_dilation or 1)
        window.padding_high += high * (window.base_dilation or 1)
    zeros = [(window.padding_low, window.padding_high) for window in windows]
    if not gradient:
        cut = _undone(cut, numbers.output_spatial_dimensions, zeros, [window.stride or 1 for window in windows])
    taps = _undone(taps, numbers.kernel_spatial_dimensions, zeros, [window.window_dilation or 1 for window in windows])
    lost = _along(cut, numbers.output_spatial_dimensions), _along(taps, numbers.kernel_spatial_dimensions)
    for window, (of_result, _), (of_kernel, _) in zip(windows, *lost, strict=True):
        window.padding_low -= of_result * (window.stride or 1) + of_kernel * (window.window_dilation or 1)
    shapes = zip((image.shape, kernel.shape, convolution.first), (before, taps, cut), strict=True)
    return custom_calls.convolution(message, *(_without(shape, margins) for shape, margins in shapes)).flops


def _is_gradient(value: Instruction, path: Path) -> bool:
    """Return whether a value is of the backward pass and not made again for it (`scopes.is_recomputed`)."""
    maker, _ = origin(value, path)
    return is_backward(maker) and not is_recomputed(maker.op_name)


def _along(margins: Margins | None, places: Sequence[int]) -> list[Edges]:
    return [margins[place] if margins else (0, 0) for place in places]


def _of_forward(windows: Sequence[Any], cut: Margins | None, numbers: Any) -> tuple[list[Edges], list[int]]:
    """Return the zeros of a convolution and its strides, from the windows of the gradient of its image.

    behind: what is cut off of that gradient, which are zeros around the image.
    """
    zeros = []
    for window, (low, high) in zip(windows, _along(cut, numbers.output_spatial_dimensions), strict=True):
        reach, step = (window.size - 1) * (window.window_dilation or 1), window.stride or 1
        zeros.append((reach - window.padding_low + low * step, reach - window.padding_high + high * step))
    return zeros, [window.base_dilation or 1 for window in windows]


def _of_transposed(gradient: Instruction) -> tuple[list[Edges], list[int]]:
    """Return the zeros and steps of a transposed convolution, written as one of an image with holes.

    gradient: of its kernel, taken of the gradient of its results and of its image.
    """
    zeros = []
    places = gradient.message.convolution_dimension_numbers.output_spatial_dimensions
    for window, place in zip(gradient.message.window.dimensions, places, strict=True):
        reach = (gradient.first.dims[place] - 1) * (window.stride or 1)
        zeros.append((reach - window.padding_low, reach - window.padding_high))
    return zeros, [1] * len(zeros)


def _of_images(module: Module, cut: Margins | None, gradient: Instruction, path: Path) -> Margins | None:
    """Return what is cut off of the gradient of an image as far as zeros were put there around such an image.

    Such an image has the same sizes and, where a convolution of the same kernel is left, is an image of that kernel.
    What is cut off otherwise is a part that somebody takes, as of images that were put together. Where no convolution
    of such an image is left, as none needs its result, all that is cut off is taken for zeros.
    """
    if cut is None:
        return None
    places = list(gradient.message.convolution_dimension_numbers.output_spatial_dimensions)
    sizes = [gradient.first.dims[place] for place in places]
    images = [image for image in _images(module) if image.sizes == sizes]
    kernel = _kernel(gradient, path)
    images = [image for image in images if image.kernel is kernel] or images
    if not images:
        return cut
    lost = _along(cut, places)
    zeros = [[(min(a, c), min(b, d)) for (a, b), (c, d) in zip(lost, image.edges, strict=True)] for image in images]
    widest = max(zeros, key=lambda edges: sum(map(sum, edges)))
    return _spatial(
        tuple(widest[places.index(place)] if place in places else (0, 0) for place in range(len(cut))), places
    )


class _Image(NamedTuple):
    """The image of a convolution. sizes, edges: of each spatial dimension, and how much of it was filled up."""

    kernel: Instruction
    sizes: list[int]
    edges: list[Edges]


def _images(module: Module) -> list[_Image]:
    """List the images of the convolutions of the forward pass."""
    if "images" not in module.memo:
        collected = []
        for unit in schedule(module):
            convolution, path = unit.instruction, unit.path
            if convolution.opcode == "convolution" and not _is_gradient(convolution.operands[0], path):
                image = convolution.operands[0]
                spatial = convolution.message.convolution_dimension_numbers.input_spatial_dimensions
                sizes, edges = [image.shape.dims[at] for at in spatial], _along(filled_up(image, path), spatial)
                collected.append(_Image(_kernel(convolution, path), sizes, edges))
        module.memo["images"] = collected
    images: list[_Image] = module.memo["images"]
    return images


def _kernel(convolution: Instruction, path: Path) -> Instruction:
    """Return what made the kernel of a convolution, also from behind the barrier of `jax.checkpoint`."""
    return origin(convolution.operands[1], path, _ARRANGED)[0]


def _spatial(margins: Margins | None, places: Sequence[int]) -> Margins | None:
    """Return margins without those of batch and channels, of which all are asked for; None where none are left."""
    spatial = tuple(edges if place in places else (0, 0) for place, edges in enumerate(margins or ()))
    return spatial if any(edges != (0, 0) for edges in spatial) else None


def _without(shape: Any, margins: Margins | None) -> Any:
    if margins is None:
        return shape
    return replace(shape, dims=tuple(size - sum(edges) for size, edges in zip(shape.dims, margins, strict=True)))


def filled_up(value: Instruction, path: Path, hops: int = _HOPS) -> Margins | None:
    """Return the zeros that a `pad` put around a value, also where a part of that is taken; None where none did.

    hops: how many instructions that hand it on are followed.
    """
    value, path = origin(value, path)
    if not hops:
        return None
    if value.opcode == "pad":
        margins = _margins(value) if number(value.operands[1], path) == 0 else None
        if margins is None or any(min(edges) < 0 for edges in margins):
            return None
        return added(margins, filled_up(value.operands[0], path, hops - 1) or ((0, 0),) * len(margins))
    if value.opcode == "dynamic-update-slice":
        return _around_update(value, path)
    if value.opcode not in ("slice", "transpose") and not _is_reshape(value):
        return None
    margins, dims = filled_up(value.operands[0], path, hops - 1), value.operands[0].shape.dims
    if margins is None:
        return None
    if value.opcode == "transpose":
        return tuple(margins[place] for place in value.message.dimensions)
    if _is_reshape(value):
        return reshaped(margins, dims, value.first.dims)
    taken_ranges = [range(part.start, part.limit, part.stride or 1) for part in value.message.slice_dimensions]
    return tuple(
        (sum(place < low for place in places), sum(place >= size - high for place in places))
        for (low, high), size, places in zip(margins, dims, taken_ranges, strict=True)
    )


def _around_update(value: Instruction, path: Path) -> Margins | None:
    """The zeros around what is written into an array of zeros, as TensorFlow's gradient of a slice does it."""
    array, part, *begins = value.operands
    starts = [_start(begin, path) for begin in begins]
    if number(array, path) != 0 or len(starts) != len(value.first.dims):
        return None
    places = zip(starts, part.shape.dims, value.first.dims, strict=True)
    margins = [(start, size - start - length) for start, length, size in places if start is not None]
    return tuple(margins) if len(margins) == len(starts) else None


def _start(value: Instruction, path: Path) -> int | None:
    """A number that a program says, by itself or as one of a row; None where it is computed."""
    value, path = origin(value, path, COPIES | {"reshape"})
    place = 0
    if value.opcode == "slice" and len(value.message.slice_dimensions) == 1:
        place = value.message.slice_dimensions[0].start
        value, path = origin(value.operands[0], path, COPIES | {"reshape"})
    literal = value.message.literal if value.opcode == "constant" else None
    numbers = (literal.s32s or literal.s64s) if literal is not None else ()
    return int(numbers[place]) if place < len(numbers) else None


def cut_off(module: Module, value: Instruction, hops: int = _HOPS) -> Margins | None:
    """Return what all that uses a value cuts off of it, the same everywhere; None where something takes the whole.

    hops: how many instructions that hand it on are followed.
    """
    margins_of: dict[Instruction, Margins | None] = module.memo.setdefault("cut off", {})
    if value not in margins_of:
        margins = {_cut(module, *use, hops) for use in users(module).get(value, ())} if hops else set()
        margins_of[value] = margins.pop() if len(margins) == 1 else None
    return margins_of[value]


def _is_reshape(value: Instruction) -> bool:
    """Return whether elements stay as they are in another shape; so they do in a sum over dimensions of one element."""
    if value.opcode == "reduce":
        return len(value.operands) == 2 and value.operands[0].shape.elements == value.first.elements
    return value.opcode == "reshape"


def _adds_bias(user: Instruction, place: int) -> bool:
    """Return whether a number of its own is added to each channel of operand `place`, as a convolution may do it.

    Each sample may have numbers of its own: `jax.vmap` puts samples into the first dimensions, one for each `vmap`.
    """
    if user.opcode != "add":
        return False
    bias, _ = origin(user.operands[1 - place], ())
    if bias.opcode != "broadcast":
        return False
    samples = user.op_name.count("vmap(")
    along: list[int] = [at for at in bias.message.dimensions if at >= samples and bias.first.dims[at] != 1]
    return len(along) <= 1


def _cut(module: Module, user: Instruction, place: int, hops: int) -> Margins | None:
    dims = user.operands[place].shape.dims
    if user.opcode in COPIES or _adds_bias(user, place):
        return cut_off(module, user, hops - 1)
    if user.opcode == "transpose":
        margins = cut_off(module, user, hops - 1)
        return None if margins is None else tuple(margins[at] for at in inverted(user.message.dimensions))
    if user.opcode == "call" and place in user.called[0].parameters:
        return cut_off(module, user.called[0].parameters[place], hops - 1)
    if place == 0 and _is_reshape(user):
        margins = cut_off(module, user, hops - 1)
        return None if margins is None else reshaped(margins, user.first.dims, dims)
    if user.opcode == "concatenate":
        margins = cut_off(module, user, hops - 1)
        return margins if margins and margins[user.message.dimensions[0]] == (0, 0) else None
    if user.opcode == "slice":
        parts = user.message.slice_dimensions
        if any(part.stride not in (0, 1) for part in parts):
            return None
        cut: Margins = tuple((part.start, size - part.limit) for part, size in zip(parts, dims, strict=True))
    else:
        margins = _margins(user) if user.opcode == "pad" and place == 0 else None
        if not margins or max(max(edges) for edges in margins) > 0:
            return None
        cut = tuple((-low, -high) for low, high in margins)
    return added(cut, cut_off(module, user, hops - 1) or ((0, 0),) * len(cut))


def _undone(
    cut: Margins | None, spatial: Sequence[int], zeros: Sequence[Edges], steps: Sequence[int]
) -> Margins | None:
    """Return results of a convolution that are cut off, as far as they are there for the zeros at that edge.

    spatial: their dimensions, of each of which zeros and steps (the stride) say how many.
    """
    if cut is None:
        return None
    edges = list(cut)
    for place, around, step in zip(spatial, zeros, steps, strict=True):
        edges[place] = undone(cut[place], around, step)
    return tuple(edges)


def _margins(pad: Instruction) -> Margins | None:
    """The edges of a `pad`; None where it also spreads elements out."""
    dimensions = pad.message.padding_config.dimensions
    if any(dimension.interior_padding for dimension in dimensions):
        return None
    return tuple((dimension.edge_padding_low, dimension.edge_padding_high) for dimension in dimensions)


def users(module: Module) -> dict[Instruction, list[tuple[Instruction, int]]]:
    """List which instructions that are needed take a value, and as which operand."""
    if "uses" not in module.memo:
        by_value: dict[Instruction, list[tuple[Instruction, int]]] = {}
        for user in live(module):
            for place, operand in enumerate(user.operands):
                by_value.setdefault(operand, []).append((user, place))
        module.memo["uses"] = by_value
    uses: dict[Instruction, list[tuple[Instruction, int]]] = module.memo["uses"]
    return uses
