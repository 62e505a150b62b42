"""Why a cell is empty: the reasons of absent.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from cell import Cell

from roofline import plugins
from roofline.recording.backend import load


def reason(cell: Cell) -> str | None:
    """The first reason that fits; None for a cell that runs. A model that is there lacks only modes that are named."""
    built = cell.model in plugins.names(load(cell.backend).models, sorted_by_kind=True)
    for entry in _entries():
        if built and "modes" not in entry:
            continue
        named = (cell.model, "models"), (cell.backend, "backends"), (cell.mode, "modes")
        if all({word, "*"} & set(entry.get(key, "*")) for word, key in named):
            return str(entry["reason"])
    return None if built else "there is no reason for this cell in benchmarks/cells/absent.toml"


@cache
def _entries() -> list[dict[str, Any]]:
    text = (Path(__file__).parent / "absent.toml").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = tomllib.loads(text)["absent"]
    return found
