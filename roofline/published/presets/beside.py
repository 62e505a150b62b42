"""A measured profile beside the benchmark whose preset it ran: what differs, the statistic, the published figures."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from roofline import devices, published
from roofline.core.numerals import whole
from roofline.core.schema import Api, Profile
from roofline.errors import InputError
from roofline.published import presets
from roofline.published.presets.between import Between, between
from roofline.published.presets.preset import Asked, Column, Preset, Row
from roofline.published.publication import Cell, Note, Publication


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of a profile from its benchmark: its name, how it was in the run, and in the benchmark."""

    setting: str
    run_value: str
    benchmark_value: str


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
        """Return whether the step is the benchmark's: only how often it ran may be otherwise."""
        return all(difference.setting == "steps" for difference in self.differences)

    @property
    def apart(self) -> tuple[str, ...]:
        """Say what of the benchmark a step here does otherwise."""
        bare = (self.preset.core,) if self.asked_api and self.api is None and self.preset.core else ()
        return (*bare, *self.preset.apart_of(self.row, self.column, self.device))

    @property
    def apart_in_row(self) -> tuple[str, ...]:
        """Return those of these sentences that are not about every row of the preset."""
        return tuple(sentence for sentence in self.apart if sentence not in self.preset.everywhere)

    @property
    def api_mean(self) -> float | None:
        """Return the publication's statistic of the function that the benchmark timed [s]; None where not measured."""
        return None if self.api is None else fmean(self.api.steps)

    @property
    def timed(self) -> float | None:
        """Return the publication's statistic of what the benchmark timed [s], which may be the bare step."""
        return self.mean if self.column is not None and not self.asked_api else self.api_mean

    def ratio(self, figure: Figure) -> float | None:
        """Return the mean over the published time; None where step or device are others, or the time is not known."""
        return self._over(figure, self.mean)

    def api_ratio(self, figure: Figure) -> float | None:
        """Return the mean of the function that the benchmark timed over its published time; None where not measured."""
        return self._over(figure, self.api_mean)

    def _over(self, figure: Figure, mean: float | None) -> float | None:
        if not self.same_step or not figure.measured_on or mean is None or not figure.seconds:
            return None
        return mean / figure.seconds


def beside(profile: Profile) -> Beside | None:
    """Compare a profile with its preset; None where it has none that is known here."""
    if not profile.preset:
        return None
    try:
        preset = presets.load(profile.preset)
        row = preset.find(profile.model, profile.mode, profile.device.kind, profile.batch)
    except InputError:  # of another version of roofline, or changed by hand
        return None
    column = preset.of(profile.backend)
    threads = whole(profile.environment.get("threads", ""))
    asked = preset.resolve(row, column, threads=threads, batch=profile.batch)
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
    """Return the figures of a row and a column in the version of the table that is shown first."""
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
    """Return the time of one step [s]. Of a figure of several epochs it is known where the batch is published."""
    if row.samples is None:
        return cell.seconds
    steps = row.passes(int(cell.batch) if cell.batch else None)
    return cell.seconds / steps if cell.seconds is not None and steps else None


def _is_here(profile: Profile, publication: Publication, hardware: str) -> bool:
    """Return whether a profile was measured on a device of the table."""
    name = publication.devices.get(hardware)
    if profile.device.kind == "cpu":
        return name is None and hardware.casefold() in profile.device.name.casefold()
    sheet = devices.datasheet(profile.device.single_name, profile.device.single_memory, profile.device.kind)
    return name is not None and sheet is not None and sheet.name == devices.load(name).name


def size_of(profile: Profile) -> str:
    """Name the size of a profile; `published` is another one of `base`."""
    return "base" if profile.size == "published" else profile.size


def _differences(profile: Profile, row: Row, asked: Asked) -> tuple[Difference, ...]:
    settings = {
        "batch": (profile.batch, asked.batch, row.batches),
        "seq": (profile.seq, asked.seq, row.seqs),
        "new tokens": (profile.new_tokens, asked.new_tokens, ()),
        "layers": (profile.layers, None, ()),
        "size": (size_of(profile), asked.size or "base", ()),
        "precision": (profile.precision, asked.precision, ()),
        "input": (profile.switches.get("input"), asked.input, ()),
        "steps": (len(profile.wall.steps) or None, asked.steps, ()),
    }
    differences = [
        Difference(setting, str(run_value), "that of the size" if benchmark_value is None else str(benchmark_value))
        for setting, (run_value, benchmark_value, allowed) in settings.items()
        if run_value is not None
        and run_value != benchmark_value
        and run_value not in allowed
        and (benchmark_value is not None or setting == "layers")
    ]
    for name in dict.fromkeys((*asked.options, *profile.options)):
        run_value, benchmark_value = profile.options.get(name, "default"), asked.options.get(name, "default")
        if run_value != benchmark_value:
            differences.append(Difference(name, run_value, benchmark_value))
    differences += [
        Difference(name, profile.switches[name], benchmark_value)
        for name, benchmark_value in asked.switches.items()
        if name in profile.switches and not _equal(profile.switches[name], benchmark_value)
    ]
    return tuple(differences)


def _equal(first: str, second: str) -> bool:
    """Return whether two settings are the same: "0.0" and "0", "5e-05" and "0.00005" are."""
    try:
        return float(first) == float(second)
    except ValueError:
        return first == second
