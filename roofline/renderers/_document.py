"""The stable JSON of `roofline show --format json`: seconds, FLOP, bytes, per step; absent is null (docs/json.md)."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np

from roofline.analysis.analysis import Analysis
from roofline.analysis.caches.counted import counted
from roofline.analysis.host_cost import host_cost
from roofline.analysis.totals import Total
from roofline.core.schema import Counters, Imported
from roofline.core.vocabulary import BOUNDS, Bound
from roofline.renderers._facts import preset
from roofline.renderers._tables import Times, attained, split, split_at_upper_end

#: Rows of `--by op` and `--by scope` beyond this many are not written; the sums above them hold all ops.
MAX_ROWS = 5000


def total(value: Total, busy: float | None) -> dict[str, Any]:
    """One row of classes, groups, phases, blocks: the same fields everywhere.

    busy: time of the step in which any op runs [s]; None where nothing was timed, and the row then has no times.
    """
    costed = value.costed > 0  # work is known without a ceiling, too
    row = {
        "ops": value.ops,
        "kernels": value.kernels,
        "model_flops": value.model_flops if costed else None,
        "flops": value.flops if costed else None,
        "useful_flops": value.useful_flops if costed else None,
        "vector_flops": value.vector_flops if costed else None,
        "transcendentals": dict(value.functions),
        "int_ops": value.int_ops if costed else None,
        "bytes_read": value.bytes_read if costed else None,
        "bytes_written": value.bytes_written if costed else None,
        "counted_bytes_read": value.counted_read if value.counted else None,
        "counted_bytes_written": value.counted_written if value.counted else None,
        "uncounted_ops": value.uncounted if value.counted or value.uncounted else None,
        "seconds": value.seconds,
        "busy_share": value.seconds / busy if busy else None,
        "own_seconds": value.own_seconds,
        "overlap": value.overlap,
        "uncosted": value.uncosted,
        "floor": value.floor,
        "floor_high": value.floor_high,
        "floor_reach": value.floor_reach,
        "loss": value.loss,
        "divided_seconds": value.divided_seconds,
        "bounds": dict(value.bounds),
    }
    return row | dict.fromkeys(_TIMES) if busy is None else row


_STEP_TIMES = (
    *("busy", "gap", "gap_ci95", "idle_observed", "gap_causes", "host", "overlap", "uncosted", "inflation", "scale"),
    *("coverage", "quality", "bounds", "bounds_floor", "bounds_reach", "bounds_attained", "bounds_turning"),
    *("unattained", "near_ridge"),
    *("roofs", "mfu", "above_ceiling"),
)
_TIMES = (
    "seconds",
    "busy_share",
    "own_seconds",
    "overlap",
    "uncosted",
    "floor",
    "floor_high",
    "floor_reach",
    "loss",
    "divided_seconds",
    "bounds",
)


def document(analysis: Analysis, by: str | None = None) -> dict[str, Any]:
    """The whole document. `by` adds one more table: "ops" for "op", else the plural of the key."""
    profile, device, sums = analysis.profile, analysis.device, analysis.total
    steps = np.asarray(profile.wall.steps)
    interval = analysis.wall_interval
    timed, bounds, upper = analysis.timed, split(analysis), split_at_upper_end(analysis)
    busy = analysis.busy if timed else None
    single = float(np.median(profile.wall.single)) if profile.wall.single else None
    document: dict[str, Any] = {
        "schema": 1,
        "model": profile.model,
        "backend": profile.backend,
        "options": dict(profile.options),
        "mode": profile.mode,
        "batch": profile.batch,
        "seq": profile.seq,
        "size": profile.size,
        "precision": profile.precision,
        "command": profile.command,
        "versions": dict(profile.versions),
        "switches": dict(profile.switches),
        "device": {
            "name": device.name,
            "kind": device.kind,
            "ceilings": {
                name: {
                    "value": ceiling.value,
                    "source": ceiling.source,
                    "spread": ceiling.spread,
                    "date": ceiling.date,
                    "waited": ceiling.waited,
                    "flag": ceiling.flag,
                }
                for name, ceiling in device.ceilings.items()
            },
        },
        "wall": {
            "median": analysis.wall,
            "mean": float(steps.mean()),
            "p10": float(np.percentile(steps, 10)),
            "p90": float(np.percentile(steps, 90)),
            "steps": len(steps),
            "first": profile.wall.first,
            "single": single,
            "protocol": profile.wall.protocol,
            "processes": 1 + len(profile.wall.processes),
            "ci95": list(interval) if interval else None,
            "source": profile.wall.source,
        },
        "busy": analysis.busy,
        "gap": analysis.gap,
        "gap_ci95": [max(0.0, end) for end in analysis.gap_interval] if analysis.gap_interval else None,
        "idle_observed": analysis.idle,
        "gap_causes": analysis.gap_causes,
        "host": _host(analysis),
        "overlap": sums.overlap,
        "uncosted": sums.uncosted,
        "inflation": analysis.inflation,
        "scale": analysis.scale,
        "coverage": analysis.coverage,
        "quality": analysis.quality,
        "bounds": dict(sums.bounds),
        "bounds_floor": dict(sums.bounds_floor),
        "bounds_reach": {name: times.reach for name, times in bounds.items()},
        "bounds_attained": {name: _attained(name, times, upper[name]) for name, times in bounds.items()},
        "bounds_turning": {name: times.turning for name, times in bounds.items()},
        "unattained": dict(sums.unattained),
        "near_ridge": sums.near_ridge,
        "roofs": analysis.roofs,
        "mfu": analysis.mfu,
        "missing_ceilings": list(analysis.missing),
        "classes": {name: total(value, busy) for name, value in analysis.by("class").items()},
        "groups": {name: total(value, busy) for name, value in analysis.by("group").items()},
        "phases": {name: total(value, busy) for name, value in analysis.by("phase").items()},
        "blocks": {name: total(value, busy) for name, value in analysis.by("block").items()},
        "parameters": profile.parameters,
        "trainable": profile.trainable,
        "samples": profile.samples,
        "tokens": profile.tokens,
        "new_tokens": profile.new_tokens,
        "memory": {
            "peak": profile.memory.peak,
            "parameters": profile.memory.parameters,
            "optimizer": profile.memory.optimizer,
            "source": profile.memory.source,
        },
        "above_ceiling": analysis.above_ceiling,
        "flags": list(analysis.flags),
        "compilation": _compilation(analysis),
        "imported": msgspec.to_builtins(_whole(profile.imported)),
        "preset": preset.document(analysis),
        "counters": _counters(profile.counters),
    }
    if not timed:
        # One step was run to be counted, and nothing was timed.
        document |= dict.fromkeys(_STEP_TIMES)
        document["wall"] |= dict.fromkeys(("median", "mean", "p10", "p90", "ci95", "single"), None) | {"steps": 0}
    if by == "op":
        document["ops"] = _ops(analysis)
    elif by in ("scope", "kernel", "source"):
        document[f"{by}s"] = {name: total(value, busy) for name, value in list(analysis.by(by).items())[:MAX_ROWS]}
    return document


def _host(analysis: Analysis) -> dict[str, Any] | None:
    """What the host does in the gap; null where that is not known."""
    cost = host_cost(analysis)
    if cost is None:
        return None
    return {
        "ops": cost.dispatched.ops,
        "views": cost.dispatched.views,
        "reads": cost.dispatched.reads,
        "seconds_per_op": cost.each,
        "dispatch": cost.dispatch,
        "input": cost.input,
        "asleep": cost.asleep,
        "other": cost.other,
        "op_cost": {"alone": cost.alone, "in_layers": cost.in_layers},
    }


def _attained(name: Bound, times: Times, upper: Times) -> list[float] | None:
    """The range of the attained roof, as the verdict and the figure tell it; null where nothing is costed."""
    ends = None if name == "unknown" else attained(times, upper)
    return None if ends is None else list(ends)


def _compilation(analysis: Analysis) -> dict[str, Any] | None:
    """What a compiler did; every field is there, and null where it is not known. Times of ops as in the tables."""
    facts = analysis.profile.compilation
    if facts is None:
        return None
    return {
        "compiler": facts.compiler,
        "mode": facts.mode,
        "seconds": facts.seconds,
        "graphs": facts.graphs,
        "breaks": dict(facts.breaks),
        "recompilations": list(facts.recompilations),
        "guards": facts.guards,
        "eager": {
            phase: {"ops": ops, "seconds": seconds * analysis.scale} for phase, (ops, seconds) in facts.eager.items()
        },
        "opaque": facts.opaque,
        "notes": list(facts.notes),
    }


def _counters(counters: Counters | None) -> dict[str, Any] | None:
    """Where counted bytes come from; the bytes themselves are in the rows."""
    if counters is None:
        return None
    return {name: getattr(counters, name) for name in ("tool", "file", "kernels", "unjoined", "joined", "busy")}


def _whole(facts: Imported | None) -> dict[str, Any] | None:
    """What a trace says about itself; every field is there, and null where it is not known."""
    return None if facts is None else {name: getattr(facts, name) for name in facts.__struct_fields__}


def _ops(analysis: Analysis) -> list[dict[str, Any]]:
    """One row per op of the step, in the order of dispatch."""
    profile, table = analysis.profile, analysis.table
    # NaN is no number of JSON, and what was not counted is null.
    read, written, through_cache = (
        [None if math.isnan(amount) else amount for amount in column[:MAX_ROWS].tolist()] for column in counted(profile)
    )
    rows = []
    for row, op in enumerate(profile.ops[:MAX_ROWS]):
        signature = profile.signatures[op.signature]
        rows.append(
            {
                "name": signature.name,
                "kind": signature.kind,
                "class": analysis.op_class(op),
                "phase": profile.phases[op.phase],
                "scope": profile.scopes[op.scope],
                "block": profile.blocks[op.block],
                "shapes": signature.shapes,
                "dtype": signature.dtype,
                "precision": msgspec.to_builtins(signature.precision),
                "cost": msgspec.to_builtins(signature.cost),
                "seconds": float(table.share[row]),
                "own_seconds": float(table.own[row]),
                "floor": float(table.floor[row]),
                "floor_high": float(table.floor_high[row]),
                "floor_reach": float(table.floor_reach[row]),
                "loss": float(table.loss[row]),
                "uncosted": float(table.uncosted[row]),
                "bound": BOUNDS[int(table.bound[row])],
                "ceiling": table.ceiling[row] or None,
                "near_ridge": bool(table.near_ridge[row]),
                "above_ceiling": bool(table.above[row]),
                "other_algorithm": bool(table.exempt[row]),
                "cold_bytes": float(table.cold[row]),
                "counted_bytes_read": read[row],
                "counted_bytes_written": written[row],
                "counted_bytes_through_cache": through_cache[row],
                "kernels": [[profile.kernels[name], ns * 1e-9] for name, ns in op.kernels],
                "constituents": [
                    {
                        "name": part.signature.name,
                        "kind": part.signature.kind,
                        "class": part.op_class,
                        "phase": part.phase,
                        "scope": part.scope,
                        "block": part.block,
                        "shapes": part.signature.shapes,
                    }
                    for part in analysis.constituents(op)
                ],
            }
        )
    return rows
