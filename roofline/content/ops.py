"""Build the table of ops as columns, for data frames and files: a row per op of the step, in order of dispatch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.analysis.caches.counted import counted_on
from roofline.content.wording import plain
from roofline.core.schema import Signature
from roofline.core.vocabulary import BOUNDS, GROUP_OF


def columns(analysis: WorkAnalysis) -> dict[str, NDArray[Any]]:
    """Collect columns by name, each of shape (ops,): times [s], work [FLOP], traffic [byte]; NaN is unknown.

    seconds: the op's share of the step's wall, so that all of them and the gap add up to it; own_seconds: how long it
    ran, overlaps included. counted_bytes_*: by hardware counters. floor to floor_high: the least time by the ceilings,
    a range where it is not known what caches held. bound: the roof above. An op of fused ones names them in `fused`.
    """
    profile, table = analysis.profile, analysis.table
    indices, signatures, ops = table.columns, profile.signatures, profile.ops
    classes = np.asarray([analysis.op_class(op) for op in ops], object)
    costed = ~table.uncosted.astype(bool)
    timed, by_counters = isinstance(analysis, Analysis), counted_on(profile, analysis.device)

    def per_signature(attribute: Callable[[Signature], object], kind: Any = object) -> NDArray[Any]:
        return _array((attribute(signature) for signature in signatures), kind)[indices.signature]

    def work(attribute: str) -> NDArray[Any]:
        return per_signature(lambda signature: _number(getattr(signature.cost, attribute)), float)

    def measured(values: NDArray[Any]) -> NDArray[Any]:
        return values if timed else np.full(len(ops), np.nan)

    return {
        "name": per_signature(lambda signature: plain(signature.name)),
        "kind": per_signature(lambda signature: signature.kind),
        "class": classes,
        "group": _array((GROUP_OF[op_class] for op_class in classes), object),
        "phase": _named(profile.phases)[indices.phase],
        "block": _named(profile.blocks)[indices.block],
        "scope": _named(profile.scopes)[indices.scope],
        "line": _array((*map(plain, profile.lines), None), object)[indices.line],
        "shapes": per_signature(lambda signature: plain(signature.shapes)),
        "dtype": per_signature(lambda signature: signature.dtype),
        "arithmetic": per_signature(lambda signature: signature.precision.arithmetic if signature.precision else None),
        "model_flops": work("model_flops"),
        "flops": work("flops"),
        "vector_flops": work("vector_flops"),
        "bytes_read": work("bytes_read"),
        "bytes_written": work("bytes_written"),
        "quality": per_signature(lambda signature: signature.cost.quality),
        "seconds": measured(table.share),
        "own_seconds": measured(table.own),
        "floor": measured(np.where(costed, table.floor, np.nan)),
        "floor_high": measured(np.where(costed, table.floor_reach, np.nan)),
        "loss": measured(np.where(costed, table.loss, np.nan)),
        "bound": _array(BOUNDS, object)[table.bound],
        "start": measured(np.asarray([op.start_ns for op in ops], float) * 1e-9),
        "launches": indices.launches,
        "times": np.asarray([op.times for op in ops], np.int64),
        "kernels": _array(
            ("; ".join(plain(profile.kernels[kernel]) for kernel, _ in op.kernels) for op in ops), object
        ),
        "fused": _array(("; ".join(plain(signatures[part].name) for part in op.constituents) for op in ops), object),
        "counted_bytes_read": by_counters.read,
        "counted_bytes_written": by_counters.written,
        "counted_bytes_through_cache": by_counters.through_cache,
    }


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def _named(names: Iterable[str]) -> NDArray[Any]:
    return _array((plain(name) for name in names), object)


def _array(values: Iterable[object], kind: Any) -> NDArray[Any]:
    listed = list(values)
    array = np.empty(len(listed), kind)
    array[:] = listed
    return array
