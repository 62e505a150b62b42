"""Puts the model FLOPs of a compiled step, which its eager twin asks for, on the ops that do the work.

A compiler merges products, repeats them, or turns them into something else. What the eager step asks for under a phase
and scope is given to what runs there, so that the sum over the step stays, and executed over model FLOPs shows where
more is done than was asked for. The same idea as for XLA's programs in `roofline.xla.model_flops`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from roofline.core.cost import BY_INDEX, by_index
from roofline.core.vocabulary import PRODUCTS
from roofline.costs.counted import Counted, CountedOp, Interner


@dataclass(frozen=True, slots=True)
class _Executed:
    """Holds the FLOPs that an op executes under one phase and scope; 0 for a product that was taken apart."""

    row: int
    flops: float


def with_model_flops(counted: Counted, eager: Counted) -> Counted:
    """Give the ops of `counted` model FLOPs that sum, per phase, to what the eager step asks for.

    What is asked for under a phase and scope goes to the products that run under it, in proportion to what they
    execute; where the sums are equal already nothing changes. A product that was done twice so has executed over
    model FLOPs of 2. What is asked for where no product runs goes, in this order, to a product of the nearest scope
    that executes that much more than it is asked for (products that were merged); to a product that was taken apart,
    the only op of unknown work, or the op with the most work, in the same scope (a product that became a
    multiplication); to the largest product of the nearest scope in the phase; to any op.

    Where the eager step does not know its own model FLOPs, the ops of that phase and scope keep theirs. Ops of unknown
    work keep None but for the case named. A product with a one-hot matrix is known again by its place and its FLOPs.
    """
    wanted, open_ended = _asked(eager)
    executed = _executed(counted)
    indexing = _by_index(eager, executed)
    model: dict[int, float] = {}
    unplaced: list[tuple[tuple[int, str], float]] = []
    for key, products in executed.items():
        if key in open_ended:
            for product in products:
                model[product.row] = float(counted.ops[product.row].costed.cost.model_flops or 0.0)
    for key, asked in wanted.items():
        running = [product for product in executed.get(key, ()) if product.flops > 0 and product.row not in indexing]
        if running and key not in open_ended:
            for row, share in _shares(counted, running, asked).items():
                model[row] = model.get(row, 0.0) + share
        elif key not in open_ended:
            unplaced.append((key, asked))
    carriers = _Carriers(counted, executed)
    for key, asked in unplaced:
        carrier = carriers(key, asked, model)
        if carrier is not None:
            model[carrier] = model.get(carrier, 0.0) + asked
    interned = Interner()
    ops = [_with(op, model.get(row), interned) for row, op in enumerate(counted.ops)]
    for row in indexing - model.keys():
        costed = ops[row].costed
        ops[row] = replace(ops[row], costed=interned(replace(costed, cost=by_index(costed.cost))))
    return replace(counted, ops=tuple(ops))


def _asked(eager: Counted) -> tuple[dict[tuple[int, str], float], set[tuple[int, str]]]:
    """Sum the model FLOPs by phase and scope; also return the places where they are not known."""
    wanted: dict[tuple[int, str], float] = {}
    open_ended = set()
    for op, scope, phase in zip(eager.ops, eager.scope.tolist(), eager.phase.tolist(), strict=True):
        key = (phase, eager.scopes[scope])
        if op.costed.cost.model_flops is None or op.costed.cost.is_partly_known:
            open_ended.add(key)
        elif op.costed.cost.model_flops:
            wanted[key] = wanted.get(key, 0.0) + op.costed.cost.model_flops
    return wanted, open_ended


def _by_index(eager: Counted, executed: dict[tuple[int, str], list[_Executed]]) -> set[int]:
    """Find the rows that do a product with a one-hot matrix: no other product has its place and FLOPs."""
    alike: dict[tuple[tuple[int, str], float], set[bool]] = {}
    for op, scope, phase in zip(eager.ops, eager.scope.tolist(), eager.phase.tolist(), strict=True):
        if op.costed.cost.flops:
            signature = (phase, eager.scopes[scope]), op.costed.cost.flops
            alike.setdefault(signature, set()).add(BY_INDEX in op.costed.cost.note)
    products = ((key, product) for key, of_place in executed.items() for product in of_place)
    return {product.row for key, product in products if alike.get((key, product.flops)) == {True}}


def _executed(counted: Counted) -> dict[tuple[int, str], list[_Executed]]:
    """List the products of each phase and scope: ops, and in fused ops those among their parts."""
    products: dict[tuple[int, str], list[_Executed]] = {}

    def add(scope: int, phase: int, row: int, flops: float | None) -> None:
        products.setdefault((phase, counted.scopes[scope]), []).append(_Executed(row, flops or 0.0))

    for row, op in enumerate(counted.ops):
        own_place = (int(counted.scope[row]), int(counted.phase[row]))
        places = op.places or (own_place,) * len(op.costed.parts)
        parts = [
            (place, part)
            for place, part in zip(places, op.costed.parts, strict=True)
            if part.op_class in PRODUCTS and part.cost.flops is not None
        ]
        if op.costed.cost.flops is None:
            continue
        parts_flops = sum(part.cost.flops or 0.0 for _, part in parts)
        if parts and (parts_flops or not op.costed.cost.flops):
            for (scope, phase), part in parts:
                share = (part.cost.flops or 0.0) / parts_flops if parts_flops else 0.0
                add(scope, phase, row, op.costed.cost.flops * share)
        elif op.costed.cost.flops or op.costed.op_class in PRODUCTS:
            add(*own_place, row, op.costed.cost.flops)
    return products


def _shares(counted: Counted, running: Sequence[_Executed], asked: float) -> dict[int, float]:
    """Share `asked` among the products of one place; their own figures stay where these add up to it already."""
    costs = [counted.ops[product.row].costed.cost for product in running]
    rows = [product.row for product in running]
    whole_ops = all(product.flops == cost.flops for product, cost in zip(running, costs, strict=True))
    own_flops = [float(cost.model_flops) for cost in costs if cost.model_flops is not None]
    if whole_ops and len(own_flops) == len(set(rows)) == len(rows) and sum(own_flops) == asked:
        return dict(zip(rows, own_flops, strict=True))
    total = sum(product.flops for product in running)
    shares: dict[int, float] = {}
    remaining = asked
    for product in running[:-1]:
        share = float(round(asked * product.flops / total))  # FLOPs are counts: whole shares add up exactly
        shares[product.row] = shares.get(product.row, 0.0) + share
        remaining -= share
    shares[running[-1].row] = shares.get(running[-1].row, 0.0) + remaining
    return shares


class _Carriers:
    """Finds the op that stands for a product of which none is left in its scope."""

    def __init__(self, counted: Counted, executed: dict[tuple[int, str], list[_Executed]]) -> None:
        self._counted, self._executed = counted, executed
        self._flops = [float(op.costed.cost.flops or 0.0) for op in counted.ops]

    def __call__(self, key: tuple[int, str], asked: float, model: dict[int, float]) -> int | None:
        phase, scope = key
        products = [
            (_common(scope, product_scope), self._flops[product.row], product.row)
            for (product_phase, product_scope), executed in self._executed.items()
            if product_phase == phase
            for product in executed
            if product.flops
        ]
        merged = [candidate for candidate in products if candidate[1] - model.get(candidate[2], 0.0) >= asked]
        in_scope = [product.row for product in self._executed.get(key, ())]
        inside = [row for row in range(len(self._flops)) if self._place(row) == key]
        unknown_rows = [row for row in inside if self._counted.ops[row].costed.cost.flops is None]
        known_rows = [row for row in inside if self._counted.ops[row].costed.cost.flops is not None]
        if merged:
            return max(merged, key=lambda candidate: candidate[:2])[2]
        if in_scope:
            return in_scope[0]
        if len(unknown_rows) == 1:
            return unknown_rows[0]
        if known_rows:
            return max(known_rows, key=self._size)
        if products:
            return max(products, key=lambda candidate: candidate[:2])[2]
        anywhere = [row for row, op in enumerate(self._counted.ops) if op.costed.cost.flops is not None]
        near = [row for row in anywhere if self._counted.phase[row] == phase] or anywhere
        return max(near, key=self._size) if near else None

    def _place(self, row: int) -> tuple[int, str]:
        return int(self._counted.phase[row]), self._counted.scopes[int(self._counted.scope[row])]

    def _size(self, row: int) -> tuple[float, float]:
        cost = self._counted.ops[row].costed.cost
        return cost.vector_flops or 0.0, cost.bytes or 0.0


def _common(path: str, other_path: str) -> int:
    """Count the layers that two paths share, from the outermost."""
    layers, other_layers = path.split("/"), other_path.split("/")
    pairs = zip(layers, other_layers, strict=False)
    return next((depth for depth, (a, b) in enumerate(pairs) if a != b), min(len(layers), len(other_layers)))


def _with(op: CountedOp, model: float | None, interned: Interner) -> CountedOp:
    cost = op.costed.cost
    if model is None and not cost.model_flops:
        return op
    value = model or 0.0
    if cost.model_flops == value:
        return op
    return replace(op, costed=interned(replace(op.costed, cost=msgspec.structs.replace(cost, model_flops=value))))
