"""roofline tells why a step of a model takes as long as it does.

The public names are loaded when they are first used, so that `import roofline` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from roofline.version import __version__

if TYPE_CHECKING:
    from roofline.analysis.analysis import Analysis, analyze
    from roofline.core.cost import Cost
    from roofline.core.schema import Profile, load, save
    from roofline.core.step import Step, Workload, scope
    from roofline.costs.custom import formula
    from roofline.measuring.session import profile


_HOME = {
    "Analysis": "roofline.analysis.analysis",
    "Cost": "roofline.core.cost",
    "Profile": "roofline.core.schema",
    "Step": "roofline.core.step",
    "Workload": "roofline.core.step",
    "analyze": "roofline.analysis.analysis",
    "formula": "roofline.costs.custom",
    "load": "roofline.core.schema",
    "profile": "roofline.measuring.session",
    "save": "roofline.core.schema",
    "scope": "roofline.core.step",
}

__all__ = [
    "Analysis",
    "Cost",
    "Profile",
    "Step",
    "Workload",
    "__version__",
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
