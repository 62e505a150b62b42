"""Divide the ops of a step into segments of work, each at one place of the model: what two runs are compared by.

An op that stands for itself is one segment. A fused kernel is divided over its constituents by the floors that these
would have alone, and an op that a loop executes many times is as many segments (docs/explaining.md). The weights of an
op's segments add up to 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np

from roofline.analysis.analysis import Analysis, Constituent
from roofline.analysis.caches import loops
from roofline.analysis.columns import numbered
from roofline.analysis.floors import compute_time, pattern, terms
from roofline.comparison.exposure import overlaps
from roofline.core.arrays import Array, Bools, Rows
from roofline.core.cost import Cost
from roofline.core.device import Device
from roofline.core.executor import COPY, executor_of
from roofline.core.rows import rows as columns
from roofline.core.schema import Op, Profile, Signature
from roofline.core.vocabulary import CLASSES, PRODUCTS, OpClass
from roofline.units import NANOSECOND

#: Segments that repeated ops may become in all; with more of them each op stays one. By choice: a bound on memory.
MOST_SEGMENTS = 100_000
#: The roof of each family of ceilings.
ROOF_OF = {
    **dict.fromkeys(("matrix", "vector", "function"), "compute"),
    **dict.fromkeys(("dram", "cache", "link"), "memory"),
    "launch": "launch",
}
#: What ceilings limit of the work of an op, by family, where that is the same wherever its inputs lie.
_LIMITED: Mapping[str, Callable[[Cost], float | None]] = {
    "matrix": lambda cost: cost.useful_flops,
    "vector": lambda cost: cost.vector_flops,
    "function": lambda cost: sum((cost.functions or {}).values()),
    "cache": lambda cost: cost.bytes,
    "link": lambda cost: max(cost.bytes_read or 0.0, cost.bytes_written or 0.0),
}
_NUMBER = re.compile(r"\d+")
_TRAINING = ("forward", "backward", "optimizer")


class Place(NamedTuple):
    """The place of work: phase and block first, so that fused and unfused forms of one op meet, then class."""

    phase: str
    block: str
    op_class: OpClass


@dataclass(frozen=True, slots=True)
class Segments:
    """The segments of a run, one entry each, in the order of dispatch, as far as that is known of repeated ops.

    scope: numbers as "*", so that equal layers are one place. op_class: an index into `vocabulary.CLASSES`. op: the op
    it is of; weight: its part of that op; times: how often the step runs that op, which is what the costs of its
    signatures are for; signature: what it would be alone, so many times; op_signature: its op's; fused: whether its
    op has constituents. own: its own time in each profiled step, unscaled [s], shape (segments, steps). overlap
    (exposure.py), uncosted, floor: its part of the op's [s], overlap unscaled. ceiling: what sets the floor ("" for
    none); quantity: how much of what it limits. bytes: its part of the op's; flops, model_flops: its own. nan: unknown.
    """

    places: tuple[Place, ...]
    scope: tuple[str, ...]
    op_class: Rows
    op: Rows
    weight: Array
    times: Rows
    signature: tuple[Signature, ...]
    op_signature: tuple[Signature, ...]
    fused: Bools
    own: Array
    overlap: Array
    uncosted: Bools
    floor: Array
    ceiling: tuple[str, ...]
    quantity: Array
    launches: Array
    flops: Array
    model_flops: Array
    bytes: Array

    def __len__(self) -> int:
        return len(self.places)

    def parted(self, rows: Rows, share: Array) -> Segments:
        """Return some segments, each as a share of what it was; flops and model_flops are left as they were."""
        columns: dict[str, Any] = {}
        for column in fields(self):
            values = getattr(self, column.name)
            columns[column.name] = tuple(values[row] for row in rows) if isinstance(values, tuple) else values[rows]
        for name in ("weight", "own", "overlap", "floor", "quantity", "launches", "bytes"):
            columns[name] = (columns[name].T * share).T
        return Segments(**columns)


class _Part(NamedTuple):
    """A part of an op. flops, model_flops: of what is a part of it, which its weight says nothing of; nan: unknown."""

    signature: Signature
    place: Place
    scope: str
    weight: float
    flops: float
    model_flops: float


def segments(analysis: Analysis, divide: bool = True) -> Segments:
    """Divide the ops of a run: the work view, or with `divide` off the kernel view, in which each op stays whole."""
    profile, table, of = analysis.profile, analysis.table, columns(analysis.profile)
    times = executions(profile)
    if times.sum() > max(MOST_SEGMENTS, 2 * len(times)):
        times = np.ones(len(times), np.int64)
    parts, rows, chosen = _all_parts(analysis, _in_order(times), divide)
    ops, numbers = rows.tolist(), chosen.tolist()
    places, scopes = [part.place for part in parts], [_NUMBER.sub("*", part.scope) for part in parts]
    signatures = [part.signature for part in parts]
    weight = np.asarray([part.weight for part in parts], np.float64)[chosen] / times[rows]
    own = of.own.reshape(len(profile.ops), len(profile.profiled.corrected) if profile.profiled else 0) * NANOSECOND
    ceilings = _ceilings(analysis)
    flops, model_flops = np.asarray([(part.flops, part.model_flops) for part in parts]).reshape(-1, 2).T
    moved = np.asarray([_nan(signature.cost.bytes) for signature in profile.signatures], np.float64)
    return Segments(
        places=tuple([places[number] for number in numbers]),
        scope=tuple([scopes[number] for number in numbers]),
        op_class=np.asarray([CLASSES.index(part.place.op_class) for part in parts], np.int64)[chosen],
        op=rows,
        weight=weight,
        times=times[rows],
        signature=tuple([signatures[number] for number in numbers]),
        op_signature=tuple([profile.signatures[number] for number in of.signature[rows].tolist()]),
        fused=(of.constituents > 0)[rows],
        own=own[rows] * weight[:, None],
        overlap=overlaps(analysis)[rows] * weight,
        uncosted=(table.uncosted > 0)[rows],
        floor=table.floor[rows] * weight,
        ceiling=tuple([ceilings[op] for op in ops]),
        quantity=_quantities(analysis, ceilings)[rows] * weight,
        launches=of.launches[rows] * weight,
        flops=flops[chosen] / times[rows],
        model_flops=model_flops[chosen] / times[rows],
        bytes=moved[of.signature][rows] * weight,
    )


def without_phases(run_segments: Segments) -> Segments:
    """Put all of a training step in one phase, for a run beside one that does not tell its phases apart."""
    places = (place._replace(phase="step") if place.phase in _TRAINING else place for place in run_segments.places)
    return replace(run_segments, places=tuple(places))


def executions(profile: Profile) -> Rows:
    """Return how often a step runs each op."""
    return np.minimum(loops.times(profile), MOST_SEGMENTS + 1)  # a profile may say anything


def _in_order(times: Rows) -> Rows:
    """Return the ops in the order of dispatch, each as often as it runs.

    Neighbours that run equally often are one loop or one program, which runs them in turn.
    """
    bounds = [0, *(np.flatnonzero(times[1:] != times[:-1]) + 1).tolist(), len(times)]
    turns = [np.tile(np.arange(low, high), times[low]) for low, high in pairwise(bounds) if high > low]
    return np.concatenate([np.zeros(0, np.int64), *turns])


def _all_parts(analysis: Analysis, order: Rows, divide: bool) -> tuple[list[_Part], Rows, Rows]:
    """List the parts of ops, once for ops that have the same.

    Return with them the segments of the ops in an order: the op of each, and which of the parts it is.
    """
    profile, of = analysis.profile, columns(analysis.profile)
    keys = [of.signature, of.scope, of.phase, of.block]
    if divide and of.constituents.any():
        fused: dict[Hashable, int] = {}
        keys.append(np.asarray([fused.setdefault((op.constituents, op.places), len(fused)) for op in profile.ops]))
    kind, first = numbered(*keys)
    parts_of = [_parts(analysis, profile.ops[row], divide) for row in first.tolist()]
    sizes = np.asarray([len(parts) for parts in parts_of], np.int64)
    begins = np.cumsum(sizes) - sizes
    kind = kind[order]
    number = np.arange(sizes[kind].sum()) - np.repeat(np.cumsum(sizes[kind]) - sizes[kind], sizes[kind])
    return list(chain(*parts_of)), np.repeat(order, sizes[kind]), np.repeat(begins[kind], sizes[kind]) + number


def _parts(analysis: Analysis, op: Op, divide: bool) -> tuple[_Part, ...]:
    profile = analysis.profile
    signature = profile.signatures[op.signature]
    place = Place(profile.phases[op.phase], profile.blocks[op.block], analysis.op_class(op))
    scope, cost = profile.scopes[op.scope], signature.cost
    undivided = (_Part(signature, place, scope, 1.0, _nan(cost.flops), _nan(cost.model_flops)),)
    constituents = [_classified(piece) for piece in analysis.constituents(op)] if divide else []
    # A product reads an operand where it lies: a copy or transpose that it took in moves nothing any more.
    product = any(piece.op_class in PRODUCTS for piece in constituents)
    alone_floors = [
        0.0 if product and piece.op_class == "movement" else _alone_floor(piece, analysis.device)
        for piece in constituents
    ]
    known_floors = [floor for floor in alone_floors if floor is not None]
    # A constituent of unknown work could be any part of the time: such an op stays whole.
    if len(known_floors) < len(alone_floors) or not sum(known_floors):
        return undivided
    divided: dict[tuple[Place, str], _Part] = {}
    for piece, floor in zip(constituents, known_floors, strict=True):
        at, cost = Place(piece.phase, piece.block, piece.op_class), piece.signature.cost
        before = divided.get((at, piece.scope), _Part(piece.signature, at, piece.scope, 0.0, 0.0, 0.0))
        divided[at, piece.scope] = before._replace(
            weight=before.weight + floor / sum(known_floors),
            flops=before.flops + _nan(cost.flops),
            model_flops=before.model_flops + _nan(cost.model_flops),
        )
    return tuple(part for part in divided.values() if part.weight)


def _classified(piece: Constituent) -> Constituent:
    """Return a constituent; one of a product's name that has no FLOPs is what a compiler took in of it, as its bias."""
    cost = piece.signature.cost
    if piece.op_class in PRODUCTS and cost.flops == 0 and not cost.model_flops:
        return piece._replace(op_class="pointwise")
    return piece


def _nan(value: float | None) -> float:
    return math.nan if value is None else value


def _alone_floor(part: Constituent, device: Device) -> float | None:
    """Return the floor of a constituent as an op of its own, all of its traffic cold [s]; None of unknown work.

    Without the launch: that is what fusing saves, and what takes no time inside the fused kernel.
    """
    cost = part.signature.cost
    if not cost.flops_known or cost.bytes_read is None or cost.bytes_written is None:
        return None
    floor = terms(part.signature, device, "", 0, cost.bytes_read, cost.bytes_written)
    return max(floor.compute or 0.0, floor.memory or 0.0)


def _ceilings(analysis: Analysis) -> list[str]:
    """Name the ceiling that the floor of each op is made of; "" of an op without a floor.

    That is not always the roof that an op is said to be under (`OpTable.bound`): where a trace says nothing of buffers
    that is the roof of the floor's upper end, and of a product of unknown arithmetic it is unknown.
    """
    profile, table = analysis.profile, analysis.table
    floors = np.nan_to_num(np.stack([table.compute, table.memory, table.launch, table.launch * np.nan]), nan=-1.0)
    ceilings = list(table.ceiling)
    differs = (floors[table.bound, np.arange(len(profile.ops))] < floors.max(axis=0)) & (table.uncosted == 0)
    roofs = floors.argmax(axis=0)

    @cache
    def of_roofs(number: int, copied: bool) -> tuple[str, str, str]:
        signature = profile.signatures[number]
        return (
            compute_time(signature, analysis.device)[1],
            f"dram.{pattern(signature.cost, signature.inplace, analysis.device)}",
            f"launch.{COPY if copied else signature.executor or executor_of(profile)}",
        )

    for row in np.flatnonzero(differs).tolist():
        op = profile.ops[row]
        ceilings[row] = of_roofs(op.signature, copied=op.launches == 0)[roofs[row]]
    return ceilings


def _quantities(analysis: Analysis, ceilings: Sequence[str]) -> Array:
    """Return how much of what its ceiling limits each op does; 0 of an op without a floor."""
    profile, of = analysis.profile, columns(analysis.profile)
    families = np.asarray([name.partition(".")[0] for name in ceilings], object)
    quantities = np.where(families == "dram", analysis.table.cold, 0.0)
    quantities = np.where(families == "launch", of.launches.clip(1), quantities)
    for family, limited in _LIMITED.items():
        amounts = np.asarray([limited(signature.cost) or 0.0 for signature in profile.signatures], np.float64)
        quantities = np.where(families == family, amounts[of.signature], quantities)
    return quantities
