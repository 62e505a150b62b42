"""What a `Least`, the least time of counted work on a device, shows of itself."""

from __future__ import annotations

from typing import Any

from roofline.projection.least import Least
from roofline.renderers.notebook import _html
from roofline.renderers.whatif import _least


def text(found: Least) -> str:
    """As `roofline whatif` of a profile that was only counted."""
    return _least.render(found)


def html(found: Least) -> str:
    """The same."""
    return _html.page(_html.preformatted(text(found)))


def document(found: Least) -> dict[str, Any]:
    """The floor of the step, of each group and by bound [s], and how many ops have none."""
    return {
        "schema": 1,
        "there": {"device": found.there.name, "kind": found.there.kind},
        "floor": found.floor,
        "groups": dict(found.floors),
        "bounds": dict(found.bounds),
        "unknown": found.unknown,
    }


def columns(found: Least) -> dict[str, Any]:
    """The groups and their floors [s]."""
    return {
        "group": list(found.groups),
        "ops": [row.ops for row in found.groups.values()],
        "floor": list(found.floors.values()),
    }
