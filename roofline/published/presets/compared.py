"""Saved profiles of a preset, row by row: who is fastest by the publication's statistic, and what its table says of it.

A row here is a row of the preset with one size, batch, length and number of new tokens, on one device: what a claim of
the publication is about. Where the benchmark's columns have sizes of their own, these are one. The runs of one row are
ranked and explained as `compare` explains any others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from statistics import fmean

import msgspec

from roofline import published
from roofline.comparison.ranking import RankedPair, Ranking, check_timed, rank
from roofline.core.schema import Profile
from roofline.errors import InputError
from roofline.published import presets
from roofline.published.presets.beside import Beside, beside, size_of
from roofline.published.presets.preset import Preset, Row
from roofline.published.publication import Note, Publication


@dataclass(frozen=True, slots=True)
class PublishedPair:
    """Two columns of a row on one published machine [s]; of a column that was run several times, the mean of its runs.

    a, b: of the slower and the faster run here. same_device: whether both of ours ran on a device of that kind.
    same_step: whether both ran the step that was published. citable: whether somebody read all of the figures in a
    source that is named.
    """

    hardware: str
    a: float
    b: float
    same_device: bool
    same_step: bool
    citable: bool

    @property
    def ratio(self) -> float:
        """Return how many times as long A's column takes."""
        return self.a / self.b


@dataclass(frozen=True, slots=True)
class PresetPair:
    """A run and the fastest of its row: their numbers there, why they differ, and what is published of the two.

    factor: how many times as long A takes as B, by the publication's statistic.
    """

    a: int
    b: int
    factor: float
    ranked: RankedPair
    published: tuple[PublishedPair, ...]

    @property
    def comparable(self) -> bool:
        """Return whether parity lets anything be said of the two."""
        return self.ranked.comparison.parity.verdict != "not comparable"


@dataclass(frozen=True)
class ComparedRow:
    """The runs of a row, at least two; `ranking.fastest` is that by the publication's statistic.

    Of each run, in the order of `ranking.runs`: besides, what the preset has for it; recorded, whether it was measured
    with the preset; means, the publication's statistic [s]. as_timed: whether that is of what the benchmark timed, such
    as Keras's `fit`, which all of the runs then have; else it is of the bare steps.
    """

    row: Row
    ranking: Ranking
    besides: tuple[Beside, ...]
    recorded: tuple[bool, ...]
    means: tuple[float, ...]
    as_timed: bool

    @property
    def fastest_by_median(self) -> int:
        """Return the number of the run with the least median."""
        return min(range(len(self.means)), key=lambda number: self.ranking.runs[number].wall)

    @cached_property
    def pairs(self) -> tuple[PresetPair, ...]:
        """Pair each other run with the fastest, by the publication's statistic: the next fastest first."""
        best, *slower = self.ranking.order
        pairs = (
            PresetPair(
                number,
                best,
                self.means[number] / self.means[best],
                ranked,
                _published(self.besides[number], self.besides[best]),
            )
            for number, ranked in zip(slower, self.ranking.pairs, strict=True)
        )
        return tuple(sorted(pairs, key=lambda pair: pair.factor))

    @property
    def notes(self) -> tuple[Note, ...]:
        """Return the notes on the published figures that are shown."""
        shown = {number for pair in self.pairs if pair.published for number in (pair.a, pair.b)}
        return tuple(dict.fromkeys(note for number in sorted(shown) for note in self.besides[number].notes))

    def of(self, backend: str) -> list[int]:
        """Return the numbers of a backend's runs."""
        return [number for number, run in enumerate(self.ranking.runs) if run.profile.backend == backend]


@dataclass(frozen=True, slots=True)
class Alone:
    """A row with one profile, which has nothing to be compared with."""

    row: Row
    profile: Profile


@dataclass(frozen=True, slots=True)
class Stranger:
    """A profile that is of no row, and why."""

    profile: Profile
    reason: str


@dataclass(frozen=True, slots=True)
class PresetRows:
    """Profiles of a preset by its rows, in their order: those with two or more, those with one, and of no row."""

    preset: Preset
    publication: Publication
    compared: tuple[ComparedRow, ...]
    alone: tuple[Alone, ...]
    strangers: tuple[Stranger, ...]


def rows(name: str, profiles: Sequence[Profile]) -> PresetRows:
    """Group profiles by the rows of the preset `name` and compare those of each row.

    Raises InputError for a preset that is not known and for a profile without times of ops.
    """
    preset = presets.load(name)
    strangers, placed = [], []
    for profile in profiles:
        try:
            row = preset.find(profile.model, profile.mode, profile.device.kind, profile.batch)
        except InputError as error:
            strangers.append(Stranger(profile, str(error)))
            continue
        sizes = (profile.batch or 0, profile.seq or 0, profile.new_tokens or 0)
        placed.append(((preset.row.index(row), _size(preset, row, profile), *sizes, profile.device.name), profile))
    grouped: list[ComparedRow | Alone] = []
    for key, group in groupby(sorted(placed, key=lambda member: member[0]), key=lambda member: member[0]):
        runs = [profile for _, profile in group]
        row = preset.row[key[0]]
        grouped.append(Alone(row, runs[0]) if len(runs) == 1 else _compared(name, row, runs))
    return PresetRows(
        preset,
        published.load(preset.publication),
        tuple(member for member in grouped if isinstance(member, ComparedRow)),
        tuple(member for member in grouped if isinstance(member, Alone)),
        tuple(strangers),
    )


def _size(preset: Preset, row: Row, profile: Profile) -> str:
    """Return its size, "" for each that the benchmark ran in a row: its columns of BERT differ in the form of GELU."""
    columns = (*preset.column, None)
    ran = {preset.resolve(row, column, threads=None).size or "base" for column in columns}
    size = size_of(profile)
    return "" if size in ran else size


def _compared(name: str, row: Row, profiles: Sequence[Profile]) -> ComparedRow:
    for profile in profiles:
        check_timed(profile, profile.backend)
    candidates = [beside(msgspec.structs.replace(profile, preset=name)) for profile in profiles]
    preset_runs = tuple(run for run in candidates if run is not None)  # all: the row was found by the same rule
    timed = [time for run in preset_runs if (time := run.timed) is not None]
    as_timed = len(timed) == len(profiles) and any(run.api for run in preset_runs)
    means = tuple(timed if as_timed else (fmean(profile.wall.steps) for profile in profiles))
    return ComparedRow(
        row,
        rank(profiles, fastest=means.index(min(means))),
        preset_runs,
        tuple(profile.preset == name for profile in profiles),
        means,
        as_timed,
    )


def _published(a: Beside, b: Beside) -> tuple[PublishedPair, ...]:
    """Return the table's figures of both columns, machine by machine."""
    published_pairs = []
    for hardware in dict.fromkeys(figure.cell.hardware for figure in a.figures):
        sides = [[figure for figure in preset_run.figures if figure.cell.hardware == hardware] for preset_run in (a, b)]
        # Per step where both are known so; else of the whole run, which is the same work in both columns.
        whole_runs = any(figure.seconds is None for side in sides for figure in side)
        times = [[figure.cell.seconds if whole_runs else figure.seconds for figure in side] for side in sides]
        slower, faster = ([time for time in side if time] for side in times)
        if slower and faster:
            figures = [figure for side in sides for figure in side]
            published_pairs.append(
                PublishedPair(
                    hardware,
                    fmean(slower),
                    fmean(faster),
                    all(figure.measured_on for figure in figures),
                    a.same_step and b.same_step,
                    all(figure.cell.citable for figure in figures),
                )
            )
    return tuple(published_pairs)
