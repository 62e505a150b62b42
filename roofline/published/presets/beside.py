"""A measured profile beside the benchmark whose preset it ran: what differs, the statistic, the published figures."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from roofline import devices, published
from roofline.core.schema import Api, Profile
from roofline.errors import InputError
from roofline.published import presets
from roofline.published.presets.between import Between, between
from roofline.published.presets.preset import Asked, Column, Preset, Row
from roofline.published.publication import Cell, Note, Publication


@dataclass(frozen=True, slots=True)
class Difference:
    """What a profile did otherwise: its name, how it was here, how it was in the benchmark."""

    what: str
    here: str
    there: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A published figure; seconds: of one step, None where it is not known how many steps it stands for.

    measured_on: whether this profile is of that device.
    """

    cell: Cell
    seconds: float | None
    measured_on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """The benchmark that a profile reproduces, and how far it does.

    column: None where the benchmark has none for the backend. mean: of the plain steps [s], None where none was timed.
    asked_api: the function of a library that the benchmark timed there, None where that is the bare step. api: the same
    here, None where it was not measured; between: what lies between it and the bare step. figures: of that row and
    column in the published table. notes: what is known of them. device: the kind that the profile is of.
    """

    preset: Preset
    publication: Publication
    row: Row
    column: Column | None
    differences: tuple[Difference, ...]
    mean: float | None
    asked_api: str | None
    api: Api | None
    between: Between | None
    figures: tuple[Figure, ...]
    notes: tuple[Note, ...]
    device: str

    @property
    def same_step(self) -> bool:
        """Whether the step is the benchmark's: only how often it ran may be otherwise."""
        return all(difference.what == "steps" for difference in self.differences)

    @property
    def apart(self) -> tuple[str, ...]:
        """What of the benchmark a step here does otherwise, in sentences."""
        bare = (self.preset.core,) if self.asked_api and self.api is None and self.preset.core else ()
        return (*bare, *self.preset.apart_of(self.row, self.column, self.device))

    @property
    def apart_in_row(self) -> tuple[str, ...]:
        """Those of them that are not about every row of the preset."""
        return tuple(each for each in self.apart if each not in self.preset.everywhere)

    @property
    def api_mean(self) -> float | None:
        """The publication's statistic of the function that the benchmark timed [s]; None where it was not measured."""
        return None if self.api is None else fmean(self.api.steps)

    @property
    def timed(self) -> float | None:
        """The publication's statistic of what the benchmark timed, the bare step included where it timed that [s]."""
        return self.mean if self.column is not None and not self.asked_api else self.api_mean

    def ratio(self, figure: Figure) -> float | None:
        """The mean over the published time; None where step or device are others, or the time is not known."""
        return self._over(figure, self.mean)

    def api_ratio(self, figure: Figure) -> float | None:
        """The same of the function that the benchmark timed; None where it was not measured, too."""
        return self._over(figure, self.api_mean)

    def _over(self, figure: Figure, mean: float | None) -> float | None:
        if not self.same_step or not figure.measured_on or mean is None or not figure.seconds:
            return None
        return mean / figure.seconds


def beside(profile: Profile) -> Beside | None:
    """What a profile says of its preset; None where it has none that is known here."""
    if not profile.preset:
        return None
    try:
        preset = presets.load(profile.preset)
        row = preset.find(profile.model, profile.mode, profile.device.kind, profile.batch)
    except InputError:  # of another version of roofline, or changed by hand
        return None
    column = preset.of(profile.backend)
    threads = profile.environment.get("threads", "")
    asked = preset.resolve(row, column, threads=int(threads) if threads.isdecimal() else None, batch=profile.batch)
    publication = published.load(preset.publication)
    cells = _cells(publication, row, column, asked)
    api = profile.api if profile.api is not None and profile.api.name == asked.api else None
    return Beside(
        preset=preset,
        publication=publication,
        row=row,
        column=column,
        differences=_differences(profile, row, asked),
        mean=fmean(profile.wall.steps) if profile.profiled is not None and profile.wall.steps else None,
        asked_api=asked.api,
        api=api,
        between=None if api is None else between(api, profile.wall),
        figures=tuple(
            Figure(cell, _per_step(cell, row), _is_here(profile, publication, cell.hardware)) for cell in cells
        ),
        notes=tuple(dict.fromkeys(note for cell in cells for note in publication.notes_on(cell))),
        device=profile.device.kind,
    )


def _cells(publication: Publication, row: Row, column: Column | None, asked: Asked) -> tuple[Cell, ...]:
    """The figures of a row and a column in the version of the table that is shown first."""
    if column is None or not row.task:
        return ()
    return tuple(
        cell
        for cell in publication.cells
        if (cell.version, cell.task, cell.column) == (publication.versions[0], row.task, column.name)
        and cell.batch in ("", str(asked.batch))
        and cell.seconds is not None
    )


def _per_step(cell: Cell, row: Row) -> float | None:
    """The time of one step [s]. Of a figure of several epochs it is known where the batch is published."""
    if row.samples is None:
        return cell.seconds
    steps = row.passes(int(cell.batch) if cell.batch else None)
    return cell.seconds / steps if cell.seconds is not None and steps else None


def _is_here(profile: Profile, publication: Publication, hardware: str) -> bool:
    """Whether a profile was measured on a device of the table."""
    name = publication.devices.get(hardware)
    if profile.device.kind == "cpu":
        return name is None and hardware.casefold() in profile.device.name.casefold()
    sheet = devices.datasheet(profile.device.single_name, profile.device.single_memory, profile.device.kind)
    return name is not None and sheet is not None and sheet.name == devices.load(name).name


def size_of(profile: Profile) -> str:
    """The name of its size; `published` is another one of `base`."""
    return "base" if profile.size == "published" else profile.size


def _differences(profile: Profile, row: Row, asked: Asked) -> tuple[Difference, ...]:
    found = {
        "batch": (profile.batch, asked.batch, row.batches),
        "seq": (profile.seq, asked.seq, row.seqs),
        "new tokens": (profile.new_tokens, asked.new_tokens, ()),
        "layers": (profile.layers, None, ()),
        "size": (size_of(profile), asked.size or "base", ()),
        "precision": (profile.precision, asked.precision, ()),
        "input": (profile.switches.get("input"), asked.input, ()),
        "steps": (len(profile.wall.steps) or None, asked.steps, ()),
    }
    told = [
        Difference(what, str(here), "that of the size" if there is None else str(there))
        for what, (here, there, allowed) in found.items()
        if here is not None and here != there and here not in allowed and (there is not None or what == "layers")
    ]
    for name in dict.fromkeys((*asked.options, *profile.options)):
        here, there = profile.options.get(name, "default"), asked.options.get(name, "default")
        if here != there:
            told.append(Difference(name, here, there))
    told += [
        Difference(name, profile.switches[name], there)
        for name, there in asked.switches.items()
        if name in profile.switches and not _equal(profile.switches[name], there)
    ]
    return tuple(told)


def _equal(here: str, there: str) -> bool:
    """Whether two settings are the same: "0.0" and "0", "5e-05" and "0.00005" are."""
    try:
        return float(here) == float(there)
    except ValueError:
        return here == there
