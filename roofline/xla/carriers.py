"""Find the op that does what was asked for under a name, where what runs under that name is less.

XLA renames what it rewrites: the gradient of a weight takes in a transpose and its name, and products that share an
operand are merged into one that is called like one of them. Nothing is lost by that: what a name has left over is what
another op executes without being asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping

from roofline.xla.executed import Executed
from roofline.xla.hlo import cost as hlo_cost
from roofline.xla.hlo import module as hlo
from roofline.xla.names import at_home
from roofline.xla.places import Placing, place_of
from roofline.xla.scopes import Place, is_recomputed

#: FLOPs of a product agree to this part of them. By choice, above the rounding of sums of whole numbers.
ROUNDING = 1e-9


class Carriers:
    """Gives what names have left over to the ops that do it."""

    def __init__(
        self,
        module: hlo.Module,
        ops: Mapping[int, Executed],
        executed: Mapping[int, Mapping[str, float]],
        model: MutableMapping[int, float],
        placing: Placing,
    ) -> None:
        """ops: by row. executed: their FLOPs by op_name. model: what each was asked for, to which `give` adds.

        placing: from an op_name to its phase and scope.
        """
        self._model, self._executed, self._placing = model, executed, placing
        self._carrying: dict[str, list[int]] = {}
        for row, op in ops.items():
            for op_name in hlo_cost.op_names(module, op.instruction):
                self._carrying.setdefault(op_name, []).append(row)
        # What XLA made a multiplication of, and the phase of the op that it stands in.
        self._multiplying = {
            row: place_of(module, op.instruction, placing).phase
            for row, op in ops.items()
            if op.costed.op_class == "contraction" and not sum(executed[row].values())
        }
        # What is executed and was not asked for, recomputation aside, and where that stands.
        self._unasked: dict[int, float] = {}
        self._places: dict[int, Place] = {}
        for row, sums in executed.items():
            unasked = sum(flops for op_name, flops in sums.items() if not is_recomputed(op_name)) - model[row]
            if unasked > ROUNDING * model[row]:
                self._unasked[row] = unasked
                self._places[row] = place_of(module, ops[row].instruction, placing)
        # Of each place and of each phase the op that executes most, and of all ops.
        self._largest: dict[object, tuple[float, int]] = {}
        for row, sums in executed.items():
            size = sum(sums.values())
            if not size:
                continue
            places = dict.fromkeys(map(placing, sums))
            if not any(place.scope for place in places):  # XLA dropped what its products were called
                places = dict.fromkeys((place_of(module, ops[row].instruction, placing),))
            for place in places:
                for key in (place, place.phase, None):
                    if key not in self._largest or size > self._largest[key][0]:
                        self._largest[key] = (size, row)

    def give(self, remaining: Mapping[str, float]) -> None:
        """Add what names have left over [FLOP] to the model FLOPs of the ops that do it.

        Those are, in this order: ops of the same place that execute what nobody asked for; an op that carries the name
        and is no product any more (XLA made it a multiplication); the nearest op of its phase that executes so much
        more than was asked for (XLA merged it with others).

        A multiplication may stand in an op of another phase: the gradient of a weight from one sample in that of the
        optimizer. It was asked for in its own phase, whose largest product then stands for it.

        Where no op does it, XLA dropped it, as one that is equal to another: then it stands with what runs under its
        name, else with the op that carries the name, else with the largest product of its scope and phase, else of its
        phase, else of all. Where no product runs, as XLA computed them of constants when it compiled, it stands with a
        multiplication, else with the first op.
        """
        elsewhere = {}
        for op_name, flops in remaining.items():
            wanted, flops_remaining = self._placing(op_name), flops
            for row in [row for row, place in self._places.items() if place == wanted]:
                flops_remaining -= self._take(row, flops_remaining)
            if flops_remaining > ROUNDING * flops:
                elsewhere[op_name] = flops_remaining
        for op_name, flops in elsewhere.items():
            wanted = self._placing(op_name)
            multiplying = [row for row in self._carrying.get(op_name, ()) if row in self._multiplying]
            in_phase = [row for row in multiplying if self._multiplying[row] == wanted.phase]
            merged = None if multiplying else self._merged(wanted, flops)
            if in_phase:
                self._model[in_phase[0]] += flops
            elif multiplying:
                self._model[self._product(wanted, multiplying[0])] += flops
            elif merged is not None:
                self._take(merged, flops)
            else:
                for row, part in self._standing_for(op_name, wanted):
                    self._model[row] += part * flops

    def _merged(self, wanted: Place, flops: float) -> int | None:
        """The nearest op of the phase that executes so much that was not asked for; None where there is none."""
        path = (wanted.scope or "").split("/")
        large_enough = [row for row, unasked in self._unasked.items() if unasked >= flops * (1 - ROUNDING)]
        near = [row for row in large_enough if self._places[row].phase == wanted.phase]
        paths = {row: (self._places[row].scope or "").split("/") for row in near}
        return max(near, key=lambda row: at_home(path, [paths[row]]), default=None)

    def _product(self, wanted: Place, otherwise: int) -> int:
        """The largest product of that scope and phase, else of that phase; where it has none, the other op."""
        return next((self._largest[key][1] for key in (wanted, wanted.phase) if key in self._largest), otherwise)

    def _take(self, row: int, flops: float) -> float:
        """Assign to an op as much of `flops` as it does unasked, and return how much that is [FLOP]."""
        assigned = min(flops, self._unasked[row])
        self._model[row] += assigned
        self._unasked[row] -= assigned
        return assigned

    def _standing_for(self, op_name: str, wanted: Place) -> Iterator[tuple[int, float]]:
        """Ops, and the part that each stands for of what no op does."""
        mine = {row: sums[op_name] for row, sums in self._executed.items() if sums.get(op_name)}
        if mine:
            yield from ((row, flops / sum(mine.values())) for row, flops in mine.items())
        elif op_name in self._carrying:
            yield self._carrying[op_name][0], 1.0
        else:
            largest = [self._largest[key][1] for key in (wanted, wanted.phase, None) if key in self._largest]
            yield from ((row, 1.0) for row in [*largest, *self._multiplying, *self._executed][:1])
