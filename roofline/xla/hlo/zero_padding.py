"""What is asked for of a convolution whose image another instruction filled up with zeros first.

A framework that pads by a layer of its own asks for no products with these zeros, as one that leaves padding to the
convolution does not: model FLOPs are of positions inside the image. XLA folds such a `pad` into the convolution, where
it can. In the gradient of the image the margins are cut off again: what is cut off was not asked for either.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from roofline.xla.hlo import custom_calls
from roofline.xla.hlo.module import Instruction, Module
from roofline.xla.hlo.origin import COPIES, MAX_CHAIN, Path, number, origin
from roofline.xla.hlo.schedule import live

#: Elements before and behind an image, in each of its dimensions.
Margins = tuple[tuple[int, int], ...]


def flops(module: Module, convolution: Instruction, path: Path) -> float | None:
    """The FLOPs of a convolution without what pairs with such margins; None where there are none.

    path: the control instructions around it, outermost first.
    """
    if convolution.message.conv_kind:
        return None
    before, behind = filled_up(convolution.operands[0], path), cut_off(module, convolution)
    if before is None and behind is None:
        return None
    numbers = convolution.message.convolution_dimension_numbers
    image, result = convolution.operands[0].shape, convolution.first
    message: Any = type(convolution.message)()
    message.CopyFrom(convolution.message)
    windows = message.window.dimensions
    for margins, spatial in ((before, numbers.input_spatial_dimensions), (behind, numbers.output_spatial_dimensions)):
        if margins and any(edges != (0, 0) for place, edges in enumerate(margins) if place not in spatial):
            return None
    for window, place in zip(windows, numbers.input_spatial_dimensions, strict=True):
        window.padding_low += before[place][0] * (window.base_dilation or 1) if before else 0
    for window, place in zip(windows, numbers.output_spatial_dimensions, strict=True):
        window.padding_low -= behind[place][0] * (window.stride or 1) if behind else 0
    work = custom_calls.convolution(
        message, _without(image, before), convolution.operands[1].shape, _without(result, behind)
    )
    return work.flops


def _without(shape: Any, margins: Margins | None) -> Any:
    if margins is None:
        return shape
    return replace(shape, dims=tuple(size - sum(edges) for size, edges in zip(shape.dims, margins, strict=True)))


def filled_up(value: Instruction, path: Path) -> Margins | None:
    """Return the zeros that a `pad` put around a value; None where none did."""
    value, path = origin(value, path)
    if value.opcode != "pad" or number(value.operands[1], path) != 0:
        return None
    margins = _margins(value)
    return margins if margins and min(min(edges) for edges in margins) >= 0 else None


def cut_off(module: Module, value: Instruction) -> Margins | None:
    """Return what all that uses a value cuts off of it, the same everywhere; None where something takes the whole."""
    found: set[Margins | None] = set()
    waiting = [value]
    for _ in range(MAX_CHAIN):
        if not waiting:
            break
        for user, place in users(module).get(waiting.pop(), ()):
            if user.opcode in COPIES or _changes_nothing(user):
                waiting.append(user)
            elif user.opcode == "call" and place in user.called[0].parameters:
                waiting.append(user.called[0].parameters[place])
            else:
                found.add(_cut(user, place))
    return found.pop() if len(found) == 1 and not waiting else None


def _changes_nothing(user: Instruction) -> bool:
    """Whether dimensions are reordered into the order that they have, as TensorFlow does behind a product."""
    return user.opcode == "transpose" and list(user.message.dimensions) == sorted(user.message.dimensions)


def _cut(user: Instruction, place: int) -> Margins | None:
    if user.opcode == "slice":
        parts = user.message.slice_dimensions
        if any(part.stride not in (0, 1) for part in parts):
            return None
        sizes = user.operands[0].shape.dims
        return tuple((part.start, size - part.limit) for part, size in zip(parts, sizes, strict=True))
    margins = _margins(user) if user.opcode == "pad" and place == 0 else None
    if not margins or max(max(edges) for edges in margins) > 0:
        return None
    return tuple((-low, -high) for low, high in margins)


def _margins(pad: Instruction) -> Margins | None:
    """The edges of a `pad`; None where it also spreads elements out."""
    dimensions = pad.message.padding_config.dimensions
    if any(each.interior_padding for each in dimensions):
        return None
    return tuple((each.edge_padding_low, each.edge_padding_high) for each in dimensions)


def users(module: Module) -> dict[Instruction, list[tuple[Instruction, int]]]:
    """List which instructions that are needed take a value, and as which operand."""
    if "uses" not in module.memo:
        found: dict[Instruction, list[tuple[Instruction, int]]] = {}
        for user in live(module):
            for place, operand in enumerate(user.operands):
                found.setdefault(operand, []).append((user, place))
        module.memo["uses"] = found
    uses: dict[Instruction, list[tuple[Instruction, int]]] = module.memo["uses"]
    return uses
