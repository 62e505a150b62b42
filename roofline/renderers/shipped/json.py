"""Write JSON with stable fields (docs/json.md); absent is null. ASCII, so that no name acts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from roofline.analysis.analysis import analyze
from roofline.core.schema import Profile


def render(profiles: Mapping[str, Profile]) -> str:
    """List the profiles by name, each with the median time of a step [s]."""
    document = {"schema": 1, "profiles": [_row(name, profile) for name, profile in profiles.items()]}
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _row(name: str, profile: Profile) -> dict[str, Any]:
    return {
        "name": name,
        "model": profile.model,
        "size": profile.size,
        "mode": profile.mode,
        "batch": profile.batch,
        "seq": profile.seq,
        "precision": profile.precision,
        "backend": profile.backend,
        "options": dict(profile.options),
        "device": profile.device.name,
        "seconds": analyze(profile).wall,
    }
