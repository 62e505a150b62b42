"""What a `WhatIf`, a step carried to another device, shows of itself."""

from __future__ import annotations

import json
from typing import Any

from roofline.projection.carry import WhatIf
from roofline.renderers.notebook import _html
from roofline.renderers.whatif import json as json_format
from roofline.renderers.whatif import text as text_format


def text(found: WhatIf) -> str:
    """As `roofline whatif`."""
    return text_format.render(found)


def html(found: WhatIf) -> str:
    """The same."""
    return _html.page(_html.preformatted(text(found)))


def document(found: WhatIf) -> dict[str, Any]:
    """The document of `roofline whatif --format json`."""
    document: dict[str, Any] = json.loads(json_format.render(found))
    return document


def columns(found: WhatIf) -> dict[str, Any]:
    """The groups: seconds here, there with their range (low, high), by the ceilings alone, and what was not carried."""
    rows = found.groups
    return {
        "group": list(rows),
        "ops": [row.ops for row in rows.values()],
        "here": [row.here for row in rows.values()],
        "there": [row.there for row in rows.values()],
        "low": [row.interval[0] for row in rows.values()],
        "high": [row.interval[1] for row in rows.values()],
        "floor": [row.floor for row in rows.values()],
        "not_carried": [row.not_carried for row in rows.values()],
    }
