"""roofline tells why a step of a model takes as long as it does.

The public names are loaded when they are first used, so that `import roofline` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roofline.core.analysis import Analysis, analyze
    from roofline.core.cost import Cost
    from roofline.core.profile import Profile, load, save
    from roofline.core.step import Step, Workload, scope
    from roofline.session import profile
    from roofline.traces.custom import formula

__version__ = "0.1.0"

_HOME = {
    "Analysis": "roofline.core.analysis",
    "Cost": "roofline.core.cost",
    "Profile": "roofline.core.profile",
    "Step": "roofline.core.step",
    "Workload": "roofline.core.step",
    "analyze": "roofline.core.analysis",
    "formula": "roofline.traces.custom",
    "load": "roofline.core.profile",
    "profile": "roofline.session",
    "save": "roofline.core.profile",
    "scope": "roofline.core.step",
}

__all__ = [
    "Analysis",
    "Cost",
    "Profile",
    "Step",
    "Workload",
    "analyze",
    "formula",
    "load",
    "profile",
    "save",
    "scope",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'roofline' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
