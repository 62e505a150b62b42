"""What a `Ranking`, the result of a comparison, shows of itself."""

from __future__ import annotations

import json
from typing import Any

from roofline.comparison.ranking import Ranking
from roofline.renderers.comparison import json as json_format
from roofline.renderers.comparison import text as text_format
from roofline.renderers.notebook import _html


def text(ranking: Ranking) -> str:
    """As `roofline compare`."""
    return text_format.render(ranking)


def html(ranking: Ranking) -> str:
    """The figure of the difference, and the text."""
    kind = "waterfall" if len(ranking.runs) == 2 else "speedup"
    return _html.page(_html.preformatted(text(ranking)), _html.figure(kind, ranking.runs))


def document(ranking: Ranking) -> dict[str, Any]:
    """The document of `roofline compare --format json`."""
    found: dict[str, Any] = json.loads(json_format.render(ranking))
    return found


def columns(ranking: Ranking) -> dict[str, Any]:
    """The findings: of wall_a - wall_b, `seconds` with their 95 % interval (low, high); largest first in each pair."""
    rows = [(pair.names, finding) for pair in ranking.pairs for finding in pair.findings]
    return {
        "a": [names[0] for names, _ in rows],
        "b": [names[1] for names, _ in rows],
        "cause": [finding.rule for _, finding in rows],
        "seconds": [finding.seconds for _, finding in rows],
        "low": [finding.ci95[0] if finding.ci95 else None for _, finding in rows],
        "high": [finding.ci95[1] if finding.ci95 else None for _, finding in rows],
        "text": [finding.text for _, finding in rows],
        "advice": [finding.advice for _, finding in rows],
    }
