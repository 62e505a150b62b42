"""The rows of presets that are measured, from the data of roofline/published: read without importing roofline, which
the driver installs only later."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
DATA = ROOT / "roofline" / "published"
#: Plain steps of a row take so long together, by the published time of one; no fewer than `FEW`, of slow ones 3 [s].
BUDGET, SLOW = 12.0, 3.0
MOST, FEW = 100, 10
#: Starting, importing, ceilings that are kept, writing [s].
START = 25.0
#: For each plain step, its time: with the function of the library, profiled steps, and plain ones behind them.
TIMES = 3.2
#: A row whose step nobody published [s]: steps of some ten milliseconds each.
UNKNOWN = 25.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One profile of a row and a column of a preset.

    seq: of a sample, None where it has none. largest: whether batch and seq are the largest that the benchmark ran, and
    not those of the preset. published: of one step there [s], None where no figure is of this row. needs: modules
    beside PyTorch, JAX and transformers. first: of its first step [s].
    """

    preset: str
    model: str
    mode: str
    backend: str
    batch: int
    seq: int | None
    largest: bool
    published: float | None
    needs: tuple[str, ...]
    first: float

    @property
    def name(self) -> str:
        """`keras-benchmark-bert-keras-jax-train-b32`."""
        largest = ["largest"] if self.largest else []
        return "-".join([self.preset, self.model, self.backend, self.mode, f"b{self.batch}", *largest])

    @property
    def steps(self) -> int | None:
        """How many are timed; None: as many as the preset says."""
        if self.published is None:
            return None
        return min(MOST, max(int(BUDGET / self.published), FEW if self.published < SLOW else 3))

    @property
    def seconds(self) -> float:
        """What its measurement takes, roughly, on a device that is as fast as the published one."""
        steps = UNKNOWN if self.published is None or self.steps is None else TIMES * self.steps * self.published
        return START + self.first + steps

    def words(self) -> tuple[str, ...]:
        """What follows `roofline`, but for sizes, device, steps and output."""
        return ("profile", self.model, "--backend", self.backend, "--mode", self.mode, "--preset", self.preset)


def rows() -> Iterator[Row]:
    """All of them, the most important first."""
    chosen = _read(HERE / "presets.toml")
    for wanted in chosen["preset"]:
        preset = _read(DATA / "presets" / f"{_stem(wanted['name'])}.toml")
        for largest in (False, True) if wanted.get("largest") else (False,):
            for name, backend in product(wanted["rows"], wanted["backends"]):
                for row in preset["row"]:
                    if name in (row.get("task"), row["model"]) and _has(chosen, preset, row, backend):
                        yield _row(chosen, wanted["name"], preset, row, backend, largest)


def _row(
    chosen: Mapping[str, Any], name: str, preset: Mapping[str, Any], row: Mapping[str, Any], backend: str, largest: bool
) -> Row:
    """largest: of the batches and lengths that the benchmark ran, not those that the preset takes by itself."""
    return Row(
        preset=name,
        model=row["model"],
        mode=row["mode"],
        backend=backend,
        batch=max(row["batches"]) if largest else row["batch"],
        seq=max(row["seqs"]) if largest else row.get("seq"),
        largest=largest,
        published=_published(preset["publication"], row, _column(preset, backend)),
        needs=_needs(chosen, backend, row["model"]),
        first=chosen["backend"][backend]["first"],
    )


def _needs(chosen: Mapping[str, Any], backend: str, model: str) -> tuple[str, ...]:
    known = chosen["backend"][backend]
    found = [*known.get("needs", ())]
    for one in chosen["made_of"]:
        if one["folder"] == known["models"] and model in one["models"]:
            found += one["needs"]
    return tuple(dict.fromkeys(found))


def _has(chosen: Mapping[str, Any], preset: Mapping[str, Any], row: Mapping[str, Any], backend: str) -> bool:
    """Whether the benchmark has that column of the row, and the backend the model."""
    absent = [name for each in row.get("absent", ()) for name in each["columns"]]
    folder = ROOT / "models" / chosen["backend"][backend]["models"]
    return _column(preset, backend) not in absent and any(folder.glob(f"*/{_stem(row['model'])}.py"))


def _column(preset: Mapping[str, Any], backend: str) -> str:
    """What the publication calls the column of a backend."""
    return next(str(column["name"]) for column in preset["column"] if column["backend"] == backend)


def _published(publication: str, row: Mapping[str, Any], column: str) -> float | None:
    """The published time of a step [s], in the version of the table that is shown first."""
    cells = _cells(publication)
    for cell in cells:
        place = (cell["version"], cell["task"], cell["column"])
        if place == (cells[0]["version"], row.get("task"), column) and cell["batch"] in ("", str(row.get("batch"))):
            return float(cell["value"]) * {"ms": 1e-3, "s": 1.0}[cell["unit"]] if cell["value"] else None
    return None


@cache
def _cells(publication: str) -> list[dict[str, str]]:
    with (DATA / f"{_stem(publication)}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def _read(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text(encoding="utf-8"))


def _stem(name: str) -> str:
    return name.replace("-", "_")
