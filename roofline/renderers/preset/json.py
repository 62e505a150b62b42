"""JSON with stable fields (docs/published.md): seconds; absent is null. ASCII, so that no name acts."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from roofline.analysis.analysis import Analysis
from roofline.core.schema import Profile
from roofline.published.presets.averages import BackendMean, averages
from roofline.published.presets.compared import ComparedRow, PresetPair, PresetRows
from roofline.renderers._facts import preset
from roofline.renderers.comparison import _comparing
from roofline.renderers.comparison import json as comparison
from roofline.renderers.preset import _told


def render(found: PresetRows) -> str:
    """The rows with the documents of their pairs, what was left out, and the means."""
    document = {
        "schema": 1,
        "preset": found.preset.name,
        "publication": found.publication.name,
        "statistic": found.preset.statistic,
        "rows": [_row(row) for row in found.compared],
        "alone": [{"task": each.row.task or None, **_what(each.profile)} for each in found.alone],
        "of_no_row": [{**_what(each.profile), "why": each.reason} for each in found.strangers],
        "means": [_mean(each) for each in averages(found)],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _row(row: ComparedRow) -> dict[str, Any]:
    ranking = row.ranking
    return {
        "task": row.row.task or None,
        "text": " ".join(_told.paragraph(row)),
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
    """A and B by their numbers; of runs that are not comparable no factor and no causes, but why."""
    found = pair.ranked.comparison
    ci95 = found.speedup_ci95
    return {
        "a": pair.a,
        "b": pair.b,
        "factor": pair.factor if pair.comparable else None,
        "median_factor_ci95": list(ci95) if pair.comparable and ci95 is not None else None,
        "parity": msgspec.to_builtins(found.parity),
        "warning": _comparing.warning(pair.ranked) or None,
        "published": [
            {
                "hardware": each.hardware,
                "a": each.a,
                "b": each.b,
                "ratio": each.ratio,
                "same_device": each.same_device,
                "same_step": each.same_step,
                "citable": each.citable,
            }
            for each in pair.published
        ],
        "comparison": comparison.pair(pair.ranked) if pair.comparable else None,
    }


def _mean(each: BackendMean) -> dict[str, Any]:
    mean = each.mean
    return {
        "baseline": each.baseline,
        "backend": each.backend,
        "rows": mean.rows if mean else None,
        "arithmetic": mean.arithmetic if mean else None,
        "geometric": mean.geometric if mean else None,
        "left_out": {"not_comparable": each.not_comparable, "several_runs": each.several, "absent": each.absent},
    }
