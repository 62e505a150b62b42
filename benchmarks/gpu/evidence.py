"""Two tables beside the profiles: the ceilings of a calibration, and bytes by rule beside bytes by counters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from roofline.devices import datasheet

CALIBRATIONS = ("short-1", "short-2", "full")
COUNTERS = ("ncu-infer-none", "ncu-infer-all", "ncu-train-none", "ncu-train-all")
COUNTERS += ("ncu-jax-infer-none", "ncu-jax-train-none")


def ceilings(folders: Sequence[Path]) -> list[str]:
    """Each ceiling by its calibrations, beside the datasheet's and the one that was measured another way."""
    found = {name: content for name in CALIBRATIONS if (content := _read(folders, name)) is not None}
    if not found:
        return []
    last: dict[str, Any] = list(found.values())[-1]
    sheet = datasheet(last["name"], last.get("memory"), last["kind"])
    other = (_read(folders, "independent") or {}).get("independent", {})
    lines = [
        "| ceiling | " + " | ".join(found) + " | another way | datasheet | of it |",
        "|---|" + "---:|" * (len(found) + 3),
    ]
    for name in last["ceilings"]:
        values = [(one["ceilings"].get(name) or {}).get("value") for one in found.values()]
        known = sheet.ceilings.get(name) if sheet is not None else None
        cells = [*(_number(value) for value in values), _number((other.get(name) or {}).get("best"))]
        ratio = values[-1] / known.value if known is not None and values[-1] else None
        cells += [_number(known.value if known is not None else None), "–" if ratio is None else f"{ratio:.3f}"]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    sizes = [_sizes(one.get("caches", ())) for one in found.values()]
    known = _sizes(msgspec.to_builtins(sheet.caches)) if sheet is not None else {}
    for level in sizes[-1]:
        cells = [*(_number(measured.get(level)) for measured in sizes), "–", _number(known.get(level)), "–"]
        lines.append(f"| usable size of {level} | " + " | ".join(cells) + " |")
    lines.append("")
    for cache in last.get("caches", ()):
        lines += [f"{cache['level']}: {cache['source']}.", ""]
    return lines


def _sizes(caches: Sequence[dict[str, Any]]) -> dict[str, float | None]:
    """The usable size [byte] of each level."""
    return {cache["level"]: cache["size"] for cache in caches}


def counted_bytes(folders: Sequence[Path]) -> list[str]:
    """Of each run under counters the megabytes of the joined ops: compulsory, cold by the rule, and as counted."""
    names = ("read", "written", "cold_read", "cold_written", "dram_read", "dram_written", "l2")
    lines = []
    for run in COUNTERS:
        if (content := _read(folders, run)) is not None:
            kernels = content["kernels"]
            cells = [f"{kernels['joined']} of {kernels['of the profile']} and {kernels['of the counters']}"]
            cells += [f"{content['all ops'][name] / 1e6:.1f}" for name in names]
            lines.append(f"| {run} | " + " | ".join(cells) + " |")
    if not lines:
        return []
    return ["| MB | kernels joined | " + " | ".join(names) + " |", "|---|---|" + "---:|" * len(names), *lines, ""]


def _read(folders: Sequence[Path], name: str) -> dict[str, Any] | None:
    """The JSON of that name in the last folder that has one."""
    for folder in reversed(folders):
        file = folder / f"{name}.json"
        if file.is_file() and file.stat().st_size:
            try:
                content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            except json.JSONDecodeError:  # of an item that was ended
                continue
            return content
    return None


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
