"""What was found in each cell, kept in docs/measured/cells.jsonl: hours of runs, each going on where one ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec
from cell import ROOT, Cell

FILE: Path = ROOT / "docs" / "measured" / "cells.jsonl"


class Found(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One cell: its line of the table by column, or the sentence with which it failed."""

    model: str
    backend: str
    mode: str
    size: str
    date: str
    device: str = ""
    versions: dict[str, str] = {}
    row: dict[str, str] = {}
    failed: str = ""

    @property
    def cell(self) -> Cell:
        """Which one it is of."""
        return Cell(self.model, self.backend, self.mode, self.size)


def load() -> dict[Cell, Found]:
    """What was found last of each cell."""
    if not FILE.exists():
        return {}
    found = (msgspec.json.decode(line, type=Found) for line in FILE.read_bytes().splitlines() if line.strip())
    return {one.cell: one for one in found}


def marks(found: Iterable[Found]) -> dict[str, str]:
    """What marks the rows of each machine in a table: nothing those of the one with most of them."""
    devices = [device for device, _ in Counter(one.device for one in found).most_common()]
    return dict(zip(devices, ["", *(f" [{number}]" for number in range(1, len(devices)))], strict=True))


def keep(found: Found) -> None:
    """Adds what was found of a cell, or puts it in the place of what was found before."""
    every = load() | {found.cell: found}
    order = sorted(every.values(), key=lambda one: (one.size, one.model, one.mode, one.backend))
    FILE.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in order))
