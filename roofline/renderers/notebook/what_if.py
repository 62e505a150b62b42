"""Show a `WhatIf`, a step carried to another device."""

from __future__ import annotations

import json
from typing import Any

from roofline.projection.project import WhatIf
from roofline.renderers import figures
from roofline.renderers.notebook import _html
from roofline.renderers.whatif import json as json_format
from roofline.renderers.whatif import text as text_format


def text(whatif: WhatIf) -> str:
    """Write the text of `roofline whatif`."""
    return text_format.render(whatif)


def html(whatif: WhatIf) -> str:
    """Write the text, and draw the step on both devices."""
    drawing = figures.render_projection(whatif, ".svg", 7.0)
    return _html.page(_html.preformatted(text(whatif)), _html.image(*drawing))


def document(whatif: WhatIf) -> dict[str, Any]:
    """Return the document of `roofline whatif --format json`."""
    document: dict[str, Any] = json.loads(json_format.render(whatif))
    return document


def columns(whatif: WhatIf) -> dict[str, Any]:
    """Return the groups: seconds here, there with range (low, high), by the ceilings alone, and those not carried."""
    rows = whatif.groups
    return {
        "group": list(rows),
        "ops": [row.ops for row in rows.values()],
        "here": [row.measured for row in rows.values()],
        "there": [row.projected for row in rows.values()],
        "low": [row.interval[0] for row in rows.values()],
        "high": [row.interval[1] for row in rows.values()],
        "floor": [row.floor for row in rows.values()],
        "not_carried": [row.not_carried for row in rows.values()],
    }
