"""Validate a profile: it may come from anywhere, and one number that nothing measures spoils all sums.

A float64 ends at 1e308, and what is squared or divided ends sooner: no work, rate, size or time of a step is beyond
LARGEST or, without being 0, below SMALLEST, so that nothing that is computed of them leaves the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

from roofline.errors import InputError

if TYPE_CHECKING:
    from roofline.core.cost import Cost
    from roofline.core.device import Device

#: `schema.Profile` and `schema.Op`: that module imports this one.
Profile = Any
Op = Any

#: By choice, far from all that is measured: the fastest machines do 1e18 FLOP/s, and a bit is written in 1e-15 s.
LARGEST, SMALLEST = 1e30, 1e-30
#: [s] What a step can take: clocks count whole nanoseconds, and a hundred days are far longer than any.
_STEP = (1e-9, 1e7)
#: [ns] A hundred days, far longer than a step.
LONGEST = 10**16
#: [ns] of a start, and the number of a buffer, on either side of 0: a small number that 64 bits hold.
_FARTHEST = 1 << 62
#: [ns] What runs beside other ops runs: more of it than an op's own time is no rounding of the two.
_ROUNDED = 1
#: Launches of an op and results that a host reads before it, far more than a step has time for.
MOST = 1 << 40
#: [byte] Programs have 2**47 of addresses, or 2**56 where they ask for them; every reader of JSON holds whole numbers
#: up to 2**53, which is more than any memory.
LAST_ADDRESS = 1 << 53
#: Shares are sums of times over sums of times, and may exceed 1 by their rounding.
_WHOLE = 1 + 1e-6

_COSTS = ("model_flops", "flops", "useful_flops", "vector_flops", "int_ops", "bytes_read", "bytes_written")
_TIMES = ("steps", "single", "first")
_ENERGY = ("per_step", "uncertainty", "tick", "seconds")
_API = ("after", "waiting", "alone")
_PROFILED = ("corrected", "idle", "event_cost", "events", "dropped")
_COUNTS = ("batch", "seq", "layers", "parameters", "trainable", "samples", "tokens", "new_tokens", "devices")
_IMPORTED = ("span", "busy", "idle", "steps", "communication", "exposed", "waiting")
_SHARES = ("linked", "launched", "twinned")
#: Of `schema.Counters`: columns that every table has, and those that it may lack.
_COUNTERS, _FURTHER_COUNTERS = ("read", "written"), ("through_cache", "seconds")

Named = Iterator[tuple[str, float | None]]


def measured(value: object) -> float | None:
    """Return a number of a file as one that can be reckoned with; None for whatever nothing measures.

    JSON and TOML have integers that no float holds, so nothing that comes from outside is turned into one elsewhere.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if value == 0 or SMALLEST <= value <= LARGEST else None


def reported(value: float) -> str:
    """Write a number as an error names it, however many digits it has."""
    if isinstance(value, int):
        return (
            str(value)
            if abs(value) <= LARGEST
            else f"an integer of some {int(value.bit_length() * 0.30103) + 1} digits"
        )
    return f"{value:g}"


def _damaged(source: str, reason: str) -> InputError:
    return InputError(f"{source} is damaged: {reason}; copy it again, or make it again.")


def check(profile: Profile, source: str, *, decoded: bool = False) -> None:
    """InputError, naming what it is, for a profile whose parts do not fit or whose numbers nothing measures.

    decoded: what the types of its fields bound is within these bounds, since msgspec looked at them.
    """
    turns = profile.wall.turns
    if any(not len(of.medians) == len(of.waited) == len(of.disturbed) for of in turns):
        raise _damaged(source, "not all is known of each of its turns")
    numbers = profile.wall.numbers
    if len(numbers) not in (0, len(profile.wall.steps)) or any(after <= before for before, after in pairwise(numbers)):
        raise _damaged(source, "the numbers of its steps do not rise, or are not one for each")
    profiled = profile.profiled
    timed = profiled is not None
    times = chain(profile.wall.steps, *profile.wall.processes, *(of.medians for of in turns))
    if (timed and not profile.wall.steps) or 0 in times:
        raise _damaged(source, "it has no times of steps")
    if profiled and not (
        len(profiled.walls) == len(profiled.corrected)
        and len(profiled.idle) in (0, len(profiled.corrected))
        and min(profiled.corrected, default=1) > 0
    ):
        raise _damaged(source, "its profiled steps have no times")
    check_device(profile.device, source)
    if profile.api and not profile.api.steps:
        raise _damaged(source, f"{profile.api.name!r} has no times of steps")
    if profile.counters and not _counters_fit(profile):
        raise _damaged(source, "its hardware counters are not one per op")
    if profile.imported and any(not of.steps or of.seconds <= 0 for of in profile.imported.engine):
        raise _damaged(source, "steps of its engine have no time, or are none")
    if profile.storages and not profile.storages.fits(len(profile.ops)):
        raise _damaged(source, "its storages are not columns of one length, or point outside its tables")
    if profile.waits and not profile.waits.fits(len(profile.ops)):
        raise _damaged(source, "its waits are not columns of one length, or point outside its tables")
    if profile.collectives and not profile.collectives.fits:
        raise _damaged(source, "its collectives are not columns of one length")
    _check_all(_numbers(profile), source)
    _check_all(_shares(profile), source, upper=_WHOLE)
    _check_all(_steps(profile), source, *_STEP)
    if not (_ops_fit(profile) if decoded else _all_fits(profile)):
        _refuse_op(profile, source)
    _check_length(profile, source)
    for number, address in enumerate(() if decoded else profile.addresses):
        if address is not None and not 0 <= address <= LAST_ADDRESS:
            raise _damaged(source, f"the address of buffer {number} is {reported(address)}")


def _check_length(profile: Profile, source: str) -> None:
    """Refuse a step in which not each op that has a time has a nanosecond, which is the least that a clock counts.

    Several devices may run ops at once; on each they are launched one after another.
    """
    from roofline.core.rows import rows

    timed = int(rows(profile).own.reshape(len(profile.ops), -1).any(axis=1).sum()) if profile.ops else 0
    shortest = min(profile.wall.steps, default=math.inf)
    if shortest < timed * _STEP[0] / profile.devices:
        raise _damaged(source, f"a step of {timed} ops takes {reported(shortest)} s")


def check_device(device: Device, source: str) -> None:
    """Raise InputError for a device that no measurement or datasheet gives."""
    for name, ceiling in device.ceilings.items():
        if not ceiling.value > 0:
            raise _damaged(source, f"the ceiling {name!r} is not above 0")
        if ceiling.reached is not None and not 0 < ceiling.reached <= 2 * ceiling.value:
            raise _damaged(source, f"what was reached of the ceiling {name!r} is {reported(ceiling.reached)}")
        for bound, upper in (("most", ceiling.high), ("shortest", ceiling.shortest)):
            if upper is not None and not ceiling.value <= upper <= LARGEST:
                raise _damaged(source, f"the {bound} of the ceiling {name!r} is {reported(upper)}")
        _check_all(_of(f"the ceiling {name!r}:", ceiling, ("value", "sustained", "clock", "reached")), source)
        for field in ("spread", "drift"):
            share = getattr(ceiling, field)
            if share is not None and not 0 <= share < 1:
                raise _damaged(source, f"the {field} of the ceiling {name!r} is {reported(share)}")
        if ceiling.waited is not None and not 0 <= ceiling.waited <= 1:
            raise _damaged(source, f"the waited of the ceiling {name!r} is {reported(ceiling.waited)}")
    _check_all(((f"the size of the cache {cache.level!r}", cache.size) for cache in device.caches), source)
    _check_all([("the memory of the device", device.memory), ("the number of devices", device.number)], source)


def _check_all(
    numbers: Iterable[tuple[str, float | None]], source: str, least: float = SMALLEST, upper: float = LARGEST
) -> None:
    for name, value in numbers:
        # Written so that NaN, with which no comparison is true, is refused too.
        if value is not None and value != 0 and not least <= value <= upper:
            raise _damaged(source, f"{name} is {reported(value)}, which nothing measures")


def _of(prefix: str, holder: Any, fields: Iterable[str]) -> Named:
    """Yield the numbers in some fields of a struct, each a number, several or none."""
    for field in fields:
        value = getattr(holder, field)
        for number in value if isinstance(value, tuple) else (value,):
            yield f"{prefix} {field}".strip(), number


def _each(name: str, numbers: Mapping[str, float] | None) -> Named:
    for key, value in (numbers or {}).items():
        yield f"{name} {key!r}", value


def _numbers(profile: Profile) -> Named:
    """Yield the numbers that are 0 or more, by name; the rows of ops are apart."""
    yield from _of("", profile, _COUNTS)
    yield from _of("memory", profile.memory, ("peak", "parameters", "optimizer", "resident", "gradients"))
    yield from _each("conditions", profile.conditions)
    yield from (("waited in turns", seconds) for of in profile.wall.turns for seconds in of.waited)
    if profile.profiled:
        yield from _of("profiled", profile.profiled, _PROFILED)
        yield from _each("idle time by", profile.profiled.idle_causes)
    if profile.api:
        yield from _of("api", profile.api, _API)
    if profile.imported:
        yield from _of("imported", profile.imported, _IMPORTED)
        yield from (("steps of the engine", steps.seconds) for steps in profile.imported.engine)
    if profile.storages:
        yield from _of("storages", profile.storages, ("assigned",))
    if profile.energy:
        yield from _of("energy", profile.energy, _ENERGY)
    if profile.counters:
        yield from _of("counters", profile.counters, ("kernels", "unjoined", *_COUNTERS, *_FURTHER_COUNTERS))
    for message in profile.collectives.messages if profile.collectives else ():
        yield from _of("collective", message, ("ranks", "sent", "received"))
    if profile.compilation:
        yield from _of("compilation", profile.compilation, ("seconds", "graphs", "guards", "opaque"))
        yield from _each("graph breaks", profile.compilation.breaks)
        for phase, pair in profile.compilation.eager.items():
            yield from ((f"what is eager in {phase!r}", value) for value in pair)
    for number, signature in enumerate(profile.signatures):
        yield from _of_cost(f"signature {number}:", signature.cost)
        yield from _of(f"signature {number}:", signature, ("reads", "writes"))


def _steps(profile: Profile) -> Named:
    """Yield the times of steps."""
    yield from _of("wall", profile.wall, _TIMES)
    yield from (("wall processes", step) for steps in profile.wall.processes for step in steps)
    yield from (("wall turns", step) for of in profile.wall.turns for step in of.medians)
    if profile.profiled:
        yield from _of("profiled", profile.profiled, ("walls",))
    if profile.api:
        yield from _of("api", profile.api, ("steps",))


def _of_cost(prefix: str, cost: Cost) -> Named:
    yield from _of(prefix, cost, _COSTS)
    yield from _each(f"{prefix} function", cost.functions)


def _shares(profile: Profile) -> Named:
    if profile.profiled:
        yield from _of("profiled", profile.profiled, ("joined",))
    if profile.imported:
        yield from _of("imported", profile.imported, _SHARES)
    if profile.counters:
        yield from _of("counters", profile.counters, ("joined", "busy"))


def _counters_fit(profile: Profile) -> bool:
    """Return whether counters are columns of a number per op, and read and written bytes known of the same ops."""
    counters, ops = profile.counters, len(profile.ops)
    return (
        all(len(getattr(counters, name)) == ops for name in _COUNTERS)
        and all(len(getattr(counters, name)) in (0, ops) for name in _FURTHER_COUNTERS)
        and all(
            (read is None) == (written is None) for read, written in zip(counters.read, counters.written, strict=True)
        )
        and counters.unjoined <= counters.kernels
    )


def check_finite(document: Any) -> None:
    """InputError for a document with NaN or infinity, which msgspec writes as null: refused before it is lost."""
    if not _finite(document):
        _refuse_non_finite(document, "$")


def _finite(value: Any) -> bool:
    """Return whether no number of a document is NaN or infinite: asked first, as asking where takes longer."""
    if type(value) is float:
        return math.isfinite(value)
    parts = value.values() if type(value) is dict else value if type(value) in (list, tuple) else ()
    return all(map(_finite, parts))


def _refuse_non_finite(value: object, path: str) -> None:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(f"The profile holds {value} at {path}; measure it again, it was not saved.")
    elif isinstance(value, dict):
        for key, item in value.items():
            _refuse_non_finite(item, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            _refuse_non_finite(item, f"{path}[{number}]")


# ------------------------------------------------------------------------------------------------- rows of ops


def _ops_fit(profile: Profile) -> bool:
    """Return whether the indices of all ops point into their tables and their times can be; by columns, for speed."""
    import numpy as np

    from roofline.core.rows import rows

    ops, signatures = profile.ops, profile.signatures
    if not ops:
        return True
    try:
        of = rows(profile)
    except (OverflowError, ValueError):  # more than 64 bits, as nothing has, or no number
        return False
    tables = ((of.scope, profile.scopes), (of.phase, profile.phases), (of.block, profile.blocks))
    inside = (
        _outside(of.signature, len(signatures) - 1),
        *(_outside(numbers, len(table) - 1) for numbers, table in tables),
        *(_outside(of.places[:, number], len(table) - 1) for number, (_, table) in enumerate(tables)),
        _outside(of.kernels[:, 0], len(profile.kernels) - 1),
        _outside(of.fused, len(signatures) - 1),
        _outside(of.line, len(profile.lines) - 1, -1),
        _outside(of.own, LONGEST),
        _outside(of.overlap, LONGEST),
        _outside(of.launches, MOST),
        _outside(of.times, MOST, 1),
        _outside(of.kernels[:, 1], LONGEST),
        _outside(of.start, _FARTHEST, -_FARTHEST),
        _outside(of.buffers, _FARTHEST, -_FARTHEST),
    )
    if any(inside):
        return False
    steps = len(profile.profiled.corrected) if profile.profiled else of.steps[0]
    if (of.steps == steps).all() and steps and (of.overlap > of.own.reshape(-1, steps).mean(axis=1) + _ROUNDED).any():
        return False
    sizes = np.asarray([(len(signature.reads), len(signature.writes)) for signature in signatures], np.int64)
    return bool(
        (of.steps == steps).all()
        and (sizes[of.signature] == np.stack([of.reads, of.writes], axis=1)).all()
        and (not len(of.places) or all(len(op.places) in (0, len(op.constituents)) for op in ops))
    )


def _all_fits(profile: Profile) -> bool:
    return _ops_fit(profile) and _host_fits(profile.ops)


def _host_fits(ops: Sequence[Op]) -> bool:
    """Return whether what is recorded of the host before each op is within the bounds of these fields' types."""
    return all(_within(values, upper) for _, values, upper in _host_columns(ops))


def _outside(values: Any, upper: int, least: int = 0) -> bool:
    return bool(len(values) and (values.min() < least or values.max() > upper))


def _columns(ops: Iterable[Op]) -> Iterator[tuple[str, list[int], int]]:
    """Yield numbers of ops that are 0 or more: their name, they themselves, and the most that one can be."""
    ops = tuple(ops)
    yield "own_ns", list(chain.from_iterable(op.own_ns for op in ops)), LONGEST
    yield "overlap_ns", [op.overlap_ns for op in ops], LONGEST
    # What was launched before the step began there may start before it.
    yield "start_ns", [abs(op.start_ns) for op in ops], _FARTHEST
    yield "launches", [op.launches for op in ops], MOST
    yield "times", [op.times for op in ops], MOST
    yield "buffers", [abs(buffer) for op in ops for buffer in (*op.reads, *op.writes)], _FARTHEST
    yield "time of a kernel", [time for op in ops for _, time in op.kernels], LONGEST
    yield from _host_columns(ops)


def _host_columns(ops: Sequence[Op]) -> Iterator[tuple[str, list[int], int]]:
    """Yield such numbers of what the host did before each op."""
    yield "host_ns", [time for op in ops for time in op.host_ns or ()], LONGEST
    yield "host_reads", [op.host_reads or 0 for op in ops], MOST
    yield "host_calls", [op.host_calls or 0 for op in ops], MOST
    yield "python_ns", [op.python_ns or 0 for op in ops], LONGEST
    yield "line", [op.line or 0 for op in ops], MOST


def _within(values: list[int], upper: int) -> bool:
    return not values or (min(values) >= 0 and max(values) <= upper)


def _refuse_op(profile: Profile, source: str) -> None:
    """Raise InputError for the first op that does not fit; that of the first half of the ops that do not, and so on."""
    from msgspec.structs import replace

    low, high = 0, len(profile.ops)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _all_fits(replace(profile, ops=profile.ops[low:middle])) else (low, middle)
    op = profile.ops[low]
    for name, values, upper in _columns([op]):
        if not _within(values, upper):
            raise _damaged(source, f"{name} of op {low} is {reported(max(values, key=abs))}")
    if op.own_ns and op.overlap_ns > sum(op.own_ns) / len(op.own_ns) + _ROUNDED:
        raise _damaged(source, f"op {low} ran beside others for longer than it ran")
    sizes = profile.signatures[op.signature : op.signature + 1] if op.signature >= 0 else ()
    if sizes and (len(sizes[0].reads), len(sizes[0].writes)) != (len(op.reads), len(op.writes)):
        raise _damaged(source, f"the buffers of op {low} do not fit its signature")
    steps = len(profile.profiled.corrected if profile.profiled else profile.ops[0].own_ns)
    if len(op.own_ns) != steps:
        raise _damaged(source, f"op {low} has times in {len(op.own_ns)} steps and not in {steps}")
    if _all_fits(replace(profile, ops=(op,))):
        raise _damaged(source, "not all of its ops have a time in each of its steps")
    raise _damaged(source, f"op {low} points outside the profile's tables")
