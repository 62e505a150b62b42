"""JSON with stable fields (docs/comparing.md): seconds; absent is null."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from roofline.analysis.analysis import Analysis
from roofline.comparison.causes.findings import Finding
from roofline.comparison.ranking import RankedPair, Ranking
from roofline.comparison.terms import Term
from roofline.renderers._document import document
from roofline.renderers.comparison import _comparing, _proofs


def render(ranking: Ranking) -> str:
    """Of two runs their pair; of more, the pairs with the fastest and the matrix. ASCII, so that no name acts."""
    if len(ranking.runs) == 2:
        found = pair(ranking.pairs[0])
    else:
        found = {
            "schema": 1,
            "runs": [_run(name, run) for name, run in zip(ranking.names, ranking.runs, strict=True)],
            "fastest": ranking.fastest,
            "matrix": {
                "names": list(ranking.names),
                "speedup": [list(row) for row in ranking.speedups],
                "parity": [list(row) for row in ranking.verdicts],
            },
            "pairs": [pair(each) for each in ranking.pairs],
        }
    return json.dumps(found, indent=2, allow_nan=False) + "\n"


def pair(told: RankedPair) -> dict[str, Any]:
    """One pair: wall_A - wall_B = sum(terms) + residual = sum(findings) + rest."""
    found = told.comparison
    return {
        "schema": 1,
        "verdict": f"{_comparing.verdict(told)} {_comparing.causes(told)}".rstrip(),
        "parity": msgspec.to_builtins(found.parity),
        "warning": _comparing.warning(told) or None,
        "runs": [_run(name, run) for name, run in zip(told.names, (found.a, found.b), strict=True)],
        "difference": found.difference,
        "ci95": None if told.comparison.ci95 is None else list(told.comparison.ci95),
        "resolved": told.comparison.resolved,
        "speedup": found.speedup,
        "findings": [_finding(finding) for finding in told.findings],
        "rest": told.rest,
        "proofs": None if told.proofs is None else _proofs.document(told.proofs),
        "terms": _terms(found.work.terms),
        "residual": found.work.residual,
        "kernel_terms": _terms(found.kernel.terms),
        "kernel_residual": found.kernel.residual,
    }


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


def _finding(finding: Finding) -> dict[str, Any]:
    parts = [
        {"phase": part.phase, "block": part.block, "class": part.op_class, "seconds": part.seconds}
        for part in finding.terms
    ]
    return {
        "rule": finding.rule,
        "seconds": finding.seconds,
        "ci95": None if finding.ci95 is None else list(finding.ci95),
        "label": finding.label,
        "text": finding.text,
        "advice": finding.advice,
        "terms": parts,
    }


def _run(name: str, run: Analysis) -> dict[str, Any]:
    """The document of `roofline show --format json`, and what the run is called here."""
    return {"name": name} | document(run)
