"""A preset: which step a published benchmark ran for a model, a mode and a backend, read from `NAME.toml`."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from roofline.core.decoding import UndecodableError, from_toml
from roofline.errors import InputError
from roofline.published.publication import bytes_of


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """The settings that the benchmark asked for, by the names of the command line; None: nothing, or not known.

    options: of the backend. switches: what a step records of itself (`Profile.switches`), where there is no option.
    api: the function of a library that the benchmark timed, one of the backend's `apis`; "" or None: a loop around the
    bare step, or a mode that is such a function itself (generate). cached: whether its data lay in memory as batches.
    """

    batch: int | None = None
    seq: int | None = None
    new_tokens: int | None = None
    size: str | None = None
    precision: str | None = None
    input: str | None = None
    steps: int | None = None
    api: str | None = None
    cached: bool | None = None
    options: dict[str, str] = {}
    switches: dict[str, str] = {}


class Apart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A sentence on what of the benchmark a step here does otherwise, or what sets its columns apart.

    columns: of which; all of them where empty. device: the kind that a run is on for which it holds; "" for any.
    """

    says: str
    columns: tuple[str, ...] = ()
    device: str = ""

    def on(self, column: str | None, device: str) -> bool:
        """Return whether it is about a run of this column on a device of this kind."""
        return (not self.columns or column in self.columns) and self.device in ("", device)


class Column(Asked, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A column of the published table (`name`) and the backend that runs the same."""

    name: str
    backend: str


class But(Asked, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """The settings that are otherwise in some columns of a row."""

    columns: tuple[str, ...]


class Row(Asked, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A step of the benchmark.

    task: its name in the published table; "" where the table has no figure of its own for it.
    device: the kind that it is for; "" for any. batches, seqs: what else the benchmark ran, where it ran several.
    per_thread: samples per thread instead of a batch. samples, epochs: of the published figure, which gives its steps.
    apart: see `Preset`, of this row alone. absent: the columns that it does not have in the published table, and why.
    """

    model: str
    mode: str
    task: str = ""
    device: str = ""
    batches: tuple[int, ...] = ()
    seqs: tuple[int, ...] = ()
    per_thread: int | None = None
    samples: int | None = None
    epochs: int | None = None
    apart: tuple[str | Apart, ...] = ()
    absent: tuple[Apart, ...] = ()
    but: tuple[But, ...] = ()

    def passes(self, batch: int | None) -> int | None:
        """Return the steps of one published figure, where it stands for several epochs and not for one step."""
        if self.samples is None or self.epochs is None or batch is None:
            return None
        return self.epochs * math.ceil(self.samples / batch)


class Preset(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A benchmark and what it ran.

    publication: where its figures stand. statistic: how it made a figure of the times of its steps.
    asked: of every row. apart: what of it a step here does otherwise, in sentences, where they hold for some columns or
    kinds of devices only with these; core: the same of a bare step alone, where the benchmark timed a function of a
    library.
    """

    publication: str
    statistic: str
    row: tuple[Row, ...]
    column: tuple[Column, ...]
    asked: Asked = Asked()
    apart: tuple[str | Apart, ...] = ()
    core: str = ""
    name: str = ""

    @property
    def models(self) -> tuple[str, ...]:
        """Return the models that it has."""
        return tuple(sorted({row.model for row in self.row}))

    @property
    def everywhere(self) -> tuple[str, ...]:
        """Return the sentences that are about no row, column or device more than about any other."""
        return tuple(sentence for sentence in (self.core, *self.apart) if sentence and isinstance(sentence, str))

    def find(self, model: str, mode: str | None, device: str, batch: int | None = None) -> Row:
        """Return the row of a model; mode None: inference if the benchmark has it, else what it has.

        batch: as the user asked, which decides between rows that differ in it. Raises InputError where there is none.
        """
        rows = [row for row in self.row if row.model == model]
        if not rows:
            raise InputError(f"{self.name} did not run {model}; it has: {', '.join(self.models)}.")
        modes = tuple(dict.fromkeys(row.mode for row in rows))
        chosen = mode or ("infer" if "infer" in modes else modes[0])
        matching = [row for row in rows if row.mode == chosen and row.device in ("", device)]
        if not matching and chosen in modes:
            kinds = dict.fromkeys(row.device for row in rows if row.mode == chosen)
            raise InputError(
                f"{self.name} ran {chosen} of {model} on another device: use --device {' or '.join(kinds)}."
            )
        if not matching:
            raise InputError(f"{self.name} has no {chosen} of {model}: use --mode {' or '.join(modes)}.")
        return next((row for row in matching if batch is not None and row.batch == batch), matching[0])

    def of(self, backend: str) -> Column | None:
        """Return the column that a backend runs; None where the benchmark has none."""
        return next((column for column in self.column if column.backend == backend), None)

    def check_column(self, row: Row, column: Column | None, builds: Callable[[str], bool]) -> None:
        """Raise InputError, with the backends of the others, where the benchmark has no such column of this row.

        builds: whether a backend has a model of ours for the row.
        """
        for absence in row.absent:
            if column is not None and column.name in absence.columns:
                absent = {name for listed in row.absent for name in listed.columns}
                backends = [
                    listed.backend for listed in self.column if listed.name not in absent and builds(listed.backend)
                ]
                instead = " or ".join(filter(None, (", ".join(backends[:-1]), *backends[-1:])))
                raise InputError(
                    f"{self.name} has no column {column.name} for {row.task or row.model}, and {absence.says}: "
                    f"use {f'--backend {instead}' if instead else 'another model'}."
                )

    def apart_of(self, row: Row, column: Column | None, device: str) -> tuple[str, ...]:
        """Return the sentences on a run of that row and column on a device of that kind."""
        name = None if column is None else column.name
        every = [Apart(says=part) if isinstance(part, str) else part for part in (*self.apart, *row.apart)]
        return tuple(part.says for part in every if part.on(name, device))

    def resolve(self, row: Row, column: Column | None, *, threads: int | None, batch: int | None = None) -> Asked:
        """Return what the benchmark asked for in a row and a column; batch: the user's, from which the steps follow."""
        parts: list[Asked] = [self.asked, row, *([column] if column else [])]
        parts += [but for but in row.but if column and column.name in but.columns]
        settings: dict[str, Any] = {}
        for part in parts:
            for name in Asked.__struct_fields__:
                value = getattr(part, name)
                if isinstance(value, dict):
                    settings[name] = {**settings.get(name, {}), **value}
                elif value is not None:
                    settings[name] = value
        if row.per_thread is not None and threads is not None:
            settings["batch"] = row.per_thread * threads
        if passes := row.passes(batch or settings.get("batch")):
            settings["steps"] = passes
        if column is None:  # functions are those of the libraries that the columns are of
            settings.pop("api", None)
        return Asked(**{**settings, "api": settings.get("api") or None})


def read(folder: Path, name: str, names: tuple[str, ...]) -> Preset:
    """Read the preset `name`, one of `names`, from `folder`. Raises InputError for another name, and for no preset."""
    try:
        decoded = from_toml(bytes_of(folder, name, names, ".toml", "preset"), Preset)
    except UndecodableError as error:
        raise InputError(f"{name} in {folder} is no preset ({error}): install roofline again.") from None
    return msgspec.structs.replace(decoded, name=name)
