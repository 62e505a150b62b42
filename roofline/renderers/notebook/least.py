"""Show a `Least`, the least time of counted work on a device."""

from __future__ import annotations

from typing import Any

from roofline.projection.least import Least
from roofline.renderers.notebook import _html
from roofline.renderers.whatif import text as text_format


def text(least_time: Least) -> str:
    """Write the text of `roofline whatif` for a profile that was only counted."""
    return text_format.render(least_time)


def html(least_time: Least) -> str:
    """Write the same text as HTML."""
    return _html.page(_html.preformatted(text(least_time)))


def document(least_time: Least) -> dict[str, Any]:
    """Return the floor of the step, of each group and by bound [s], and the number of ops without one."""
    return {
        "schema": 1,
        "there": {"device": least_time.device.name, "kind": least_time.device.kind},
        "floor": least_time.floor,
        "groups": dict(least_time.floors),
        "bounds": dict(least_time.bounds),
        "unknown": least_time.unknown_ops,
    }


def columns(least_time: Least) -> dict[str, Any]:
    """Return the groups and their floors [s]."""
    return {
        "group": list(least_time.groups),
        "ops": [row.ops for row in least_time.groups.values()],
        "floor": list(least_time.floors.values()),
    }
