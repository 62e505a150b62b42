"""Model FLOPs of a compiled step: what its eager twin asks for, put on the ops that do it.

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
    """What an op executes under one phase and scope; 0 for a product that was taken apart."""

    row: int
    flops: float


def with_model_flops(counted: Counted, eager: Counted) -> Counted:
    """`counted` whose ops' model FLOPs sum, per phase, to what the eager step asks for.

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
    rest: list[tuple[tuple[int, str], float]] = []
    for key, here in executed.items():
        if key in open_ended:
            model |= {one.row: float(counted.ops[one.row].costed.cost.model_flops or 0.0) for one in here}
    for key, asked in wanted.items():
        running = [one for one in executed.get(key, ()) if one.flops > 0 and one.row not in indexing]
        if running and key not in open_ended:
            for row, share in _shares(counted, running, asked).items():
                model[row] = model.get(row, 0.0) + share
        elif key not in open_ended:
            rest.append((key, asked))
    carriers = _Carriers(counted, executed)
    for key, asked in rest:
        carrier = carriers(key, asked, model)
        if carrier is not None:
            model[carrier] = model.get(carrier, 0.0) + asked
    same = Interner()
    ops = [_with(op, model.get(row), same) for row, op in enumerate(counted.ops)]
    for row in indexing - model.keys():
        costed = ops[row].costed
        ops[row] = replace(ops[row], costed=same(replace(costed, cost=by_index(costed.cost))))
    return replace(counted, ops=tuple(ops))


def _asked(eager: Counted) -> tuple[dict[tuple[int, str], float], set[tuple[int, str]]]:
    """Model FLOPs by phase and scope, and where they are not known."""
    wanted: dict[tuple[int, str], float] = {}
    unknown = set()
    for op, scope, phase in zip(eager.ops, eager.scope.tolist(), eager.phase.tolist(), strict=True):
        key = (phase, eager.scopes[scope])
        if op.costed.cost.model_flops is None or op.costed.cost.is_partly_known:
            unknown.add(key)
        elif op.costed.cost.model_flops:
            wanted[key] = wanted.get(key, 0.0) + op.costed.cost.model_flops
    return wanted, unknown


def _by_index(eager: Counted, executed: dict[tuple[int, str], list[_Executed]]) -> set[int]:
    """The rows that do a product with a one-hot matrix: it has that place and FLOPs, and no other product has them."""
    alike: dict[tuple[tuple[int, str], float], set[bool]] = {}
    for op, scope, phase in zip(eager.ops, eager.scope.tolist(), eager.phase.tolist(), strict=True):
        if op.costed.cost.flops:
            one = (phase, eager.scopes[scope]), op.costed.cost.flops
            alike.setdefault(one, set()).add(BY_INDEX in op.costed.cost.note)
    return {one.row for key, here in executed.items() for one in here if alike.get((key, one.flops)) == {True}}


def _executed(counted: Counted) -> dict[tuple[int, str], list[_Executed]]:
    """The products of each phase and scope: ops, and in fused ops those among their parts."""
    found: dict[tuple[int, str], list[_Executed]] = {}

    def add(scope: int, phase: int, row: int, flops: float | None) -> None:
        found.setdefault((phase, counted.scopes[scope]), []).append(_Executed(row, flops or 0.0))

    for row, op in enumerate(counted.ops):
        own = (int(counted.scope[row]), int(counted.phase[row]))
        places = op.places or (own,) * len(op.costed.parts)
        parts = [
            (place, part)
            for place, part in zip(places, op.costed.parts, strict=True)
            if part.op_class in PRODUCTS and part.cost.flops is not None
        ]
        if op.costed.cost.flops is None:
            continue
        whole = sum(part.cost.flops or 0.0 for _, part in parts)
        if parts and (whole or not op.costed.cost.flops):
            for (scope, phase), part in parts:
                share = (part.cost.flops or 0.0) / whole if whole else 0.0
                add(scope, phase, row, op.costed.cost.flops * share)
        elif op.costed.cost.flops or op.costed.op_class in PRODUCTS:
            add(*own, row, op.costed.cost.flops)
    return found


def _shares(counted: Counted, running: Sequence[_Executed], asked: float) -> dict[int, float]:
    """`asked` over the products of one place; their own figures where these add up to it already."""
    costs = [counted.ops[one.row].costed.cost for one in running]
    rows = [one.row for one in running]
    whole_ops = all(one.flops == cost.flops for one, cost in zip(running, costs, strict=True))
    own = [float(cost.model_flops) for cost in costs if cost.model_flops is not None]
    if whole_ops and len(own) == len(set(rows)) == len(rows) and sum(own) == asked:
        return dict(zip(rows, own, strict=True))
    whole = sum(one.flops for one in running)
    shares: dict[int, float] = {}
    left = asked
    for one in running[:-1]:
        share = float(round(asked * one.flops / whole))  # FLOPs are counts: whole shares add up exactly
        shares[one.row] = shares.get(one.row, 0.0) + share
        left -= share
    shares[running[-1].row] = shares.get(running[-1].row, 0.0) + left
    return shares


class _Carriers:
    """Finds the op that stands for a product of which none is left in its scope."""

    def __init__(self, counted: Counted, executed: dict[tuple[int, str], list[_Executed]]) -> None:
        self._counted, self._executed = counted, executed
        self._flops = [float(op.costed.cost.flops or 0.0) for op in counted.ops]

    def __call__(self, key: tuple[int, str], asked: float, model: dict[int, float]) -> int | None:
        phase, scope = key
        products = [
            (_common(scope, there), self._flops[one.row], one.row)
            for (other, there), executed in self._executed.items()
            if other == phase
            for one in executed
            if one.flops
        ]
        merged = [one for one in products if one[1] - model.get(one[2], 0.0) >= asked]
        apart = [one.row for one in self._executed.get(key, ())]
        inside = [row for row in range(len(self._flops)) if self._place(row) == key]
        unknown = [row for row in inside if self._counted.ops[row].costed.cost.flops is None]
        known = [row for row in inside if self._counted.ops[row].costed.cost.flops is not None]
        if merged:
            return max(merged, key=lambda one: one[:2])[2]
        if apart:
            return apart[0]
        if len(unknown) == 1:
            return unknown[0]
        if known:
            return max(known, key=self._size)
        if products:
            return max(products, key=lambda one: one[:2])[2]
        anywhere = [row for row, op in enumerate(self._counted.ops) if op.costed.cost.flops is not None]
        near = [row for row in anywhere if self._counted.phase[row] == phase] or anywhere
        return max(near, key=self._size) if near else None

    def _place(self, row: int) -> tuple[int, str]:
        return int(self._counted.phase[row]), self._counted.scopes[int(self._counted.scope[row])]

    def _size(self, row: int) -> tuple[float, float]:
        cost = self._counted.ops[row].costed.cost
        return cost.vector_flops or 0.0, cost.bytes or 0.0


def _common(one: str, other: str) -> int:
    """How many layers of two paths are the same, from the outermost."""
    pairs = zip(one.split("/"), other.split("/"), strict=False)
    return next((depth for depth, (a, b) in enumerate(pairs) if a != b), min(one.count("/"), other.count("/")) + 1)


def _with(op: CountedOp, model: float | None, same: Interner) -> CountedOp:
    cost = op.costed.cost
    if model is None and not cost.model_flops:
        return op
    value = model or 0.0
    if cost.model_flops == value:
        return op
    return replace(op, costed=same(replace(op.costed, cost=msgspec.structs.replace(cost, model_flops=value))))
