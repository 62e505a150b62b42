"""List all targets of `make fuzz`: what reads or renders data that come from anywhere.

What is left out is not from elsewhere: the files that a child process of this program writes for its parent in a folder
of its own (requests, results, execution traces of torch), those of /proc and /sys, and the models' geometries.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from typing import NamedTuple

from target import Target


class Code(NamedTuple):
    """Say where a target is defined, and which files and folders of roofline/ it is to reach.

    The edges of these are watched, and of these the coverage is stated.
    """

    definition: str
    reaches: tuple[str, ...]


_CHROME = ("traces/chrome", "traces/kineto/reader.py", "traces/kineto/events.py")
_LINKS = ("importing/calls.py", "traces/kineto/links.py", "traces/kineto/launches.py")
READERS = {
    "profile": Code("reading_profiles", ("core/schema.py", "core/validate.py", "core/decoding.py")),
    "ranks-manifest": Code("reading_profiles", ("ranks/folder.py",)),
    "ranks": Code("reading_folders", ("ranks", "renderers/ranks")),
    "sweep": Code("reading_folders", ("sweeping/grid.py", "renderers/sweep", "content/facts/sweep.py")),
    "sweep-plan": Code("reading_folders", ("sweeping/plan.py",)),
    "sweep-failure": Code("reading_folders", ("sweeping/folder.py",)),
    "sweep-attempts": Code("reading_folders", ("sweeping/folder.py",)),
    "device-toml": Code("reading_devices", ("devices/__init__.py", "core/device.py")),
    "device-json": Code("reading_devices", ("devices/__init__.py", "core/device.py")),
    "calibrations": Code("reading_devices", ("devices/calibration.py",)),
    "chrome-trace": Code("reading_traces", _CHROME),
    "chrome-bytes": Code("reading_traces", _CHROME),
    "chrome-packed": Code("reading_traces", ("traces/chrome/text.py",)),
    "kineto": Code("importing_traces", ("importing/from_kineto.py", "importing/gpu.py", "importing/cpu.py", *_LINKS)),
    "kineto-part": Code("importing_traces", ("importing/selection.py", "traces/kineto/marks.py")),
    "rocprof": Code("reading_traces", ("traces/rocprof",)),
    "rocprof-import": Code("importing_traces", ("traces/rocprof", "importing/from_kineto.py", "importing/rows.py")),
    "capture": Code("importing_traces", ("importing/capture.py", "importing/captured.py")),
    "xplane": Code("reading_programs", ("traces/xplane",)),
    "xplane-import": Code("importing_traces", ("importing/xplane.py", "importing/from_xplane.py", "xla/count.py")),
    "hlo": Code("reading_programs", ("xla/hlo",)),
    "limits": Code("reading_tables", ("regression/limits_file.py", "regression/limits.py")),
    "pyproject": Code("reading_options", ("cli/options/defaults.py",)),
    "counters": Code("reading_tables", ("counters/nsight_compute.py", "counters/joining.py")),
    "publication": Code("reading_tables", ("published/publication.py",)),
    "preset": Code("reading_tables", ("published/presets/preset.py",)),
    "annotation": Code("reading_tables", ("comparison/account/annotate.py", "comparison/account/annotation.py")),
    "cost-cache": Code("reading_caches", ("importing/work/cache.py",)),
    "own-step": Code("reading_caches", ("measuring/own_steps.py",)),
    "triton-source": Code("reading_caches", ("pytorch/inductor/triton_source.py",)),
}
_ONE, _TWO = "rendering_one", "rendering_two"
RENDERERS = {
    "show-text": Code(_ONE, ("renderers/text.py", "renderers/_screen.py", "content/facts")),
    "show-details": Code(_ONE, ("renderers/text.py", "renderers/_screen.py", "content")),
    "show-markdown": Code(_ONE, ("renderers/markdown.py", "renderers/_markdown.py", "content/tables.py")),
    "show-latex": Code(_ONE, ("renderers/latex.py", "renderers/_latex")),
    "show-csv": Code(_ONE, ("renderers/csv.py", "renderers/_csv", "content/tables.py")),
    "show-json": Code(_ONE, ("renderers/json.py", "content/json_document.py")),
    "show-perfetto": Code(_ONE, ("renderers/perfetto.py", "content/timeline.py")),
    "export": Code(_ONE, ("renderers/export",)),
    "notebook": Code(_ONE, ("renderers/notebook",)),
    "whatif": Code(_ONE, ("renderers/whatif", "projection")),
    "report": Code(_ONE, ("renderers/report",)),
    "random-profile": Code(_ONE, ("renderers/text.py", "analysis")),
    "compare-text": Code(_TWO, ("renderers/comparison/text.py", "comparison")),
    "compare-markdown": Code(_TWO, ("renderers/comparison/markdown.py", "content/comparison")),
    "compare-latex": Code(_TWO, ("renderers/comparison/latex.py", "content/comparison")),
    "compare-csv": Code(_TWO, ("renderers/comparison/csv.py", "comparison")),
    "compare-json": Code(_TWO, ("renderers/comparison/json.py", "comparison")),
    "check": Code(_TWO, ("renderers/check", "regression")),
    "wall": Code(_TWO, ("renderers/wall", "content/facts/wall.py")),
    "report-of-two": Code(_TWO, ("renderers/report/comparison.py", "renderers/report/waterfall.py")),
    "figure-bound": Code("drawing", ("renderers/figures/bound.py",)),
    "figure-breakdown": Code("drawing", ("renderers/figures/breakdown.py",)),
    "figure-devices": Code("drawing", ("renderers/figures/devices.py",)),
    "figure-memory": Code("drawing", ("renderers/figures/memory.py",)),
    "figure-roofline": Code("drawing", ("renderers/figures/roofline.py",)),
    "figure-speedup": Code("drawing", ("renderers/figures/speedup.py",)),
    "figure-timeline": Code("drawing", ("renderers/figures/timeline.py",)),
    "figure-wall": Code("drawing", ("renderers/figures/wall.py",)),
    "figure-waterfall": Code("drawing", ("renderers/figures/waterfall.py",)),
}
CODE = READERS | RENDERERS


def hide_frameworks() -> None:
    """Take frameworks for not installed: what reads or renders must not need one, and none must be loaded."""
    for name in ("torch", "jax", "jaxlib", "tensorflow", "keras", "tf_keras", "triton", "ray", "transformers"):
        sys.modules[name] = None  # type: ignore[assignment]


def load(name: str) -> Target:
    """Import the target of a name, with what it runs."""
    target: Target = import_module(CODE[name].definition).TARGETS[name]
    return target


def modules(names: Iterable[str]) -> list[str]:
    """Name the modules, and packages with all in them, that targets are to reach."""
    places = {
        f"roofline/{place}".removesuffix(".py").removesuffix("/__init__")
        for name in names
        for place in CODE[name].reaches
    }
    return sorted(place.replace("/", ".") for place in places)
