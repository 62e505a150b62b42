"""Write JSON with stable fields (docs/whatif.md): seconds per step."""

from __future__ import annotations

import json
from typing import Any

from roofline.projection.project import Row, WhatIf


def render(whatif: WhatIf) -> str:
    """Write the step here and there, by group, and the basis of the projection."""
    profile = whatif.here.profile
    fitted = whatif.fit
    document = {
        "schema": 1,
        "model": profile.model,
        "backend": profile.backend,
        "mode": profile.mode,
        "batch": profile.batch,
        "seq": profile.seq,
        "here": {"device": whatif.here.device.name, "kind": whatif.here.device.kind, "wall": whatif.here.wall},
        "there": {"device": whatif.there.name, "kind": whatif.there.kind},
        "seconds": whatif.seconds,
        "range": list(whatif.interval),
        "compared": whatif.compared,
        "speedup": whatif.speedup,
        "gap": whatif.gap,
        "floor": whatif.total.floor,
        "not_carried": whatif.total.not_carried,
        "assumed": whatif.total.assumed,
        "starting": whatif.starting,
        "hidden": whatif.hidden,
        "cached": whatif.cached,
        "rebound": whatif.rebound,
        "kernels": whatif.kernels,
        "groups": {name: _row(row) for name, row in whatif.groups.items()},
        "unknown": [
            {
                "reason": unknown_work.reason,
                "ops": unknown_work.ops,
                "seconds": unknown_work.seconds,
                "most": unknown_work.longest,
                "assumed": unknown_work.assumed,
                "hidden": unknown_work.hidden,
            }
            for unknown_work in whatif.unknown
        ],
        "missing_ceilings": list(whatif.missing),
        "left_out_ceilings": list(whatif.left_out),
        "kept_launch_floors": list(whatif.kept),
        "caches": whatif.caches,
        "measured_against_datasheet": whatif.sheet,
        "fits_memory": fitted.fits,
        "memory": {
            "peak": fitted.use.peak,
            "at_least": fitted.use.at_least,
            "parts": dict(fitted.use.parts),
            "fixed": fitted.fixed,
            "there": fitted.memory,
            "largest_batch": fitted.largest_batch,
        },
        "flags": list(whatif.here.flags),
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _row(row: Row) -> dict[str, Any]:
    return {
        "ops": row.ops,
        "here": row.measured,
        "there": row.projected,
        "range": list(row.interval),
        "floor": row.floor,
        "assumed": row.assumed,
        "not_carried": row.not_carried,
    }
