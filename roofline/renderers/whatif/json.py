"""JSON with stable fields (docs/whatif.md): seconds per step."""

from __future__ import annotations

import json
from typing import Any

from roofline.projection.carry import Row, WhatIf
from roofline.renderers.whatif._memory import fits


def render(found: WhatIf) -> str:
    """The step here and there, by group, and what the carrying rests on."""
    profile = found.here.profile
    document = {
        "schema": 1,
        "model": profile.model,
        "backend": profile.backend,
        "mode": profile.mode,
        "batch": profile.batch,
        "seq": profile.seq,
        "here": {"device": found.here.device.name, "kind": found.here.device.kind, "wall": found.here.wall},
        "there": {"device": found.there.name, "kind": found.there.kind},
        "seconds": found.seconds,
        "range": list(found.interval),
        "compared": found.compared,
        "speedup": found.speedup,
        "gap": found.gap,
        "floor": found.total.floor,
        "not_carried": found.total.not_carried,
        "assumed": found.total.assumed,
        "starting": found.starting,
        "hidden": found.hidden,
        "cached": found.cached,
        "rebound": found.rebound,
        "kernels": found.kernels,
        "groups": {name: _row(row) for name, row in found.groups.items()},
        "unknown": [
            {
                "reason": one.reason,
                "ops": one.ops,
                "seconds": one.seconds,
                "most": one.most,
                "assumed": one.assumed,
                "hidden": one.hidden,
            }
            for one in found.unknown
        ],
        "missing_ceilings": list(found.missing),
        "left_out_ceilings": list(found.left_out),
        "kept_launch_floors": list(found.kept),
        "caches": False,
        "measured_against_datasheet": found.sheet,
        "fits_memory": fits(found),
        "flags": list(found.here.flags),
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _row(row: Row) -> dict[str, Any]:
    return {
        "ops": row.ops,
        "here": row.here,
        "there": row.there,
        "range": list(row.interval),
        "floor": row.floor,
        "assumed": row.assumed,
        "not_carried": row.not_carried,
    }
