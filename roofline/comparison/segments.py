"""The ops of a step as segments of work, each at one place of the model: what two runs are compared by.

An op that stands for itself is one segment. A fused kernel is divided over its constituents by the floors that these
would have alone, so that a LayerNorm inside a generated kernel meets the LayerNorm of an eager step. An op that a loop
or a program runs many times in a step is as many segments, so that it meets the ops of a step that has them one by one.
Nothing is lost: the weights of an op's segments add up to 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roofline.analysis.analysis import Analysis, Constituent
from roofline.analysis.caches import loops
from roofline.analysis.floors import compute_time, pattern, terms
from roofline.comparison.arrays import Array
from roofline.comparison.exposure import overlaps
from roofline.core.cost import Cost
from roofline.core.device import Device
from roofline.core.executor import COPY, executor_of
from roofline.core.rows import rows as columns
from roofline.core.schema import Op, Profile, Signature
from roofline.core.vocabulary import CLASSES, PRODUCTS, OpClass
from roofline.units import NANOSECOND

#: What floors are made of: families of ceilings, each with a quantity of its own (FLOPs, evaluations, bytes, launches).
FAMILIES = ("matrix", "vector", "function", "dram", "cache", "link", "launch")


class Place(NamedTuple):
    """Where work stands: phase and block first, so that fused and written-out forms of one thing meet, then class."""

    phase: str
    block: str
    op_class: OpClass


@dataclass(frozen=True, slots=True)
class Segments:
    """The segments of a run, one entry each, in the order of dispatch, as far as that is known of repeated ops.

    op_class: an index into `vocabulary.CLASSES`. op: the op it is of; weight: its part of that op; times: how often the
    step runs that op, which is what the costs of its signatures are for; signature: what it would be alone, so many
    times; whole: its op's signature; fused: whether its op has constituents. own: its own time in each profiled step,
    unscaled [s], shape (segments, steps). overlap (exposure.py), uncosted, floor: its part of the op's [s], overlap
    unscaled. ceiling: what sets the floor ("" for none); quantity: how much of what that ceiling limits (`FAMILIES`).
    bytes: its part of the op's; flops, model_flops: its own. nan is unknown.
    """

    places: tuple[Place, ...]
    op_class: NDArray[np.int64]
    op: NDArray[np.int64]
    weight: Array
    times: NDArray[np.int64]
    signature: tuple[Signature, ...]
    whole: tuple[Signature, ...]
    fused: NDArray[np.bool_]
    own: Array
    overlap: Array
    uncosted: NDArray[np.bool_]
    floor: Array
    bound: NDArray[np.int64]
    ceiling: tuple[str, ...]
    quantity: Array
    launches: Array
    flops: Array
    model_flops: Array
    bytes: Array

    def __len__(self) -> int:
        return len(self.places)

    def parted(self, rows: NDArray[np.int64], share: Array) -> Segments:
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
    """The segments of a run: the work view, or with `divide` off the kernel view, in which each op stays whole."""
    profile, table = analysis.profile, analysis.table
    of, (kind, alike) = columns(profile), _alike(analysis, divide)
    times = executions(profile)
    if times.sum() > max(MOST_SEGMENTS, 2 * len(times)):
        times = np.ones(len(times), np.int64)
    order = _order(times)
    # Where the parts of each op stand among those of all ops that are told apart: `flat`.
    flat = [part for parts in alike for part in parts]
    number = np.asarray([len(parts) for parts in alike], np.int64)
    many = number[kind[order]]
    rows = np.repeat(order, many)
    part = np.repeat((np.cumsum(number) - number)[kind[order]] - (np.cumsum(many) - many), many) + np.arange(len(rows))
    weight = np.asarray([one.weight for one in flat], np.float64)[part] / times[rows]
    steps = len(profile.profiled.corrected) if profile.profiled else 0
    own = of.own.reshape(len(profile.ops), steps) * NANOSECOND
    bound, ceiling = _binding(analysis)
    work = np.asarray([(one.flops, one.model_flops) for one in flat], np.float64).reshape(-1, 2)
    moved = np.asarray([_nan(signature.cost.bytes) for signature in profile.signatures], np.float64)
    fused = np.asarray([bool(op.constituents) for op in profile.ops], bool)
    shown, whole = part.tolist(), of.signature[rows].tolist()
    return Segments(
        places=tuple(map([one.place for one in flat].__getitem__, shown)),
        op_class=np.asarray([CLASSES.index(one.place.op_class) for one in flat], np.int64)[part],
        op=rows,
        weight=weight,
        times=times[rows],
        signature=tuple(map([one.signature for one in flat].__getitem__, shown)),
        whole=tuple(map(profile.signatures.__getitem__, whole)),
        fused=fused[rows],
        own=own[rows] * weight[:, None],
        overlap=overlaps(analysis)[rows] * weight,
        uncosted=(table.uncosted > 0)[rows],
        floor=table.floor[rows] * weight,
        bound=bound[rows],
        ceiling=tuple(map(ceiling.__getitem__, rows.tolist())),
        quantity=_quantity(analysis, ceiling)[rows] * weight,
        launches=of.launches[rows] * weight,
        flops=work[part, 0] / times[rows],
        model_flops=work[part, 1] / times[rows],
        bytes=moved[of.signature][rows] * weight,
    )


def untold(some: Segments) -> Segments:
    """The same with all of a training step in one phase, for a run beside one that does not tell its phases apart."""
    places = (place._replace(phase="step") if place.phase in _TRAINING else place for place in some.places)
    return replace(some, places=tuple(places))


#: The phases of a training step.
_TRAINING = ("forward", "backward", "optimizer")

#: Segments that repeated ops may become in all; with more of them each op stays one. By choice: a bound on memory.
MOST_SEGMENTS = 100_000


def executions(profile: Profile) -> NDArray[np.int64]:
    """How often a step runs each op."""
    return np.minimum(loops.times(profile), MOST_SEGMENTS + 1)  # a profile may say anything


def _order(times: NDArray[np.int64]) -> NDArray[np.int64]:
    """The ops in the order of dispatch, each as often as it runs.

    Neighbours that run equally often are one loop or one program, which runs them in turn.
    """
    bounds = [0, *(np.flatnonzero(times[1:] != times[:-1]) + 1).tolist(), len(times)]
    turns = [np.tile(np.arange(low, high), times[low]) for low, high in pairwise(bounds) if high > low]
    return np.concatenate([np.zeros(0, np.int64), *turns])


def _alike(analysis: Analysis, divide: bool) -> tuple[NDArray[np.int64], list[tuple[_Part, ...]]]:
    """The parts of ops, once for ops that have the same; and of each op which of them it has."""
    known: dict[tuple[object, ...], int] = {}
    found: list[tuple[_Part, ...]] = []
    kind = np.empty(len(analysis.profile.ops), np.int64)
    for row, op in enumerate(analysis.profile.ops):
        key = op.signature, op.scope, op.phase, op.block, op.constituents, op.places
        if key not in known:
            known[key] = len(found)
            found.append(_parts(analysis, op, divide))
        kind[row] = known[key]
    return kind, found


def _parts(analysis: Analysis, op: Op, divide: bool) -> tuple[_Part, ...]:
    profile = analysis.profile
    signature = profile.signatures[op.signature]
    place = Place(profile.phases[op.phase], profile.blocks[op.block], analysis.op_class(op))
    cost = signature.cost
    whole = (_Part(signature, place, profile.scopes[op.scope], 1.0, _nan(cost.flops), _nan(cost.model_flops)),)
    if not divide or not op.constituents:
        return whole
    constituents = analysis.constituents(op)
    product = any(one.op_class in PRODUCTS for one in constituents)
    # A product reads an operand where it lies: a copy or transpose that it took in moves nothing any more.
    alone = [
        0.0 if product and one.op_class == "movement" else alone_floor(one, analysis.device) for one in constituents
    ]
    known = [floor for floor in alone if floor is not None]
    # A constituent of unknown work could be any part of the time: such an op stays whole.
    if len(known) < len(alone) or not sum(known):
        return whole
    divided: dict[tuple[Place, str], _Part] = {}
    for one, floor in zip(constituents, known, strict=True):
        at, work = Place(one.phase, one.block, one.op_class), one.signature.cost
        before = divided.get((at, one.scope), _Part(one.signature, at, one.scope, 0.0, 0.0, 0.0))
        divided[at, one.scope] = before._replace(
            weight=before.weight + floor / sum(known),
            flops=before.flops + _nan(work.flops),
            model_flops=before.model_flops + _nan(work.model_flops),
        )
    return tuple(part for part in divided.values() if part.weight)


def _nan(value: float | None) -> float:
    return math.nan if value is None else value


def alone_floor(one: Constituent, device: Device) -> float | None:
    """The floor of a constituent as an op of its own, all of its traffic cold [s]; None where its work is unknown.

    Without the launch: that is what fusing saves, and what takes no time inside the fused kernel.
    """
    cost = one.signature.cost
    if not cost.flops_known or cost.bytes_read is None or cost.bytes_written is None:
        return None
    found = terms(one.signature, device, "", 0, cost.bytes_read, cost.bytes_written)
    return max(found.compute or 0.0, found.memory or 0.0)


def _binding(analysis: Analysis) -> tuple[NDArray[np.int64], list[str]]:
    """What the floor of each op is made of: the roof and its ceiling.

    Where a trace says nothing of buffers, the bound of an op is the roof of its floor's upper end. Its floor is the
    lower end, with less memory traffic, so that another roof may be what it is made of. The bound of a product of
    unknown arithmetic is unknown, and its floor is what is known of it.
    """
    profile, table = analysis.profile, analysis.table
    floors = np.nan_to_num(np.stack([table.compute, table.memory, table.launch]), nan=-1.0)
    every, roof, bound = np.arange(len(profile.ops)), floors.argmax(axis=0), np.asarray(table.bound, np.int64)
    same = (bound < len(floors)) & (floors[np.minimum(bound, len(floors) - 1), every] >= floors[roof, every])
    uncosted = table.uncosted > 0
    ceiling = ["" if dark else name for dark, name in zip(uncosted.tolist(), table.ceiling, strict=True)]
    names: dict[tuple[int, bool], tuple[str | None, ...]] = {}
    for row in np.flatnonzero(~same & ~uncosted).tolist():
        one = profile.ops[row]
        kind = one.signature, one.launches == 0
        if kind not in names:
            names[kind] = _ceilings(analysis, profile.signatures[one.signature], copied=one.launches == 0)
        ceiling[row] = names[kind][roof[row]] or ""
    return np.where(same | uncosted, bound, roof), ceiling


def _ceilings(analysis: Analysis, signature: Signature, copied: bool) -> tuple[str | None, ...]:
    """The ceilings above ops of a signature, by roof. copied: by an engine that launches no kernel."""
    launcher = COPY if copied else signature.executor or executor_of(analysis.profile)
    return (
        compute_time(signature, analysis.device)[1],
        f"dram.{pattern(signature.cost, signature.inplace, analysis.device)}",
        f"launch.{launcher}",
    )


def _quantity(analysis: Analysis, ceiling: Sequence[str]) -> Array:
    """How much of what its binding ceiling limits each op does; 0 for an op without a floor."""
    profile, of = analysis.profile, columns(analysis.profile)
    found = np.zeros(len(profile.ops))
    known: dict[tuple[int, str], float] = {}
    for row, (number, name) in enumerate(zip(of.signature.tolist(), ceiling, strict=True)):
        if (number, name) not in known:
            known[number, name] = _limited(profile.signatures[number].cost, name)
        found[row] = known[number, name]
    family = np.asarray([name.partition(".")[0] for name in ceiling], object)
    found = np.where(family == "dram", analysis.table.cold, found)
    return np.where(family == "launch", of.launches.clip(1), found)  # a copy launches no kernel


def _limited(cost: Cost, ceiling: str) -> float:
    """The same of an op of such work, whatever it finds in a cache and however often it is launched."""
    match ceiling.partition(".")[0]:
        case "matrix":
            return cost.useful_flops or 0.0
        case "vector":
            return cost.vector_flops or 0.0
        case "function":
            return sum((cost.functions or {}).values())
        case "cache":
            return cost.bytes or 0.0
        case "link":
            return max(cost.bytes_read or 0.0, cost.bytes_written or 0.0)
    return 0.0
