"""Write the stable JSON of `show --format json`: seconds, FLOP, bytes, per step; absent is null (docs/json.md)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np

from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.analysis.caches.counted import counted_on, counters_on
from roofline.analysis.host_cost import host_cost
from roofline.analysis.totals import OpTable, Total, WorkTotal
from roofline.analysis.waits import waits
from roofline.content.bounds import Times, attained, split, split_at_upper_end
from roofline.content.facts import preset
from roofline.core.schema import Counters, Imported, Profile
from roofline.core.vocabulary import BOUNDS, Bound
from roofline.memory.use import memory_use

#: Fields of a row that its work says, before and after its functions.
_WORK = ("model_flops", "flops", "useful_flops", "vector_flops"), ("int_ops", "bytes_read", "bytes_written")
#: Fields of a row that only times can say, in their order, and what hardware counters of the timed step say.
_SECONDS = "own_seconds overlap uncosted floor floor_high floor_reach loss divided_seconds".split()
_TIMES = ("seconds", "busy_share", *_SECONDS, "bounds")
_BY_COUNTERS = ("counted_bytes_read", "counted_bytes_written", "uncounted_ops")
#: The same of the step.
_STEP_TIMES = (
    *(
        "busy",
        "gap",
        "gap_ci95",
        "idle_observed",
        "gap_causes",
        "waits",
        "host",
        "overlap",
        "uncosted",
        "inflation",
        "scale",
    ),
    *("coverage", "quality", "bounds", "bounds_floor", "bounds_reach", "bounds_attained", "bounds_turning"),
    *("unattained", "near_ridge"),
    *("roofs", "mfu"),
)


def total(value: WorkTotal, analysis: WorkAnalysis) -> dict[str, Any]:
    """Write a row of classes, groups, phases or blocks: the same fields everywhere; times only where measured."""
    # Work is known without a ceiling, too.
    before, after = (_fields(value, names) if value.costed > 0 else dict.fromkeys(names) for names in _WORK)
    row = {"ops": value.ops, "kernels": value.kernels, **before, "transcendentals": dict(value.functions), **after}
    if not isinstance(value, Total):
        return row | dict.fromkeys((*_TIMES, *_BY_COUNTERS))
    return row | {
        "seconds": value.seconds,
        "busy_share": value.seconds / analysis.busy if analysis.busy else None,
        **_fields(value, _SECONDS),
        "bounds": dict(value.bounds),
        "counted_bytes_read": value.counted_read if value.counted else None,
        "counted_bytes_written": value.counted_written if value.counted else None,
        "uncounted_ops": None if analysis.profile.counters is None else value.uncounted,
    }


def document(analysis: WorkAnalysis, by: str | None = None, limit: int | None = None) -> dict[str, Any]:
    """Write the whole document. `by` adds one more table: "ops" for "op", else the plural of the key.

    limit: of that table only the first rows; None: all. How many are left out then is in `rows_left_out`.
    """
    profile, device = analysis.profile, analysis.device
    document: dict[str, Any] = {
        "schema": 1,
        **_fields(profile, "model backend options mode batch seq size precision command versions switches".split()),
        "device": {
            "name": device.name,
            "kind": device.kind,
            "ceilings_of": device.ceilings_of or None,
            "ceilings": {
                name: _fields(ceiling, "value source spread date waited flag".split())
                for name, ceiling in device.ceilings.items()
            },
        },
        "wall": _wall(analysis),
        **(_step_times(analysis) if isinstance(analysis, Analysis) else dict.fromkeys(_STEP_TIMES)),
        "missing_ceilings": list(analysis.missing),
        "classes": {name: total(value, analysis) for name, value in analysis.by("class").items()},
        "groups": {name: total(value, analysis) for name, value in analysis.by("group").items()},
        "phases": {name: total(value, analysis) for name, value in analysis.by("phase").items()},
        "blocks": {name: total(value, analysis) for name, value in analysis.by("block").items()},
        **_fields(profile, "parameters trainable devices samples tokens new_tokens".split()),
        "memory": _memory(profile),
        "energy": _energy(profile),
        "above_ceiling": analysis.above_ceiling,
        "flags": list(analysis.flags),
        "compilation": _compilation(analysis),
        "imported": msgspec.to_builtins(_whole(profile.imported)),
        "preset": preset.document(analysis),
        "counters": _counters(counters_on(profile, device)),
    }
    if by == "op":
        document["ops"] = _ops(analysis, limit)
        document["rows_left_out"] = len(profile.ops) - len(document["ops"])
    elif by in ("scope", "kernel", "source"):
        every = list(analysis.by(by).items())
        document[f"{by}s"] = {name: total(value, analysis) for name, value in every[:limit]}
        document["rows_left_out"] = len(every) - len(document[f"{by}s"])
    return document


def _memory(profile: Profile) -> dict[str, Any]:
    """Write the peak of the step, what is in use then and where that is; and what is known of the whole process."""
    use = memory_use(profile)
    reached: dict[str, int | str | None] = dict.fromkeys(("op", "name", "phase", "block", "scope"))
    if use.op is not None:
        op = profile.ops[use.op]
        reached = {
            "op": use.op,
            "name": profile.signatures[op.signature].name,
            "phase": profile.phases[op.phase],
            "block": profile.blocks[op.block],
            "scope": profile.scopes[op.scope],
        }
    return {
        "peak": use.peak,
        "source": use.source,
        "at_least": use.at_least,
        "reached": reached,
        "parts": dict(use.parts),
        **_fields(profile.memory, "parameters optimizer gradients resident".split()),
    }


def _energy(profile: Profile) -> dict[str, Any] | None:
    """Write the energy of a step and of a sample [J] with the evidence; null where it is not known."""
    energy = profile.energy
    if energy is None:
        return None
    fields = _fields(energy, "per_step uncertainty tick seconds steps alone".split())
    return {**fields, "per_sample": energy.per_sample(profile.samples)}


def _wall(analysis: WorkAnalysis) -> dict[str, Any]:
    """Write the time of plain steps; no number for a step that was only counted: it was run once, to be counted."""
    wall = analysis.profile.wall
    numbers: dict[str, Any] = dict.fromkeys(("median", "mean", "p10", "p90"))
    steps, first, single, interval = 0, None, None, None
    if analysis.wall is not None:
        times = np.asarray(wall.steps)
        numbers = {
            "median": analysis.wall,
            "mean": float(times.mean()),
            "p10": float(np.percentile(times, 10)),
            "p90": float(np.percentile(times, 90)),
        }
        steps, first, interval = len(times), wall.first, analysis.wall_interval
        single = float(np.median(wall.single)) if wall.single else None
    return numbers | {
        "steps": steps,
        "first": first,
        "single": single,
        "protocol": wall.protocol,
        "processes": 1 + len(wall.processes),
        "ci95": list(interval) if interval else None,
        "source": wall.source,
    }


def _step_times(analysis: Analysis) -> dict[str, Any]:
    sums, bounds, upper = analysis.total, split(analysis), split_at_upper_end(analysis)
    return {
        "busy": analysis.busy,
        "gap": analysis.gap,
        "gap_ci95": [max(0.0, end) for end in analysis.gap_interval] if analysis.gap_interval else None,
        "idle_observed": analysis.idle,
        "gap_causes": analysis.gap_causes,
        "waits": None
        if analysis.profile.waits is None
        else [
            {
                "op": wait.op,
                "name": analysis.profile.signatures[analysis.profile.ops[wait.op].signature].name,
                "cause": wait.cause,
                "of": wait.of or None,
                "seconds": wait.seconds,
            }
            for wait in waits(analysis.profile)
        ],
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
    }


def _host(analysis: Analysis) -> dict[str, Any] | None:
    """Write the host's activities in the gap; null where they are not known."""
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
        "other": cost.other_python,
        "op_cost": {"alone": cost.op_alone, "in_layers": cost.in_layers},
    }


def _attained(name: Bound, times: Times, upper: Times) -> list[float] | None:
    """Write the range of the attained roof, as the verdict and the figure give it; null where nothing is costed."""
    ends = None if name == "unknown" else attained(times, upper)
    return None if ends is None else list(ends)


def _compilation(analysis: WorkAnalysis) -> dict[str, Any] | None:
    """Write the compilation; every field is there, and null where it is not known. Times of ops as in the tables."""
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
            phase: {"ops": ops, "seconds": seconds * analysis.scale if isinstance(analysis, Analysis) else None}
            for phase, (ops, seconds) in facts.eager.items()
        },
        "opaque": facts.opaque,
        "notes": list(facts.notes),
    }


def _counters(counters: Counters | None) -> dict[str, Any] | None:
    """Write the source of counted bytes; the bytes themselves are in the rows."""
    if counters is None:
        return None
    return _fields(counters, "tool file kernels unjoined joined busy".split())


def _whole(facts: Imported | None) -> dict[str, Any] | None:
    """Write the facts of a trace; every field is there, and null where it is not known."""
    return None if facts is None else _fields(facts, facts.__struct_fields__)


def _fields(facts: object, names: Iterable[str]) -> dict[str, Any]:
    """Write fields under their own names."""
    return {name: getattr(facts, name) for name in names}


def _ops(analysis: WorkAnalysis, limit: int | None) -> list[dict[str, Any]]:
    """Write one row per op of the step, in the order of dispatch; limit: only the first ones."""
    profile, table, timed = analysis.profile, analysis.table, isinstance(analysis, Analysis)
    # NaN is no number of JSON, and what was not counted is null.
    read, written, through_cache = (
        [None if math.isnan(amount) else amount for amount in column[:limit].tolist()]
        for column in counted_on(profile, analysis.device)
    )
    rows = []
    for row, op in enumerate(profile.ops[:limit]):
        signature = profile.signatures[op.signature]
        rows.append(
            {
                "name": signature.name,
                "kind": signature.kind,
                "class": analysis.op_class(op),
                "phase": profile.phases[op.phase],
                "scope": profile.scopes[op.scope],
                "block": profile.blocks[op.block],
                "line": profile.source_line(op),
                "shapes": signature.shapes,
                "dtype": signature.dtype,
                "precision": msgspec.to_builtins(signature.precision),
                "cost": msgspec.to_builtins(signature.cost),
                **(_op_times(table, row) if timed else dict.fromkeys(_OP_TIMES)),
                "other_algorithm": bool(table.exempt[row]),
                "cold_bytes": float(table.cold[row]),
                "cold_bytes_high": float(table.cold_high[row]),
                "counted_bytes_read": read[row],
                "counted_bytes_written": written[row],
                "counted_bytes_through_cache": through_cache[row],
                "kernels": [[profile.kernels[name], ns * 1e-9 if timed else None] for name, ns in op.kernels],
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


#: Times of an op, by the columns that have them.
_OP_SECONDS = {
    **{"seconds": "share", "own_seconds": "own"},
    **{name: name for name in ("floor", "floor_high", "floor_reach", "loss", "uncosted")},
}
_OP_TIMES = (*_OP_SECONDS, "bound", "ceiling", "near_ridge", "above_ceiling")


def _op_times(table: OpTable, row: int) -> dict[str, Any]:
    return {name: float(getattr(table, column)[row]) for name, column in _OP_SECONDS.items()} | {
        "bound": BOUNDS[int(table.bound[row])],
        "ceiling": table.ceiling[row] or None,
        "near_ridge": bool(table.near_ridge[row]),
        "above_ceiling": bool(table.above[row]),
    }
