"""Each op of a step under the ceilings of a device: its floor, its loss, and the roof that binds it."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from roofline.analysis.caches.counted import counted_on
from roofline.analysis.caches.loops import times
from roofline.analysis.caches.traffic import Cold
from roofline.analysis.columns import Columns, columns, first_rows, numbered
from roofline.analysis.floors import ABOVE_TOLERANCE, RIDGE_RATIO, UNKNOWN_ARITHMETIC, Terms, terms
from roofline.analysis.totals import OpTable
from roofline.core import statistics
from roofline.core.arrays import Array
from roofline.core.cost import Cost
from roofline.core.device import Device
from roofline.core.executor import COPY, executor_of
from roofline.core.schema import Profile
from roofline.core.vocabulary import BOUNDS

_RIDGE_RESAMPLES = 200
#: Works that are resampled at once: arrays of 5 MB.
_RIDGE_PIECE = 1024
#: [byte] The largest last-level caches there are, of which one of unknown size holds no more: the L3 of EPYC 9684X, and
#: the Infinity Cache of MI300X (AMD's data sheets).
_LARGEST_OF_CPUS, _LARGEST_OF_GPUS = 1152 * 2**20, 256 * 2**20


def op_table(profile: Profile, device: Device, cold: Cold, scale: float) -> tuple[OpTable, tuple[str, ...]]:
    """Return the table of all ops, and the names of the ceilings that their floors lack.

    cold: which of their bytes are in no cache. scale: what measured times are multiplied by.
    """
    ops, signatures = profile.ops, profile.signatures
    of = columns(profile)
    own_seconds = of.own * scale
    share = own_seconds - of.overlap * scale
    work_terms, work = op_terms(profile, device, cold)
    costed = np.asarray([_costed(signature.cost) for signature in signatures], bool)[of.signature]
    compute = _column(work_terms, "compute")[work]
    memory = _column(work_terms, "memory")[work]
    launch = _column(work_terms, "launch")[work]
    stacked = np.stack([compute, memory, launch]) if len(ops) else np.zeros((3, 0))
    filled = np.nan_to_num(stacked, nan=-1.0)
    # The upper end of the interval, where it is not known what the cache still held or what a launch takes.
    upper = filled.copy()
    for row, name in ((1, "memory_high"), (2, "launch_high")):
        upper[row] = np.maximum(filled[row], np.nan_to_num(_column(work_terms, name)[work], nan=-1.0))
    # Where the ceilings of all its work are missing, what is left is the 0 of work that it has none of.
    idle = _idle(profile, of) & bool(device.ceilings)
    costed &= (upper.max(axis=0, initial=0.0) > 0) | idle
    # As measured: what the uniform scale takes away is bookkeeping, and no evidence that an op was fast.
    measured = own_seconds / scale
    from_memory = np.asarray([row.memory_ceiling.startswith("dram.") for row in work_terms], bool)[work]
    from_memory &= ~counted_on(profile, device).known  # what was counted came from main memory
    served = costed & from_memory & _served(profile, device, cold, filled, measured)
    costed &= ~served
    # Of what may all lie in a cache of unknown speed the lower end knows no memory term: the upper end says which roof.
    shown = np.where((filled[1] == 0) & (upper[1] > 0), upper, filled)
    binding = shown.argmax(axis=0) if len(ops) else np.zeros(0, np.int64)
    bound_high = upper.argmax(axis=0) if len(ops) else binding
    turned = binding != bound_high
    binding[idle] = BOUNDS.index("overhead")
    # Of a product of unknown arithmetic, or without a ceiling for it, one term is open: the others are below its floor,
    # and none of them is its roof.
    open_ = np.asarray([any(map(_of_products, row.missing)) for row in work_terms], bool)[work]
    floor = np.where(costed, filled.max(axis=0, initial=0.0), 0.0)
    # So their floors are ranges, up to the slowest arithmetic.
    slowest = np.nan_to_num(_column(work_terms, "compute_high")[work], nan=-1.0)
    floor_high = np.where(costed, np.fmax(floor, np.maximum(slowest, upper.max(axis=0, initial=0.0))), 0.0)
    uncosted = np.where(costed, 0.0, own_seconds)
    loss = own_seconds - floor - uncosted
    ceilings = [(row.compute_ceiling, row.memory_ceiling, row.launch_ceiling) for row in work_terms]
    has_roof = costed & ~open_
    named = np.asarray(ceilings, object).reshape(-1, 3)[work, binding]
    spreads = np.asarray([[device.spread(name) for name in row] for row in ceilings], np.float64).reshape(-1, 3)
    spread = np.where(has_roof, spreads[work, binding], 0.0)
    exempt = _by_another_algorithm(profile, of)
    by_its_end = np.where(from_memory, filled * _within(profile, device, cold), filled).max(axis=0, initial=0.0)
    above = costed & ~exempt & (by_its_end > measured * (1 + np.maximum(ABOVE_TOLERANCE, spread))) & (own_seconds > 0)
    table = OpTable(
        own=own_seconds,
        share=share,
        uncosted=uncosted,
        floor=floor,
        floor_high=floor_high,
        floor_reach=np.maximum(floor, np.minimum(floor_high, own_seconds)),
        loss=loss,
        bound=(bound := np.where(has_roof, binding, BOUNDS.index("unknown")).astype(np.int64)),
        bound_high=np.where(has_roof & ~idle, bound_high, bound).astype(np.int64),
        near_ridge=has_roof & ~idle & (_near_ridge(shown, work, work_terms, device) | turned),
        above=above,
        exempt=exempt,
        compute=np.where(costed, compute, np.nan),
        memory=np.where(costed, memory, np.nan),
        launch=launch,
        cold=cold.read + cold.written,
        cold_high=cold.read + cold.written if cold.high is None else cold.high,
        cold_reason=cold.reason,
        ceiling=tuple(np.where(has_roof & ~idle, named, "").tolist()),
        columns=of,
    )
    lacking = [work_terms[row].missing for row in np.unique(work[costed]).tolist()]
    if served.any():
        lacking.append((f"cache.{device.caches[-1].level if device.caches else 'llc'}",))
    missing = tuple(sorted({name for row in lacking for name in row}))
    return table, missing


def _of_products(missing: str) -> bool:
    """Return whether a ceiling that is missing is one of products."""
    return missing == UNKNOWN_ARITHMETIC or missing.startswith("matrix.")


def op_terms(profile: Profile, device: Device, cold: Cold) -> tuple[list[Terms], NDArray[np.int64]]:
    """Return the terms of floors, and which of them each op has: a work that a step repeats has one floor."""
    executor, signatures, of = executor_of(profile), profile.signatures, columns(profile)
    read, written, high, _ = cold
    copied = _copied(profile, of, device)
    launches = np.where(_idle(profile, of), 0, np.where(copied, 1, of.launches))
    by_copy, highest = copied.astype(np.int64), read if high is None else high
    counted = counted_on(profile, device).known
    work, first = numbered(of.signature, launches, by_copy, read, written, highest, counted.astype(np.int64))
    work_terms = [
        terms(
            signature := signatures[of.signature[row]],
            device,
            COPY if copied[row] else signature.executor or executor,
            int(launches[row]),
            float(read[row]),
            float(written[row]),
            None if high is None else float(high[row]),
            bool(counted[row]),
        )
        for row in first.tolist()
    ]
    return work_terms, work


def _idle(profile: Profile, of: Columns) -> NDArray[np.bool_]:
    """Return which ops are calls on a CPU that do nothing and launch nothing, as a view, without a launch floor."""
    nothing = [profile.device.kind == "cpu" and _empty(signature.cost) for signature in profile.signatures]
    return np.asarray(nothing, bool)[of.signature]


def _served(profile: Profile, device: Device, cold: Cold, terms: Array, measured: Array) -> NDArray[np.bool_]:
    """Return which ops ended sooner than main memory allows, where a cache of unknown speed may hold their bytes.

    Such a cache takes nothing from main memory, since it would give it for free, but of these ops it is seen that it
    did: main memory is not the roof above them, and what the roof is nobody knows. So is a cache of unknown size, which
    may hold what the largest one does. Equal ops are judged by their mean, or jitter would divide them. terms: of all
    ops [s].
    """
    if device.serves is not None:
        return np.zeros(len(measured), bool)
    alike = columns(profile).signature
    often = np.maximum(np.bincount(alike), 1)
    measured = (np.bincount(alike, measured) / often)[alike]
    holds = times(profile) * (device.llc or (_LARGEST_OF_CPUS if device.kind == "cpu" else _LARGEST_OF_GPUS))
    compute, memory, launch = terms
    memory_upper = memory * np.maximum(0.0, 1 - holds / np.maximum(cold.read + cold.written, 1.0))
    longest = measured * (1 + ABOVE_TOLERANCE)
    fits = np.maximum(np.maximum(compute, launch), memory_upper) <= longest
    return np.asarray((memory > longest) & fits & (measured > 0), bool)


def _within(profile: Profile, device: Device, cold: Cold) -> Array:
    """Return float[term, op]: the share of each term that is over when an op ends, at least.

    What an op writes may lie in the cache when it ends, as much as that holds. The op is charged for it, though it
    leaves while other ops run: an op that ends sooner is no defect of a count.
    """
    written = np.asarray([sum(one.writes) for one in profile.signatures], np.float64)[columns(profile).signature]
    evicted = np.minimum(cold.written, times(profile) * np.maximum(0.0, written - (device.serves or 0.0)))
    memory = (cold.read + evicted) / np.maximum(cold.read + cold.written, 1.0)
    return np.stack([np.ones_like(memory), memory, np.ones_like(memory)])


def _copied(profile: Profile, of: Columns, device: Device) -> NDArray[np.bool_]:
    """Return which ops ran on a GPU without a kernel, as copies and fills: at least one each."""
    if profile.device.kind == "cpu" or device.rate(f"launch.{COPY}") is None:
        return np.zeros(len(profile.ops), bool)
    return np.asarray((of.launches == 0) & (of.own > 0), bool)


def _empty(cost: Cost) -> bool:
    return _costed(cost) and not (cost.bytes or cost.flops or cost.vector_flops or cost.functions or cost.int_ops)


_FEWER_PRODUCTS = re.compile(r"winograd|fft", re.IGNORECASE)


def _by_another_algorithm(profile: Profile, of: Columns) -> NDArray[np.bool_]:
    """Return which convolutions ran in kernels that need fewer products than the direct one that is counted."""
    kinds = [signature.kind.startswith("convolution") for signature in profile.signatures]
    is_indirect = np.asarray(kinds, bool)[of.signature]
    for row in np.flatnonzero(is_indirect).tolist():
        names = (profile.kernels[number] for number, _ in profile.ops[row].kernels)
        is_indirect[row] = any(_FEWER_PRODUCTS.search(name) for name in names)
    return is_indirect


def _column(rows: list[Terms], name: str) -> Array:
    return np.asarray([np.nan if getattr(row, name) is None else getattr(row, name) for row in rows], np.float64)


def _costed(cost: Cost) -> bool:
    return cost.flops_known and cost.bytes is not None


def _near_ridge(stacked: Array, work: NDArray[np.int64], work_terms: list[Terms], device: Device) -> NDArray[np.bool_]:
    """Return whether the bound hangs on little: the runner-up within 10 %, or lost in over 5 % of resamples.

    stacked: the three terms of each op; work: which of the `work_terms` is its own. Ceilings are resampled uniformly
    between the lowest and the best that they were seen at.
    """
    if not work_terms:
        return np.zeros(0, bool)
    # What is said of the first op of a work holds for all of them.
    stacked = stacked[:, first_rows(work)]
    top = np.sort(stacked, axis=0)
    close = (top[1] > RIDGE_RATIO * top[2]) & (top[1] > 0)
    spreads = np.asarray(
        [
            [device.uncertainty(name) for name in (row.compute_ceiling, row.memory_ceiling, row.launch_ceiling)]
            for row in work_terms
        ]
    ).T
    binding = stacked.argmax(axis=0)
    random = statistics.generator().random((_RIDGE_RESAMPLES, 3, 1))
    agreeing = np.concatenate(
        [
            ((stacked[:, piece] / (1 - random * spreads[:, piece])).argmax(axis=1) == binding[piece]).sum(axis=0)
            for piece in (slice(begin, begin + _RIDGE_PIECE) for begin in range(0, len(work_terms), _RIDGE_PIECE))
        ]
    )
    return np.asarray(close | (agreeing < 0.95 * _RIDGE_RESAMPLES), bool)[work]
