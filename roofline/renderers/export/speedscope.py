"""Write the representative step as a flame graph for speedscope.app: phases, the layers in them, and their ops.

Format: https://github.com/jlfwong/speedscope/wiki/Importing-from-custom-sources (file-format-schema.json, "sampled").
"""

from __future__ import annotations

import json

import numpy as np

from roofline.analysis.analysis import WorkAnalysis, timed
from roofline.content import wording

SUFFIX = ".speedscope.json"
WORDS = "phases, layers and ops as a flame graph (speedscope.app)"


def written(analysis: WorkAnalysis) -> bytes:
    """Weigh each op by its share of the step, in the order in which the ops began; the gap comes last.

    Raises InputError for a step that was counted and not timed.
    """
    analysis = timed(analysis)
    profile, share = analysis.profile, analysis.table.share
    order = np.argsort([op.start_ns for op in profile.ops], kind="stable")
    frames: dict[str, int] = {}

    def frame(name: str) -> int:
        return frames.setdefault(wording.plain(name) or "?", len(frames))

    samples, weights = [], []
    for row in order.tolist():
        op = profile.ops[row]
        path = [part for part in profile.scopes[op.scope].split("/") if part]
        samples.append(
            [frame(name) for name in (profile.phases[op.phase], *path, profile.signatures[op.signature].name)]
        )
        weights.append(float(share[row]))
    if analysis.gap_told:
        samples.append([frame(wording.gap_name(analysis))])
        weights.append(analysis.gap_told)
    document = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "roofline",
        "name": wording.subject(analysis),
        "shared": {"frames": [{"name": name} for name in frames]},
        "profiles": [
            {
                "type": "sampled",
                "name": wording.subject(analysis),
                "unit": "seconds",
                "startValue": 0,
                "endValue": sum(weights),
                "samples": samples,
                "weights": weights,
            }
        ],
    }
    return json.dumps(document, allow_nan=False).encode() + b"\n"
