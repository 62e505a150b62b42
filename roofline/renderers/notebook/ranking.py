"""Show a `Ranking`, the result of a comparison."""

from __future__ import annotations

import json
from typing import Any

from roofline.comparison.ranking import Ranking
from roofline.content.comparison.account_rows import label
from roofline.renderers.comparison import json as json_format
from roofline.renderers.comparison import text as text_format
from roofline.renderers.notebook import _html


def text(ranking: Ranking) -> str:
    """Write the text of `roofline compare`."""
    return text_format.render(ranking)


def html(ranking: Ranking) -> str:
    """Draw the figure of the difference, and write the text."""
    kind = "waterfall" if len(ranking.runs) == 2 else "speedup"
    return _html.page(_html.preformatted(text(ranking)), _html.figure(kind, ranking.runs))


def document(ranking: Ranking) -> dict[str, Any]:
    """Return the document of `roofline compare --format json`."""
    document: dict[str, Any] = json.loads(json_format.render(ranking))
    return document


def columns(ranking: Ranking) -> dict[str, Any]:
    """Return the rows of each account: of wall_a - wall_b, `seconds` with 95 % interval (low, high); largest first.

    Settings come before them, and have no seconds.
    """
    rows = [(pair, row) for pair in ranking.pairs for row in pair.account.rows]
    return {
        "a": [pair.names[0] for pair, _ in rows],
        "b": [pair.names[1] for pair, _ in rows],
        "kind": [row.kind for _, row in rows],
        "cause": [label(row) for _, row in rows],
        "seconds": [row.seconds for _, row in rows],
        "low": [row.ci95[0] if row.ci95 else None for _, row in rows],
        "high": [row.ci95[1] if row.ci95 else None for _, row in rows],
        "text": [row.text for _, row in rows],
        "advice": [row.advice for pair, row in rows],
    }
