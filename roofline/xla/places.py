"""Place an optimised instruction: its phase and scope, also of one whose name the compiler lost."""

from __future__ import annotations

from collections.abc import Callable

from roofline.xla import names
from roofline.xla import scopes as xla_scopes
from roofline.xla.hlo import cost
from roofline.xla.hlo.module import Instruction, Module
from roofline.xla.scopes import Place

#: From an op_name to its phase and scope.
Placing = Callable[[str], Place]


def place_of(module: Module, instruction: Instruction, placing: Placing) -> Place:
    """Phase and scope of an instruction: of its products, else its own, else of most of what is fused in it.

    What the compiler added without a name, such as a copy, belongs where its data come from, else where they go. What
    depends on the backward pass is no part of the forward pass.
    """
    named = _named(module, instruction, placing)
    if named.scope is not None:
        return named
    near = names.neighbours(module, instruction, placing)
    if near.above:
        return max(near.above, key=lambda place: place.phase)
    return min(near.below, key=lambda place: place.phase) if near.below else named


def _named(module: Module, instruction: Instruction, placing: Placing) -> Place:
    products = [placing(product.op_name) for product in names.products(module, instruction)]
    if any(place.scope is not None for place in products):
        return xla_scopes.commonest(products)
    own_place = placing(instruction.op_name)
    if own_place.scope is not None:
        return own_place
    return xla_scopes.commonest(placing(name) for name in cost.op_names(module, instruction))
