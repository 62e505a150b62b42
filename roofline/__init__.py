"""roofline tells why a step of a model takes as long as it does.

The public names are loaded when they are first used, so that `import roofline` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from roofline.version import __version__

if TYPE_CHECKING:
    from roofline.analysis.analysis import Analysis, analyze
    from roofline.api.check import check
    from roofline.api.compare import compare
    from roofline.api.import_trace import import_trace
    from roofline.api.plot import plot
    from roofline.api.report import report
    from roofline.api.step_profiler import StepProfiler
    from roofline.api.whatif import whatif
    from roofline.core.cost import Cost
    from roofline.core.schema import Profile, load, save
    from roofline.core.step import Step, Workload, scope, step
    from roofline.costs.custom import formula
    from roofline.measuring.in_process import profile


#: The module of each public name.
_HOME = {
    "Analysis": "roofline.analysis.analysis",
    "Cost": "roofline.core.cost",
    "Profile": "roofline.core.schema",
    "Step": "roofline.core.step",
    "StepProfiler": "roofline.api.step_profiler",
    "Workload": "roofline.core.step",
    "analyze": "roofline.analysis.analysis",
    "check": "roofline.api.check",
    "compare": "roofline.api.compare",
    "formula": "roofline.costs.custom",
    "import_trace": "roofline.api.import_trace",
    "load": "roofline.core.schema",
    "plot": "roofline.api.plot",
    "profile": "roofline.measuring.in_process",
    "report": "roofline.api.report",
    "save": "roofline.core.schema",
    "scope": "roofline.core.step",
    "step": "roofline.core.step",
    "whatif": "roofline.api.whatif",
}

__all__ = [
    "Analysis",
    "Cost",
    "Profile",
    "Step",
    "StepProfiler",
    "Workload",
    "__version__",
    "analyze",
    "check",
    "compare",
    "formula",
    "import_trace",
    "load",
    "plot",
    "profile",
    "report",
    "save",
    "scope",
    "step",
    "whatif",
]


#: Modules that are reached as `roofline.errors`, without an import of their own.
_MODULES = ("callbacks", "errors")


def load_ipython_extension(shell: Any) -> None:
    """Register `%%roofline` in a notebook: `%load_ext roofline` calls this."""
    from roofline.api.magics import load

    load(shell)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"roofline.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'roofline' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
