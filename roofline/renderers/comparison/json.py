"""JSON with stable fields (docs/comparing.md): seconds; absent is null."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from roofline.analysis.analysis import Analysis
from roofline.analysis.scope_names import label_scopes
from roofline.comparison.account.annotate import rule_of
from roofline.comparison.account.row import Row as AccountRow
from roofline.comparison.breakdown.breakdown import BLOCK, Breakdown
from roofline.comparison.breakdown.rows import Part, Row
from roofline.comparison.ranking import RankedPair, Ranking
from roofline.comparison.terms import Term
from roofline.content.comparison import broken_down, comparing
from roofline.content.comparison.account_rows import label
from roofline.content.json_document import document
from roofline.content.tables import TOP
from roofline.renderers.comparison import _proofs


def render(ranking: Ranking) -> str:
    """Write the pair of two runs; of more, the pairs with the fastest and the matrix. ASCII, so that no name acts."""
    if len(ranking.runs) == 2:
        document = pair(ranking.pairs[0])
    else:
        document = {
            "schema": 1,
            "runs": [_run(name, run) for name, run in zip(ranking.names, ranking.runs, strict=True)],
            "fastest": ranking.fastest,
            "matrix": {
                "names": list(ranking.names),
                "speedup": [list(row) for row in ranking.speedups],
                "parity": [list(row) for row in ranking.verdicts],
            },
            "pairs": [pair(ranked) for ranked in ranking.pairs],
        }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def pair(ranked: RankedPair) -> dict[str, Any]:
    """Return a pair: wall_A - wall_B = sum(account) = sum(terms) + residual = sum(findings) + rest."""
    comparison, named, head = ranked.comparison, ranked.findings, ranked.headline
    return {
        "schema": 1,
        "verdict": comparing.verdict(ranked),
        "settled": head.settled,
        "factor": head.factor,
        "factor_ci95": None if head.factor_ci95 is None else list(head.factor_ci95),
        "parity": msgspec.to_builtins(comparison.parity),
        "warning": comparing.warning(ranked) or None,
        "runs": [_run(name, run) for name, run in zip(ranked.names, (comparison.a, comparison.b), strict=True)],
        "difference": comparison.difference,
        "ci95": None if comparison.ci95 is None else list(comparison.ci95),
        "resolved": comparison.resolved,
        "speedup": comparison.speedup,
        "account": [_account_row(row) for row in ranked.account.rows],
        "findings": [_finding(row) for row in named],
        "smaller": [],
        "tendencies": [],
        "rest": comparison.difference - sum(row.seconds or 0.0 for row in named),
        "proofs": None if ranked.proofs is None else _proofs.document(ranked.proofs),
        "terms": _terms(comparison.work.terms),
        "residual": comparison.work.residual,
        "kernel_terms": _terms(comparison.kernel.terms),
        "kernel_residual": comparison.kernel.residual,
        "by": BLOCK if ranked.breakdown is None else ranked.breakdown.by,
        "breakdown": _rows(ranked, ranked.breakdown),
        "observations": _rows(ranked, ranked.observations, TOP),
        "unresolved": broken_down.unresolved(ranked) or None,
    }


def _account_row(row: AccountRow) -> dict[str, Any]:
    """Return a row of the account; of settings, a and b are null and each of ops is a setting with both its values."""
    fields: dict[str, Any] = msgspec.to_builtins(row)
    is_setting = row.kind == "setting"
    return {
        "kind": row.kind,
        "place": row.place or label_scopes(row.scopes) or None,
        "scopes": row.scopes,
        "phase": row.phase,
        "class": row.op_class,
        **{name: fields[name] for name in ("seconds", "ci95")},
        **{side: None if is_setting else fields[side] for side in ("a", "b")},
        "kernels": [
            {
                "ops": change.ops,
                **{side: {"kernels": change.kernels[n], "seconds": change.seconds[n]} for n, side in enumerate("ab")},
            }
            for change in row.kernels
        ],
        **{name: fields[name] for name in ("ops", "times", "upper", "annotations", "text")},
    }


def _rows(ranked: RankedPair, breakdown: Breakdown | None, limit: int | None = None) -> dict[str, Any] | None:
    """Return the ops by another key than phase and block: sum(rows) + rest + the gap's terms = wall_A - wall_B.

    limit: rows that are written, the largest first; None: all. The others are counted, and summed in rest.
    """
    if breakdown is None:
        return None
    grouped = () if limit is None else breakdown.rows[limit:]
    return {
        "by": breakdown.by,
        "why": broken_down.why(ranked) if breakdown is ranked.breakdown else "",
        "common": list(breakdown.common),
        "seconds": breakdown.seconds,
        "rows": [_row(ranked, row) for row in breakdown.rows[:limit]],
        "rows_left_out": len(grouped),
        "rest": sum(row.seconds for row in grouped),
    }


def _row(ranked: RankedPair, row: Row) -> dict[str, Any]:
    split = row.split
    return {
        "label": row.label,
        "a": _part(row.parts[0]),
        "b": _part(row.parts[1]),
        "seconds": row.seconds,
        "ci95": None if row.ci95 is None else list(row.ci95),
        "ceilings": None if split is None else list(split.ceilings),
        "kernels": None if split is None else list(split.kernels),
        "other": None if split is None else split.unshared,
        "text": broken_down.sentence(ranked, row),
    }


def _part(part: Part | None) -> dict[str, Any] | None:
    if part is None:
        return None
    return {"ops": part.ops, "kernels": part.kernels, "seconds": part.seconds, "floor": list(part.floor)}


def _terms(terms: Iterable[Term]) -> list[dict[str, Any]]:
    return [
        {
            "phase": term.phase,
            "block": term.block,
            "class": term.op_class,
            "kind": term.kind,
            "seconds": term.seconds,
            "ci95": None if term.ci95 is None else list(term.ci95),
        }
        for term in terms
    ]


def _finding(row: AccountRow) -> dict[str, Any]:
    """Return a row of the account that has a name, as versions before the account wrote it."""
    return {
        "rule": rule_of(row),
        "seconds": row.seconds,
        "ci95": None if row.ci95 is None else list(row.ci95),
        "label": label(row),
        "text": row.text,
        "advice": row.advice,
        "terms": [{"phase": row.phase, "block": None, "class": row.op_class, "seconds": row.seconds}],
    }


def _run(name: str, run: Analysis) -> dict[str, Any]:
    """Return the document of `roofline show --format json`, and what the run is called here."""
    return {"name": name} | document(run)
