"""Count what is asked of a product whose factors were filled up with zeros, and whose result is cut again.

A row that was filled up and is cut off again was not asked for, nor is what is summed where both factors were filled
up.
"""

from __future__ import annotations

from math import prod

from roofline.costs.margins import common
from roofline.xla.hlo.module import Instruction, Module
from roofline.xla.hlo.origin import Path
from roofline.xla.hlo.zero_padding import cut_off, filled_up

_NONE = (0, 0)


def flops(module: Module, product: Instruction, path: Path) -> float | None:
    """Return the FLOPs of a `dot` without what pairs with such zeros; None where no factor was filled up.

    path: the control instructions around it, outermost first.
    """
    shapes = [operand.shape.dims for operand in product.operands[:2]]
    filled = [filled_up(operand, path) for operand in product.operands[:2]]
    if filled == [None, None]:
        return None
    left, right = (edges or (_NONE,) * len(dims) for edges, dims in zip(filled, shapes, strict=True))
    cut = cut_off(module, product) or (_NONE,) * len(product.first.dims)
    numbers = product.message.dot_dimension_numbers
    summed = zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True)
    batch = list(zip(numbers.lhs_batch_dimensions, numbers.rhs_batch_dimensions, strict=True))
    inner = [shapes[0][a] - common(left[a], right[b]) for a, b in summed]
    outer = [(shapes[0][a], left[a] if left[a] != _NONE else right[b]) for a, b in batch]
    for dims, edges, inner_or_batch in (
        (shapes[0], left, {*numbers.lhs_contracting_dimensions, *numbers.lhs_batch_dimensions}),
        (shapes[1], right, {*numbers.rhs_contracting_dimensions, *numbers.rhs_batch_dimensions}),
    ):
        outer += [(size, edges[place]) for place, size in enumerate(dims) if place not in inner_or_batch]
    asked = [size - common(edges, lost) for (size, edges), lost in zip(outer, cut, strict=True)]
    return 2.0 * float(prod(asked) * prod(inner))
