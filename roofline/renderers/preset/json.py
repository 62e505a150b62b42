"""Write JSON with stable fields (docs/published.md): seconds; absent is null. ASCII, so that no name acts."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from roofline.analysis.analysis import Analysis
from roofline.content.comparison import comparing
from roofline.content.facts import preset
from roofline.core.schema import Profile
from roofline.published.presets.averages import BackendMean, averages
from roofline.published.presets.compared import ComparedRow, PresetPair, PresetRows
from roofline.renderers.comparison import json as comparison
from roofline.renderers.preset import _sentences


def render(preset_rows: PresetRows) -> str:
    """Write the rows with the documents of their pairs, the profiles left out, and the means."""
    document = {
        "schema": 1,
        "preset": preset_rows.preset.name,
        "publication": preset_rows.publication.name,
        "statistic": preset_rows.preset.statistic,
        "rows": [_row(row) for row in preset_rows.compared],
        "alone": [
            {"task": lone_profile.row.task or None, **_what(lone_profile.profile)} for lone_profile in preset_rows.alone
        ],
        "of_no_row": [{**_what(stranger.profile), "why": stranger.reason} for stranger in preset_rows.strangers],
        "means": [_mean(average) for average in averages(preset_rows)],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _row(row: ComparedRow) -> dict[str, Any]:
    ranking = row.ranking
    return {
        "task": row.row.task or None,
        "text": " ".join(_sentences.paragraph(row)),
        "as_timed": row.as_timed,
        "runs": [_run(row, number, run) for number, run in enumerate(ranking.runs)],
        "fastest": ranking.fastest,
        "fastest_by_median": row.fastest_by_median,
        "matrix": {"speedup": [list(line) for line in ranking.speedups], "parity": [list(v) for v in ranking.verdicts]},
        "pairs": [_pair(pair) for pair in row.pairs],
    }


def _run(row: ComparedRow, number: int, run: Analysis) -> dict[str, Any]:
    return {
        "name": row.ranking.names[number],
        **_what(run.profile),
        "mean": row.besides[number].mean,
        "compared": row.means[number],
        "median": run.wall,
        "with_preset": row.recorded[number],
        "preset": preset.document_of(row.besides[number]),
    }


def _what(profile: Profile) -> dict[str, Any]:
    return {
        "backend": profile.backend,
        "model": profile.model,
        "mode": profile.mode,
        "batch": profile.batch,
        "seq": profile.seq,
        "new_tokens": profile.new_tokens,
        "device": profile.device.name,
    }


def _pair(pair: PresetPair) -> dict[str, Any]:
    """Write A and B by their numbers; of runs that are not comparable, the reasons instead of factor and causes."""
    compared = pair.ranked.comparison
    ci95 = compared.speedup_ci95
    return {
        "a": pair.a,
        "b": pair.b,
        "factor": pair.factor if pair.comparable else None,
        "median_factor_ci95": list(ci95) if pair.comparable and ci95 is not None else None,
        "parity": msgspec.to_builtins(compared.parity),
        "warning": comparing.warning(pair.ranked) or None,
        "published": [
            {
                "hardware": figures.hardware,
                "a": figures.a,
                "b": figures.b,
                "ratio": figures.ratio,
                "same_device": figures.same_device,
                "same_step": figures.same_step,
                "citable": figures.citable,
            }
            for figures in pair.published
        ],
        "comparison": comparison.pair(pair.ranked) if pair.comparable else None,
    }


def _mean(average: BackendMean) -> dict[str, Any]:
    mean = average.mean
    return {
        "baseline": average.baseline,
        "backend": average.backend,
        "rows": mean.rows if mean else None,
        "arithmetic": mean.arithmetic if mean else None,
        "geometric": mean.geometric if mean else None,
        "left_out": {
            "not_comparable": average.not_comparable,
            "several_runs": average.several,
            "absent": average.absent,
        },
    }
