"""Build the wall chart: shares of work and of busy time of matmul, normalisation and pointwise ops, run by run.

`chart` computes the facts once, for runs and for published tables of the same step; formats and figures place them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from roofline import units
from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.analysis.run_names import called
from roofline.analysis.totals import Total
from roofline.analysis.wall_chart import CLASSES, group_shares
from roofline.content import bounds, tables, wording
from roofline.content.tables import Column, amounts
from roofline.core.vocabulary import GROUP_OF, GROUPS, PHASES, Bound, Group
from roofline.published.class_shares import ClassShares, class_shares

#: What is less of the busy time is written as "<0.1 %".
_SEEN = 0.0005
#: The groups that shares are of together.
_SHARED = wording.conjunction(CLASSES)
#: From this share of a group's time on, its bound is said of all of it. By choice.
_ALL = 0.9


@dataclass(frozen=True, slots=True)
class Row:
    """A group of ops in a run.

    name: as it is shown. apart: whether it is none of the three. flops, bytes, time: shares of the three together;
    busy: of all busy time. slower: the FLOP/s of the matmuls over those of the group. seconds: busy time [s]. floor:
    the range of its least time [s]. attained: that range over its own time. bound: the one above most of its time;
    words: the limit of that time, and how close the ops under that bound come to their roofs. None is unknown or does
    not apply.
    """

    group: Group
    name: str
    apart: bool
    flops: float | None
    bytes: float | None
    time: float | None
    busy: float | None = None
    slower: float | None = None
    seconds: float | None = None
    floor: tuple[float, float] | None = None
    attained: tuple[float, float] | None = None
    bound: Bound | None = None
    words: str = units.UNKNOWN


@dataclass(frozen=True, slots=True)
class Run:
    """A run, or a published table next to runs.

    about: model and device, as far as the runs of a chart differ in them. analysis: of a run; table: of a publication.
    One of them is None.
    """

    name: str
    about: str
    rows: tuple[Row, ...]
    analysis: WorkAnalysis | None = None
    table: ClassShares | None = None

    @property
    def timed(self) -> bool:
        """Return whether its ops were timed here."""
        return isinstance(self.analysis, Analysis)

    @property
    def classes(self) -> tuple[Row, ...]:
        """Return the rows of matmul, normalisation and pointwise."""
        return tuple(row for row in self.rows if not row.apart)

    @property
    def shown(self) -> tuple[Row, ...]:
        """Return the rows to show: without groups apart whose share of the busy time would be written as 0."""
        return tuple(row for row in self.rows if not row.apart or row.busy is None or row.busy >= _SEEN)

    @property
    def apart(self) -> str:
        """Name the groups apart, each with its share of all busy time: "optimizer 19 %"."""
        rows = [row for row in self.shown if row.apart and row.busy is not None]
        return ", ".join(f"{row.name} {units.percent(row.busy, 0)}" for row in rows)

    @property
    def heading(self) -> str:
        """Write the name, and behind it the model and device that not all runs of the chart share."""
        return f"{self.name}: {self.about}" if self.about else self.name


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart. title: a sentence of the runs. subject: model and device, as far as all runs share them, "" for nothing.

    explanation: the kind of the shares. notes: on single runs. runs: those measured, in the order given; published: the
    tables next to them.
    """

    title: str
    subject: str
    explanation: str
    notes: tuple[str, ...]
    runs: tuple[Run, ...]
    published: tuple[Run, ...]

    def members(self, group: Group) -> str:
        """Name a group by the classes of the runs' ops in it: "normalisation: softmax, reduction".

        One with a name of its own keeps it.
        """
        classes = [name for name, group_of_class in GROUP_OF.items() if group_of_class == group]
        present = {name for run in self.runs if run.analysis is not None for name in run.analysis.by("class")}
        names = [name for name in classes if name in present]
        if group not in classes or not names:
            return group
        return ", ".join(names) if group in names else f"{group}: {', '.join(names)}"

    @property
    def about(self) -> str:
        """Name model and device, and the kind of the shares."""
        return " ".join(filter(None, (self.subject and f"{self.subject}.", self.explanation)))

    @property
    def every(self) -> tuple[Run, ...]:
        """Return the runs and then the published tables."""
        return (*self.runs, *self.published)


def chart(analyses: Sequence[WorkAnalysis]) -> Chart:
    """Work out the chart of one or more runs."""
    subjects, devices = list(map(wording.subject, analyses)), list(map(wording.device, analyses))
    common = [texts[0] for texts in (subjects, devices) if len(set(texts)) == 1]
    differing = [texts for texts in (subjects, devices) if len(set(texts)) > 1]
    runs = []
    for number, (name, analysis) in enumerate(zip(_names(analyses), analyses, strict=True)):
        about = [texts[number] for texts in differing]
        if devices in differing and wording.plain(analysis.profile.device.name) in name:
            about.pop()
        # A step that was only counted ran on no device.
        runs.append(Run(name, " on ".join(filter(None, about)), _rows(analysis), analysis=analysis))
    tables: dict[str, ClassShares] = {}
    for analysis in analyses:
        profile = analysis.profile
        tables |= {table.name: table for table in class_shares(profile.model, profile.mode)}
    published = tuple(
        Run(
            f"{table.name} ({table.stated})",
            f"{table.step}, {table.hardware}, published{'' if table.citable else ', unverified'}",
            tuple(_published_row(table, group) for group in CLASSES),
            table=table,
        )
        for table in tables.values()
    )
    subject = " on ".join(filter(None, common))
    return Chart(_title(runs), subject, _explanation(runs), _notes(runs), tuple(runs), published)


def _names(analyses: Sequence[WorkAnalysis]) -> list[str]:
    """Name the runs as everywhere, each with its arithmetic, on which the shares of time depend."""
    names = []
    for name, analysis in zip(called(analysis.profile for analysis in analyses), analyses, strict=True):
        arithmetic = f" ({analysis.precision or analysis.profile.precision})"
        names.append(wording.plain(name if arithmetic in name else name + arithmetic, 200))
    return names


def _rows(analysis: WorkAnalysis) -> tuple[Row, ...]:
    groups = np.asarray(analysis.labels("group"))
    rows = []
    for shares in group_shares(analysis):
        total = shares.total if isinstance(shares.total, Total) else None
        costed = total is not None and total.own_seconds > total.uncosted
        mostly_costed = total is not None and costed and total.mostly_costed
        rows.append(
            Row(
                shares.group,
                shares.group,
                shares.group not in CLASSES,
                shares.flops,
                shares.bytes,
                shares.time,
                busy=shares.busy,
                slower=shares.slower,
                seconds=None if total is None else total.seconds,
                floor=(total.floor, total.floor_reach) if total is not None and costed else None,
                attained=(total.attained or 0.0, total.attained_high or 0.0)
                if total is not None and mostly_costed
                else None,
                bound=None if total is None else total.bound,
                words=_bound_words(analysis, total, groups == shares.group)
                if total is not None and isinstance(analysis, Analysis)
                else units.UNKNOWN,
            )
        )
    return tuple(rows)


def _bound_words(analysis: Analysis, total: Total, among: bounds.Mask) -> str:
    """Say what limits most of a group's time, and how close the ops under that bound come to their roofs.

    Where other bounds hold more than a tenth of the time, its share stands in front, as in a verdict: "58 %
    memory-limited, at 14 to 18 % of cache bandwidth". among: the ops of the group, whose sums are `total`.
    """
    if not total.mostly_costed:
        return "unknown"
    name = total.bound
    times, upper = (split(analysis, among)[name] for split in (bounds.split, bounds.split_at_upper_end))
    ends = bounds.attained(times, upper)
    if ends is not None and name != "unknown" and total.near_ridge > total.seconds / 2:
        return f"near the ridge, {wording.closeness(analysis, name, *ends, among)}"
    limited = wording.bound(analysis, name, times, upper, among)
    share = total.bounds[name] / total.seconds if total.seconds > 0 else 1.0
    return limited if round(share, 2) >= _ALL or name == "unknown" else f"{units.percent(share, 0)} {limited}"


def _published_row(table: ClassShares, group: Group) -> Row:
    return Row(
        group,
        group,
        apart=False,
        flops=table.flops.get(group),
        bytes=None,
        time=table.time.get(group),
        slower=table.slower(group),
    )


# ---------------------------------------------------------------------------------------------------------- sentences


def _title(runs: Sequence[Run]) -> str:
    """Say which share of the work and of the time the matmuls of the runs are: "Matmuls are 99.8 % of ...".

    Where groups stand apart, the shares are not of the whole step, so that the title names what they are of.
    """
    matmuls = [row for run in runs for row in run.rows if row.group == "matmul"]
    flops = wording.range_of([row.flops for row in matmuls], 1)
    traffic = wording.range_of([row.bytes for row in matmuls], 0)
    time = wording.range_of([row.time for row in matmuls], 0)
    shares = [
        f"{share} of the {kind}"
        for share, kind in (
            (flops, _known(runs, "flops", "FLOPs")),
            ("" if time else traffic, _known(runs, "bytes", "bytes")),
            (time, "busy time"),
        )
        if share
    ]
    if not shares:
        return "Neither work nor time of the matmuls is known"
    apart = any(row.apart for run in runs for row in run.shown)
    return f"Matmuls are {wording.conjunction(shares)}{f' of {_SHARED} ops' if apart else ''}"


def _known(runs: Sequence[Run], work: str, words: str) -> str:
    """Name the work that shares are of: "known FLOPs", where a run has ops of unknown ones."""
    complete = all(_complete(run.analysis, work) for run in runs if run.analysis is not None)
    return words if complete else f"known {words}"


def _complete(analysis: WorkAnalysis, work: str) -> bool:
    if not isinstance(analysis, Analysis):
        return analysis.total.costed == analysis.total.ops
    share = analysis.coverage[work]
    return share is None or units.is_whole(share)


def _explanation(runs: Sequence[Run]) -> str:
    phases = {name for run in runs if run.analysis is not None for name in run.analysis.by("phase")}
    present = [phase for phase in PHASES if phase in phases and phase != "optimizer"]
    of = f" ({wording.conjunction(present)})" if present else ""
    names = {(GROUPS.index(row.group), row.name) for run in runs for row in run.shown if row.apart}
    separate_groups = [name for _, name in sorted(names)]
    sentence = f"Shares refer to the sum of {_SHARED} ops{of} and add up to 100 %"
    if not separate_groups:
        return f"{sentence}."
    return f"{sentence}; {wording.conjunction(separate_groups)} ops are shown separately."


def _notes(runs: Sequence[Run]) -> tuple[str, ...]:
    notes = []
    for run in runs:
        analysis = run.analysis
        if analysis is None:
            continue
        if not isinstance(analysis, Analysis):
            notes.append(f"{run.name} was counted and not timed: it has work and no times.")
            continue
        flops_known, bytes_known = analysis.coverage["flops"], analysis.coverage["bytes"]
        if any(share is not None and not units.is_whole(share) for share in (flops_known, bytes_known)):
            notes.append(
                f"{run.name}: FLOPs are known for {units.percent(flops_known)} of busy time and bytes for "
                f"{units.percent(bytes_known)}; shares of work refer to the known work."
            )
    why: dict[str, list[str]] = {}
    for run in runs:
        if isinstance(run.analysis, Analysis) and wording.is_range(run.analysis):
            why.setdefault(wording.ranges(run.analysis), []).append(run.name)
    notes += [f"{wording.conjunction(names)}: {reason}." for reason, names in why.items()]
    return tuple(notes)


# -------------------------------------------------------------------------------------------------------------- cells


def work_share(share: float | None) -> str:
    """Write a share of the FLOPs to a hundredth of a percent, as the smallest groups have less than a tenth."""
    return units.percent(share, 2).removesuffix(" %")


def relative_rate(slower: float | None) -> str:
    """Write a rate next to that of the matmuls, to two digits: 1/430; a higher one as 2.3x."""
    if slower is None or slower <= 0:
        return units.UNKNOWN
    if slower == 1:
        return "1"
    return f"1/{units.significant(float(f'{slower:.2g}'), 2)}" if slower > 1 else f"{units.significant(1 / slower, 2)}x"


def _minimum(row: Row, write: Callable[[float | None], str] = units.seconds) -> str:
    """Write the range of the least time; its lower end where the upper one is next to it."""
    if row.floor is None:
        return units.UNKNOWN
    low, high = row.floor
    if high <= 1.005 * low:
        return write(low)
    return units.seconds_between(low, high, write=write)


def _minima(rows: Sequence[Row]) -> list[str]:
    """Write least times in the unit of the longest time, next to which they stand."""
    write = units.seconds_unit(max((row.seconds or 0.0 for row in rows), default=0.0))
    return [_minimum(row, write) for row in rows]


#: The columns of the table behind the name of the group.
COLUMNS = (
    Column("FLOP\n%", lambda row: work_share(row.flops)),
    Column("bytes\n%", lambda row: tables.percent(row.bytes), rank=3),
    Column("busy\n%", lambda row: tables.percent(row.time)),
    Column("% of all\nbusy", lambda row: tables.percent(row.busy), rank=4),
    amounts("time", lambda row: row.seconds, "s", rank=6),
    Column("minimum", _minimum, rank=5, in_one_unit=_minima),
    Column("rate vs\nmatmul", lambda row: relative_rate(row.slower), rank=1),
    Column("bound", lambda row: row.words, number=False, rank=2),
)
#: The column of words: a cell of it may take several lines.
WORDS = next(number for number, column in enumerate(COLUMNS) if not column.number)


def in_lines(cells: Sequence[str], letters: int) -> list[list[str]]:
    """Break the words of a row into lines of so many letters; its other cells stand on the first."""
    lines = textwrap.wrap(cells[WORDS], letters) or [""]
    return [
        [words if number == WORDS else "" if place else cell for number, cell in enumerate(cells)]
        for place, words in enumerate(lines)
    ]
