"""The models that roofline knows, and the geometry that all frameworks read.

`_geometry/<kind>/<model>.toml` holds the dimensions with their source, the defaults and the map from scopes to blocks;
`<framework>/<kind>/<model>.py` builds the model from it. A geometry that is `like` another one has all of it but the
dimensions that it gives. Nothing here imports a framework.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from roofline.core.step import Workload
from roofline.errors import InputError

_FOLDER = Path(__file__).parent / "_geometry"

# Scopes that steps open themselves, whatever the model and the framework.
STEP_BLOCKS = (("loss*", "loss"), ("optimizer*", "optimizer"), ("input*", "input"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """What is fixed about a model before a framework is chosen.

    name: as the user types it ("bert-layer").
    title, source: one line each; the source says where the dimensions were published.
    takes: which of "batch", "seq", "layers" and "size" mean something for this model.
    sizes: dimensions by size: {"tiny": {"layers": 2, ...}, "base": {...}}. Every model has "published", which is "base"
        by the name that benchmarks give it, and every model with layers "one-layer", "base" with one of them: full
        width on a small machine.
    defaults: [device kind][mode] -> {"batch": ..., "seq": ...}, where the model has them.
    modes: what a step of this model can be.
    blocks: by framework, (scope pattern, block) pairs for `fnmatch`, first match wins.
    """

    name: str
    title: str
    source: str
    takes: frozenset[str]
    sizes: Mapping[str, Mapping[str, Any]]
    defaults: Mapping[str, Mapping[str, Mapping[str, int]]]
    modes: tuple[str, ...]
    blocks: Mapping[str, tuple[tuple[str, str], ...]]


@cache
def geometry(name: str) -> Geometry:
    """The geometry of model `name`. Raises InputError for an unknown name."""
    known = {file.stem.replace("_", "-"): file for file in _FOLDER.glob("*/*.toml")}
    if name not in known:
        raise InputError(f"There is no model called {name!r}; there are: {', '.join(sorted(known))}.")
    path = known[name]
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    if "like" in table:
        return _like(geometry(table["like"]), path.stem.replace("_", "-"), table)
    return Geometry(
        name=path.stem.replace("_", "-"),
        title=table["title"],
        source=table["source"],
        takes=frozenset(table["takes"]),
        sizes=_with_derived(table["sizes"], frozenset(table["takes"])),
        defaults=table["defaults"],
        modes=tuple(table["defaults"]["cpu"]),
        blocks={
            framework: (*STEP_BLOCKS, *((row["scope"], row["block"]) for row in rows))
            for framework, rows in table["blocks"].items()
        },
    )


def _like(model: Geometry, name: str, table: Mapping[str, Any]) -> Geometry:
    """`model` under another name, with the dimensions in which it differs, size by size."""
    given = {size: {**model.sizes[size], **differing} for size, differing in table["sizes"].items()}
    return replace(
        model,
        name=name,
        title=table["title"],
        source=table["source"],
        sizes=_with_derived(given, model.takes),
    )


def _with_derived(given: Mapping[str, Mapping[str, Any]], takes: frozenset[str]) -> dict[str, Mapping[str, Any]]:
    """The sizes that are written down, and those that follow from "base"."""
    base = given["base"]
    return {**given, "published": base, **({"one-layer": {**base, "layers": 1}} if "layers" in takes else {})}


def dimensions(workload: Workload) -> dict[str, Any]:
    """The dimensions that `workload` asks for: those of its size, with `batch`, `seq` and `layers` resolved.

    "batch", "seq" and "layers" are in the result only where the model has them, "new_tokens" only in mode generate.
    Raises InputError, with the cure, for what the model cannot be or does not have.
    """
    model = geometry(workload.model)
    _refuse_foreign_options(workload, model)
    if workload.size not in model.sizes:
        raise InputError(
            f"{model.name} has no size {workload.size!r}: use --size with one of {', '.join(model.sizes)}."
        )
    if workload.mode not in model.modes:
        raise InputError(
            f"{model.name} has no mode {workload.mode!r} yet: use --mode with one of {', '.join(model.modes)}."
        )
    asked = {
        "batch": workload.batch,
        "seq": workload.seq,
        "new_tokens": workload.new_tokens,
        "layers": workload.layers,
    }
    kind = workload.device if workload.device in model.defaults else "cuda"  # other GPUs start as CUDA ones do
    dims = {**model.sizes[workload.size], **model.defaults[kind][workload.mode]}
    for option, value in asked.items():
        if value is None:
            continue
        if value < 1:
            raise InputError(f"--{option.replace('_', '-')} {value} is not possible: give at least 1.")
        dims[option] = value
    if workload.options.get("dropout") == "off":
        dims |= _without_dropout(model, dims)
    new = dims.get("new_tokens", 0)
    if "seq" in dims and dims["seq"] + new > dims.get("positions", dims["seq"] + new):
        most, behind = dims["positions"] - new, f" before {new} new ones" if new else ""
        raise InputError(
            f"{model.name} has positions for {dims['positions']} tokens: "
            f"use --seq {most} or less{behind}, not {dims['seq']}."
            if most > 0
            else f"{model.name} has positions for {dims['positions']} tokens: use fewer --new-tokens than {new}."
        )
    return dims


def _without_dropout(model: Geometry, dims: Mapping[str, Any]) -> dict[str, float]:
    """The rates of the model's dropouts, all 0. Raises InputError for a model that has none."""
    rates = [name for name in dims if name == "dropout" or name.endswith("_dropout")]
    if not rates:
        raise InputError(f"{model.name} has no dropout: leave dropout=off out.")
    return dict.fromkeys(rates, 0.0)


def _refuse_foreign_options(workload: Workload, model: Geometry) -> None:
    """Raises InputError for an option that means nothing for `model`."""
    for option, thing in (("batch", "batch"), ("seq", "sequence"), ("layers", "number of layers to choose")):
        if getattr(workload, option) is not None and option not in model.takes:
            raise InputError(f"{model.name} has no {thing}: leave --{option} out.")
