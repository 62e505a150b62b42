"""Read what a publication printed, and its set-up, from `NAME.csv` and `NAME.toml`."""

from __future__ import annotations

import csv
import io
import tomllib
from pathlib import Path

import msgspec

from roofline.core import files
from roofline.core.decoding import UndecodableError, undecodable
from roofline.errors import InputError

#: A table of figures holds some ten kilobytes.
_LARGEST = 1 << 20
_SECONDS = {"s": 1.0, "ms": 1e-3}
#: What stands in a figure's status where nobody has read it in a source that can be cited.
_UNREAD = ("from memory", "not found", "place not recorded")


class Cell(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A published figure.

    version: of the table, where it was published more than once. task, column: its place, in the publication's words.
    batch, run: "" where there is none. value: None where the table has none; in `unit`: s, ms or %.
    status: "read" in the source, or that it was not.
    """

    version: str
    task: str
    batch: str
    column: str
    hardware: str
    run: str
    value: float | None
    unit: str
    note: str
    status: str
    source: str

    @property
    def seconds(self) -> float | None:
        """Return the figure as a time [s]; None where it is no time, or missing."""
        return None if self.value is None or self.unit not in _SECONDS else self.value * _SECONDS[self.unit]

    @property
    def citable(self) -> bool:
        """Return whether somebody read it in the source that is named."""
        return not any(word in self.status for word in _UNREAD)


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A task and what is known of it.

    columns: which ones do it so, all of them where empty; the first row that fits a cell holds.
    work: the name of a `Form`, or "" where its work is not counted; `why` says why not, or what the count leaves out.
    stated: the arithmetic that the publication says it used: fp32, bf16, fp16.
    """

    task: str
    columns: tuple[str, ...] = ()
    stated: str = ""
    work: str = ""
    why: str = ""


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """The work that a published figure stands for.

    flops: of contractions [FLOP]. bytes: what must at least be read [byte], None where that is not known. form: how
    FLOPs were counted, in words; bytes_form: how bytes were. assumed: what was taken for granted in counting, "" for
    nothing.
    """

    flops: float
    bytes: float | None = None
    form: str
    bytes_form: str = ""
    assumed: str = ""


class Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The work of a row, by its shapes: what the closed forms of benchmarks/published/forms make of them.

    flops: by batch, as published ("" where the work does not depend on it). Others: as of a `Work`.
    """

    name: str
    flops: dict[str, int]
    form: str
    bytes: int | None = None
    bytes_form: str = ""
    assumed: str = ""


class Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Something to know of some cells.

    kind: the page's own asterisk, or what is the matter: jit, eager, timing, precision, layout, batch, machine, unread.
    evidence: how it is known: read (in which code or page), inferred (from what was read), measured.
    tasks, columns, hardware: which cells, all of them where empty. uncounted: it is not known what they did. longer:
    how many times as long as the figure says a step took, where a clock is known to hold something else.
    """

    kind: str
    says: str
    evidence: str
    tasks: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    hardware: tuple[str, ...] = ()
    uncounted: bool = False
    longer: float = 1.0

    def on(self, cell: Cell) -> bool:
        """Return whether it is about this cell."""
        return (
            (not self.tasks or cell.task in self.tasks)
            and (not self.columns or cell.column in self.columns)
            and (not self.hardware or cell.hardware in self.hardware)
        )


class ClassTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of shares by class of operator, which the shares of a step measured here may stand beside.

    name: of the publication, short. step: what was run. stated: the arithmetic. models, modes: of the steps that it
    may stand beside. flops, time: the columns of the shares. tasks: the rows, by our groups of ops.
    """

    name: str
    step: str
    stated: str
    models: tuple[str, ...]
    modes: tuple[str, ...]
    flops: str
    time: str
    tasks: dict[str, str]


class Picture(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A panel of the picture of a table: the column that others are held against, and these; all where empty."""

    over: str
    columns: tuple[str, ...] = ()


class Publication(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A published benchmark: its figures, and what is known of how they came about.

    statistic: what one figure is of the measured times. baseline: the column that the others are compared with, ""
    where there is none. means: what an average over the rows can or cannot say. devices: from a hardware's name in the
    table to a device of roofline/devices. classes: its table of shares by class of operator, if it has one.
    """

    name: str
    title: str
    address: str
    setup: str
    statistic: str
    rows: tuple[Row, ...] = msgspec.field(name="row")
    cells: tuple[Cell, ...]
    forms: tuple[Form, ...] = msgspec.field(name="work", default=())
    notes: tuple[Note, ...] = msgspec.field(name="note", default=())
    devices: dict[str, str] = {}
    baseline: str = ""
    pictures: tuple[Picture, ...] = msgspec.field(name="picture", default=())
    means: str = ""
    classes: ClassTable | None = None

    @property
    def versions(self) -> tuple[str, ...]:
        """Return the versions of the table, the one that is shown first."""
        return tuple(dict.fromkeys(cell.version for cell in self.cells))

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns of the table."""
        return tuple(dict.fromkeys(cell.column for cell in self.cells))

    def row(self, cell: Cell) -> Row:
        """Return what is known of a cell's task."""
        return next(
            row for row in self.rows if row.task == cell.task and cell.column in (row.columns or (cell.column,))
        )

    def work(self, name: str, batch: str) -> Work:
        """Return the work of a row by its name; batch: as published. KeyError where it was not counted for that."""
        form = {form.name: form for form in self.forms}[name]
        flops, read = float(form.flops[batch]), None if form.bytes is None else float(form.bytes)
        return Work(flops=flops, bytes=read, form=form.form, bytes_form=form.bytes_form, assumed=form.assumed)

    def notes_on(self, cell: Cell) -> tuple[Note, ...]:
        """Return the notes on a cell."""
        return tuple(note for note in self.notes if note.on(cell))

    def find(self, task: str, column: str, *, batch: str = "", hardware: str = "", run: str = "") -> Cell:
        """Return the one cell of that place in the first version; "" fits anything. KeyError for none or several."""
        cells = [
            cell
            for cell in self.cells
            if (cell.version, cell.task, cell.column) == (self.versions[0], task, column)
            and batch in ("", cell.batch)
            and hardware in ("", cell.hardware)
            and run in ("", cell.run)
        ]
        if len(cells) != 1:
            raise KeyError(f"{len(cells)} cells are {task}, {column}, {batch}, {hardware}, {run} in {self.name}")
        return cells[0]


def read(folder: Path, name: str, names: tuple[str, ...]) -> Publication:
    """Read the publication `name`, one of `names`, from `folder`.

    Raises InputError for another name, and for files that hold none.
    """
    setup, table = (bytes_of(folder, name, names, suffix, "publication") for suffix in (".toml", ".csv"))
    try:
        with undecodable():
            lines = csv.DictReader(io.StringIO(table.decode("utf-8")), restkey="", strict=True)
            cells = [{**line, "value": line.get("value") or None} for line in lines]
            described = {**tomllib.loads(setup.decode("utf-8")), "name": name, "cells": cells}
            return msgspec.convert(described, Publication, strict=False)
    except (UndecodableError, csv.Error) as error:
        raise InputError(f"{name} in {folder} is no publication ({error}): install roofline again.") from None


def bytes_of(folder: Path, name: str, names: tuple[str, ...], suffix: str, kind: str) -> bytes:
    """Read a file of `name`, one of `names`, from `folder`. kind: what it is. Raises InputError for another name."""
    if name not in names:
        raise InputError(f"There is no {kind} called {name!r}; there are: {', '.join(names)}.")
    return files.read(folder / f"{name.replace('-', '_')}{suffix}", _LARGEST, f"a {kind}")
