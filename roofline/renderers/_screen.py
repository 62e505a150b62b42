"""The first screen of a run: how long, what limits it, how far from the limit, which ops, what to try, and what to
doubt. It fits 24 lines; `--details` has all else.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.analysis.flags import clause
from roofline.analysis.generation import generation
from roofline.analysis.places import Place, places
from roofline.comparison.account.words import class_name
from roofline.content import bounds, tables, terminal, wording
from roofline.content.facts import compiling, doubts, energy, floors, host, notes
from roofline.content.facts.advice import advise
from roofline.content.facts.measured import rates
from roofline.content.facts.waits import most_in_function
from roofline.content.names.distinct import LEAST, distinct
from roofline.content.names.kernels import brief
from roofline.content.terminal import Page
from roofline.core.executor import executor_of
from roofline.core.schema import slug
from roofline.core.scopes import TOP
from roofline.core.vocabulary import PHASES, Bound
from roofline.units import NANOSECOND

#: Lines of a terminal that nobody resized, less two that say where the profile was saved and what comes next.
LINES = 22
#: Rows of places that stand there at least, however much is to be doubted; and at most.
_FEWEST, _MOST = 3, 6
#: In the place of the lines of the shortest table.
_LEAST_TABLE = ["heads", *["place"] * _FEWEST, "others"]
#: What is said where no advice is known.
_NOTHING = "nothing known for the first rows"
#: Letters of the longest bar.
_BAR = 40
#: What limits by overhead takes so many times the least of a launch.
_SMALL = "where small ops take "
_MINIMUM, _ABOVE, _OPEN = "█", "▓", "░"
#: Phases where there is no room for them.
_SHORT_PHASES = {"forward": "fwd", "backward": "bwd"}


def lines(analysis: Analysis, page: Page, limit: int | None = None) -> list[str]:
    """Return the lines of the screen. limit: places that are shown; None: as many as it has room for."""
    parts = [terminal.wrapped(_headline(analysis), page, "bold"), _time(analysis, page)]
    if wording.beyond(analysis):
        every_doubt = list(chain(*_doubts(doubts.reasons(analysis), page)))
        return _stacked([*parts, terminal.wrapped(wording.verdict(analysis), page), every_doubt])
    rows, head = ranked(analysis), [*parts, _bars(analysis, page)]
    sentences = _sentences(analysis, rows)
    # Those on ranges and on minima where they have room; the latter also where one screen has none in any case.
    for told in (sentences, sentences[:-1], sentences[:1], sentences[:-1]):
        parts = [*head, terminal.wrapped(" ".join(filter(None, told)), page)]
        tail = _tail(analysis, rows, list(chain(*parts)), page)
        if len(_stacked([list(chain(*parts)), _LEAST_TABLE, tail])) <= LINES:
            break
    most = limit if limit is not None else min(_MOST, len(rows))
    if LINES - len(_stacked([*parts, ["heads", "others"], tail])) < most:  # blank lines cost no place
        parts = [list(chain(*parts))]
    room = LINES - len(_stacked([*parts, ["heads", "others"], tail]))
    table = _places(analysis, rows, limit if limit is not None else min(_MOST, max(_FEWEST, room)), page)
    return _stacked([*parts, table, tail])


def _stacked(parts: Iterable[list[str]]) -> list[str]:
    """Put parts that have lines below each other, a blank line between them."""
    stacked: list[str] = []
    for part in filter(None, parts):
        stacked += ["", *part] if stacked else part
    return stacked


# ------------------------------------------------------------------------------------------------------------ headline


def _headline(analysis: Analysis) -> str:
    """Say what was run, and where: "bert · inference · batch 1 x 128 · fp32 · torch 2.13.0 · AMD EPYC, 2 threads"."""
    profile = analysis.profile
    parts = [
        *wording.subject_parts(profile),
        wording.arithmetic(analysis),
        wording.software(profile),
        wording.device(analysis),
    ]
    return " · ".join(filter(None, parts))


def _time(analysis: Analysis, page: Page) -> list[str]:
    """Write the time of a step with its interval, and rates; a line is broken between them."""
    profile, wall, interval = analysis.profile, analysis.wall, analysis.wall_interval
    spread = f"95 % CI {units.seconds_between(*interval)}, " if interval else ""
    facts = [f"{units.seconds(wall)} per {_step(analysis)}", f"({spread}n = {len(profile.wall.steps)})"]
    facts += ["profiler's overhead included"] if profile.wall.source == "profiled" else []
    facts += [f"{_rate(rate)} {unit}/s" for rate, unit in rates(analysis)]
    if analysis.mfu is not None:
        share, least = units.percent(analysis.mfu, 0), notes.least(analysis)
        if not (least and share.startswith("<")):  # at least next to nothing: it is not known
            facts.append(f"MFU {least}{share}")
    facts += energy.amounts(profile)
    generated = generation(analysis)
    if generated is not None and generated.passes:
        facts.append(f"{units.seconds(generated.decode / generated.passes)} per decode pass")
    lines = [f"  {facts[0]}"]
    for fact in facts[1:]:
        if len(lines[-1]) + 3 + len(fact) <= page.width:
            lines[-1] += f"   {fact}"
        else:
            lines.append(f"  {fact}")
    rule = wording.step_rule(profile)
    if len(lines[-1]) + 3 + len(rule) <= page.width:
        return [*lines[:-1], f"{lines[-1]}   {rule}".rstrip()]
    return [*lines, *textwrap.wrap(rule, page.width, initial_indent="  ", subsequent_indent="  ")]


def _step(analysis: Analysis) -> str:
    """Name what was timed."""
    return "generate call" if analysis.profile.mode == wording.GENERATES else "step"


def _rate(per_second: float) -> str:
    """Write a rate in three digits, or whole with thousands separators."""
    return units.significant(per_second) if per_second < 1000 else units.count(per_second)


# ---------------------------------------------------------------------------------------------------------------- bars


class Bar(NamedTuple):
    """A part of the step: its time and its minimum, as shares of the step, and how close it comes.

    bound: what limits it; None: no op ran. range: that which its words name; "" where they name none. longer: these
    words with more of its parts, where there is room; "" for no others.
    """

    name: str
    bound: Bound | None
    share: float
    minimum: float | None
    words: str
    range: str = ""
    longer: str = ""

    @property
    def label(self) -> str:
        """Return the words behind the bar, which say of which ops a time of launches is."""
        return f"small ops: {self.words}" if self.bound == "overhead" and self.minimum is not None else self.words

    def drawn(self, room: int) -> str:
        """Draw the bar in up to `room` letters for the whole step; a part too short for one has none."""
        length = round(room * self.share)
        if self.minimum is None:
            return _OPEN * length
        solid = min(length, round(room * self.minimum))
        return _MINIMUM * solid + _ABOVE * (length - solid)


def bars(analysis: Analysis) -> list[Bar]:
    """Return what limits the step, the longest part first; parts below half a percent are left out."""
    upper, wall = bounds.split_at_upper_end(analysis), analysis.wall
    drawn = []
    for name, times in bounds.split(analysis).items():
        ends = None if name == "unknown" else bounds.attained(times, upper[name])
        of_roof = _of_roof(analysis, name, ends) if ends else "no minimum known"
        minimum = times.closing.floor / wall if ends else None
        drawn.append(Bar(name, name, times.seconds / wall, minimum, of_roof, _range(analysis, name, ends)))
    idle_name = "GPU idle" if analysis.has_queue else "host"
    words, longer = host.gap_in_words(analysis, 1), host.gap_in_words(analysis)
    drawn.append(Bar(idle_name, None, (analysis.gap_told or 0.0) / wall, None, words, longer=longer))
    return sorted((bar for bar in drawn if bar.share >= 0.005), key=lambda bar: -bar.share)


def _range(analysis: Analysis, bound: Bound, ends: tuple[float, float] | None) -> str:
    """Write the range in which ops under one bound come to their roof; "" where its ends are written alike."""
    if ends is None or len({_of_roof(analysis, bound, (end, end)) for end in ends}) == 1:
        return ""
    return _of_roof(analysis, bound, ends).removeprefix("at ").partition(" of ")[0].partition(" times ")[0]


def _of_roof(analysis: Analysis, bound: Bound, ends: tuple[float, float]) -> str:
    """Say how close the ops under one bound come to their roof, of which they reach from one end to the other."""
    if bound == "overhead":
        return wording.over_launch_floor(*ends, f"least time of {'a launch' if analysis.has_queue else 'an op'}")
    counted = " (bytes counted)" if bound == "memory" and wording.bytes_are_counted(analysis) else ""
    return f"at {wording.between(*ends)} of its roof{counted}"


def _least_launch(analysis: Analysis) -> str:
    """Write the least time of a launch; "" where the step's executors differ in it, or it is a range."""
    usual = executor_of(analysis.profile)
    names = {f"launch.{signature.executor or usual}" for signature in analysis.profile.signatures}
    launches = {ceiling for name in names if (ceiling := analysis.device.ceilings.get(name))}
    values = {ceiling.value for ceiling in launches if ceiling.high is None and ceiling.value > NANOSECOND}
    return units.seconds(values.pop()) if len(values) == len(launches) == 1 else ""


def _largest_part(analysis: Analysis) -> tuple[str, float]:
    """Return the largest part of the gap and its time [s]; "" where no part is known."""
    return max((analysis.gap_causes or {}).items(), key=lambda part: part[1], default=("", 0.0))


def _bars(analysis: Analysis, page: Page) -> list[str]:
    rows = bars(analysis)
    if not rows:
        return []
    names = max(len(bar.name) for bar in rows)
    labels = {bar: bar.longer or bar.label for bar in rows}
    room = _room(rows, labels.values(), page)
    if room < _BAR // 2:
        labels = {bar: bar.label for bar in rows}
        room = _room(rows, labels.values(), page)
    has_words = room >= _BAR // 4
    room = min(_BAR, room if has_words else page.width - names - 12)
    longest = max(len(bar.drawn(room)) for bar in rows)
    lines = []
    for bar in rows:
        share = f"{tables.percent(bar.share):>5} %"
        line = f"  {bar.name:<{names}}  {bar.drawn(room):<{longest}}  {share}"
        lines.append(f"{line}  {labels[bar]}".rstrip() if has_words else line)
        if not has_words:
            indent = " " * (names + 4)
            lines += textwrap.wrap(labels[bar], page.width, initial_indent=indent, subsequent_indent=indent)
    legend = f"{_MINIMUM} minimum at the roof   {_ABOVE} above the minimum   {_OPEN} no minimum"
    indent = " " * (names + 4 if names + 4 + len(legend) <= page.width else 2)
    legends = textwrap.wrap(legend, page.width, initial_indent=indent, subsequent_indent=indent)
    return [*lines, *(page.painted(line, "dim") for line in legends)]


def _room(rows: Sequence[Bar], labels: Iterable[str], page: Page) -> int:
    """Return the letters of a bar of the whole step, so that the longest one, which is the first, has room."""
    names, words = max(len(bar.name) for bar in rows), max(map(len, labels))
    return int((page.width - names - words - 15) / rows[0].share)


def _sentences(analysis: Analysis, rows: Sequence[Ranked]) -> tuple[str, str, str]:
    """Say what limits the two largest parts of the step, what its ops take at their roofs, and what ranges are of."""
    shown = bars(analysis)
    limits = [_limit(analysis, bar) for bar in shown[:1]]
    limits += [_next_limit(analysis, bar, before) for before, bar in pairwise(shown[:2])]
    ranges = [bar.range for bar in shown if bar.range]
    ranges += [_least_sum(analysis)] if wording.is_range(analysis) else []
    ranges += [f"{row.of_roof} %" for row in rows[:_FEWEST] if row.is_range and row.of_roof != units.UNKNOWN]
    limit = f"{'; '.join(limits)}." if limits else ""
    value = _least_launch(analysis)
    least = f"{'a launch' if analysis.has_queue else 'an op'}'s least time{f' ({value})' if value else ''}"
    if any(bar.bound == "overhead" for bar in shown[:2]):  # which says it
        least = "that least time"
    return limit, _at_their_roofs(analysis, least), wording.range_ends(analysis, ranges[0]) if ranges else ""


def _limit(analysis: Analysis, bar: Bar) -> str:
    """Say what limits the longest part of the step."""
    share = f"{units.percent(bar.share, 0)} of the {_step(analysis)}"
    if bar.bound is None:
        largest, seconds = _largest_part(analysis)
        why = f", most of it {wording.gap_part(largest, analysis)}" if 2 * seconds > analysis.gap else ""
        function = most_in_function(analysis)
        why = f", {function}" if function else why
        waits = f": it waits for its host{f', {function}' if function else ''}" if analysis.waits_for_host else why
        return f"{'The GPU is idle for' if analysis.has_queue else 'Host time is'} {share}{waits}"
    times, upper = bounds.split(analysis)[bar.bound], bounds.split_at_upper_end(analysis)[bar.bound]
    ends = bounds.attained(times, upper)
    if ends is None or bar.bound == "unknown":
        kind = wording.unknown_work(analysis, {bar.bound})
        lacking = [] if analysis.device.ceilings else ["no ceilings of this device are known"]
        lacking += ["the trace has no shapes"] if "no-shapes" in map(slug, analysis.flags) else []
        why = wording.conjunction(lacking) or kind or "the work of its ops is not known"
        return f"What limits {share} is not known: {why}"
    if bar.bound == "overhead":
        return f"Overhead limits {share}, {_small_ops(analysis, bar)}"
    return f"{bar.bound.capitalize()} limits {share}, {wording.closeness(analysis, bar.bound, *ends)}"


def _next_limit(analysis: Analysis, bar: Bar, before: Bar) -> str:
    """Say what limits the longest part of the step but the one `before`, of which a sentence is."""
    share = units.percent(bar.share, 0)
    if bar.bound is None:
        return f"{'the GPU is idle for' if analysis.has_queue else 'host time is'} {share}"
    if bar.bound == "unknown" or bar.minimum is None:
        return f"what limits {share} is not known"
    limits = " limits" if before.bound in (None, "unknown") else ""
    if bar.bound == "overhead":
        return f"{bar.bound}{limits} {share}, {_small_ops(analysis, bar)}"
    return f"{bar.bound}{limits} {share}, {bar.words}"


def _small_ops(analysis: Analysis, bar: Bar) -> str:
    """Say how much longer small ops take than the least, and what that is."""
    value = _least_launch(analysis)
    return f"{_SMALL}{bar.words}{f', which is {value}' if value else ''}"


def _at_their_roofs(analysis: Analysis, least: str) -> str:
    """Sum the least times of the ops, next to what they took; what the gap would be then nobody has seen.

    least: names the least time of an op.
    """
    total = analysis.total
    if total.own_seconds <= total.uncosted:
        return ""
    ends = _least_sum(analysis)
    ops = "All ops" if floors.complete(total) else "The ops of known work"
    took = units.seconds(total.own_seconds - total.uncosted)
    limits = f", or {least}," if bounds.split(analysis)["overhead"].seconds else ""
    # What runs beside other ops is counted in each: their sum may be longer than the step.
    beside = total.overlap if not total.uncosted and units.seconds(total.own_seconds - total.overlap) != took else 0.0
    took += f", {units.seconds(beside)} of it beside others" if beside else ""
    return f"{ops} together run for {took}; at their roofs{limits} they would take {ends}."


def _least_sum(analysis: Analysis) -> str:
    """Write what all ops take at their roofs, or the range of it."""
    total = analysis.total
    if not wording.is_range(analysis):
        return units.seconds(total.floor)
    return units.seconds_between(total.floor, total.floor_reach).replace("–", " to ")


# -------------------------------------------------------------------------------------------------------------- places


class Ranked(NamedTuple):
    """A row of the table. above: what is above its minimum [s]; at most that, where `open`. None: none is known.

    place: its block, else the class of its ops, or the name of the gap; phase: "" where all are of one. kind: that
    class, which tells rows of one block apart. ops: their name, after `repeats`, how often they run; "" of the gap.
    is_range: whether its share of the roof is a range. line: of the user's program, where all ops are of one; else "".
    """

    place: str
    phase: str
    kind: str
    repeats: str
    ops: str
    seconds: float
    of_roof: str
    above: float | None
    open: bool
    is_gap: bool = False
    is_range: bool = False
    line: str = ""

    @property
    def where(self) -> str:
        """Name the place and the phase."""
        return ", ".join(filter(None, (self.place, self.phase)))

    @property
    def where_and_kind(self) -> str:
        """Name the place, the class of its ops and the phase."""
        return ", ".join(dict.fromkeys(filter(None, (self.place, self.kind, self.phase))))

    @property
    def kind_in_range(self) -> str:
        """Name the class of its ops, the phase, and the range of the trace that they, or their forward ops, are in.

        A range that is called as a phase is none more.
        """
        name = ", ".join(dict.fromkeys(filter(None, (self.kind, self.phase or self.place * (self.place in PHASES)))))
        if self.place == self.kind or self.place in PHASES:
            return name
        return f'{name}{" of" if self.phase == "backward" else ", in"} range "{self.place}"'

    @property
    def at_most(self) -> float:
        """Return what the step could save here at most [s]: all of a time that has no minimum."""
        return self.seconds if self.above is None else self.above


def ranked(analysis: Analysis) -> list[Ranked]:
    """Return the places of a step and its gap, those first that could save most."""
    ranked_places = places(analysis)
    phases, blocks = ({getattr(place, name) for place in ranked_places} for name in ("phase", "block"))
    rows = [_ranked(place, len(phases) > 1, len(blocks) > 1) for place in ranked_places]
    gap = analysis.gap_told or 0.0  # what is not known has no row
    if gap >= 0.005 * analysis.wall:
        rows.append(Ranked(wording.gap_name(analysis), "", "", "", "", gap, units.UNKNOWN, gap, True, True))
    return sorted(rows, key=lambda row: -row.at_most)


def _ranked(place: Place, has_phases: bool, has_blocks: bool) -> Ranked:
    """Make a row of a place. What all places have in common names none: then the class of its ops does."""
    kind = "convolution" if place.is_convolution else class_name(place.op_class)
    block = "" if not has_blocks or place.block == TOP else wording.plain(place.block, 200)
    phase = wording.plain(place.phase, 40) if has_phases and place.phase != block else ""
    ops, repeats = wording.plain(place.name, 400), f"{units.count(place.runs)} x "
    of_roof = tables.between(place.of_roof, place.of_roof_high)
    above, is_range = None if place.above is None else place.at_most, of_roof != tables.percent(place.of_roof)
    is_open = place.without_minimum > 0 or is_range
    row = Ranked(block or kind, phase, kind, repeats, ops, place.seconds, of_roof, above, is_open, is_range=is_range)
    return row._replace(line=wording.plain(place.line or "", 400))


def _places(analysis: Analysis, rows: Sequence[Ranked], limit: int, page: Page) -> list[str]:
    """Write the table: the first places, and what the others take."""
    shown, grouped = rows[:limit], rows[limit:]
    if len(grouped) == 1:
        shown, grouped = rows, []
    unit = units.seconds_unit(max((row.seconds for row in rows), default=0.0))
    cells = [["", "", "time", "share", "min./time", "above minimum"]]
    number_at_place = Counter(row.where for row in shown)
    # Blocks of a trace without modules are ranges, and may be anything.
    has_ranges = analysis.profile.imported is not None and not analysis.profile.imported.modules
    for number, row in enumerate(shown, 1):
        roof = row.of_roof if row.of_roof == units.UNKNOWN else f"{row.of_roof} %"
        above = units.UNKNOWN if row.above is None else f"{'≤ ' * row.open}{unit(row.above)}"
        share = units.percent(row.seconds / analysis.wall, 0)
        where = row.where_and_kind if number_at_place[row.where] > 1 else row.where
        where = row.kind_in_range if has_ranges and not row.is_gap else where
        ops = f"{row.repeats}{brief(row.ops)}" if row.repeats else row.ops
        cells.append([f"{number} {where}", ops, unit(row.seconds), share, roof, above])
    if grouped:
        seconds = sum(row.seconds for row in grouped)
        above = f"{'≤ ' * any(row.open for row in grouped)}{unit(sum(row.at_most for row in grouped))}"
        above = units.UNKNOWN if all(row.above is None for row in grouped) else above
        share = units.percent(seconds / analysis.wall, 0)
        cells.append([f"  {len(grouped)} more", "", unit(seconds), share, "", above])
    numbers = [row[2:] for row in cells]
    columns = terminal.fitting_columns(numbers, (0, 2, 3, 1), page.width - 2 * LEAST - 2)
    heads_left_out = [head for number, head in enumerate(numbers[0]) if number not in columns]
    by = "time above minimum" if any(row.above is not None and not row.is_gap for row in rows) else "time"
    title, order = "where the time goes", f", by {by}"
    titles = [f"{title}, op by op{order}", f"time of each op{order}", title]
    fitted = _fitted(cells, shown, columns, len(titles[1]), page)
    first, *lines = terminal.columns(fitted, (0, 1))
    width = sum(terminal.widths(fitted)[:2]) + 2  # the head of both columns
    title = next((words for words in titles if len(words) <= width), title)
    head = page.painted(f"{units.cut(title, width):<{width}}{first[width:]}", "dim")
    return [head, *lines, *terminal.left_out(heads_left_out, page)]


def _fitted(
    cells: Sequence[Sequence[str]], rows: Sequence[Ranked], columns: Sequence[int], least: int, page: Page
) -> list[list[str]]:
    """Make the table as wide as the page, of the numbers in `columns`: names are cut, those of ops to no two alike.

    least: letters of the first two columns together, where there is room.
    """
    numbers = [[row[2 + number] for number in columns] for row in cells]
    room = page.width - sum(width + 2 for width in terminal.widths(numbers)) - 2
    texts = [row[0] for row in cells]
    where, ops = (max(len(row[column]) for row in cells) for column in (0, 1))
    if where + ops > room:
        texts = [_with_short_phase(text) for text in texts]
        where = max(map(len, texts))
        least_ops = LEAST + max((len(row.repeats) for row in rows), default=0)
        ops = min(ops, max(room - where, min(room // 3, least_ops)))
        where = min(where, room - ops)
    counted = [row for row in rows if row.repeats]
    names = dict(zip(counted, _names(counted, ops), strict=True))
    named = ["", *(names.get(row, row.ops) for row in rows), *(row[1] for row in cells[1 + len(rows) :])]
    fitted = [
        [_cut_place(text, where), units.cut(name, ops), *line]
        for text, name, line in zip(texts, named, numbers, strict=True)
    ]
    _add_lines(fitted, rows, room)
    fitted[0][0] = " " * (max(where, least - ops - 2) if least <= room + 2 else where)
    return fitted


def _cut_place(text: str, width: int) -> str:
    """Cut a numbered place to `width` letters; a path at its begin, which it shares with others."""
    number, separator, place = text.partition(" ")
    return f"{number}{separator}{units.cut(place, width - len(number) - 1, keep_end='/' in place)}" if place else text


def _add_lines(fitted: Sequence[list[str]], rows: Sequence[Ranked], room: int) -> None:
    """Add the lines of the program that ask for the ops, one below the other, where the page has room for all of them.

    room: letters of the first two columns together.
    """
    where, ops = terminal.widths([row[:2] for row in fitted])
    longest = max((len(row.line) for row in rows), default=0)
    if longest and where + ops + 2 + longest <= room:
        for cells, row in zip(fitted[1:], rows, strict=False):
            cells[1] = f"{cells[1]:<{ops}}  {row.line}".rstrip()


def _with_short_phase(where: str) -> str:
    """Shorten the phase at the end of the name of a place."""
    place, separator, phase = where.rpartition(", ")
    return f"{place}{separator}{_SHORT_PHASES.get(phase, phase)}"


def _names(rows: Sequence[Ranked], room: int) -> list[str]:
    """Write the names of ops, each after how often they run, in `room` letters."""
    longest = max((len(row.repeats) for row in rows), default=0)
    names = distinct([row.ops for row in rows], room - longest, "kernel")
    return [f"{row.repeats}{name}" for row, name in zip(rows, names, strict=True)]


# ------------------------------------------------------------------------------------------------------ advice, doubts


def _tail(analysis: Analysis, rows: Sequence[Ranked], above: list[str], page: Page) -> list[str]:
    """Write what to try and what to doubt, as far as the lines `above` and the fewest places leave room.

    That nothing is known to try is said where all doubts have room.
    """
    compiling_lines, advice = _compiling(analysis, page), _advice(analysis, rows, page)
    used = len(_stacked([above, _LEAST_TABLE, ["tail"]])) - 1 + len(compiling_lines)
    reasons = list(doubts.reasons(analysis))
    listed = _doubts(reasons, page)
    while len(advice) > 1 and used + len(list(chain(*advice))) + min(2, len(listed)) > LINES:
        advice = advice[:-1]
    if not advice and used + 1 + len(list(chain(*listed))) <= LINES:
        advice = [terminal.facts([("try", _NOTHING)], page)]
    tried = list(chain(*advice))
    return [*compiling_lines, *tried, *_fewer(reasons, LINES - used - len(tried), page)]


def _compiling(analysis: Analysis, page: Page) -> list[str]:
    """Say how much of each step is compiling, and what makes it once for all steps."""
    text = compiling.describe_compiling(analysis)
    return terminal.facts([("compiling", text)], page) if text else []


def _advice(analysis: Analysis, rows: Sequence[Ranked], page: Page) -> list[list[str]]:
    """Say what to try: against what is doubtful, and about the largest part of the gap, if it is among the first rows.

    Of that part say how long it is.
    """
    cures = "; ".join(doubts.cures(analysis))
    texts = [cures] if cures else []
    advice = advise(analysis)
    if advice and advice[0].part == _largest_part(analysis)[0] and any(row.is_gap for row in rows[:_FEWEST]):
        text, annotation, part, seconds = advice[0]
        gain = f"at most {units.seconds(seconds)}, {units.percent(seconds / analysis.wall, 0)} of the step"
        subject = f"against {wording.gap_part(part)} ({gain})"
        texts.append(f"{subject}: {text}; see {wording.page(annotation)}")
    mark = "- " if len(texts) > 1 else ""
    return [terminal.facts([("" if number else "try", f"{mark}{text}")], page) for number, text in enumerate(texts)]


def _doubts(reasons: Iterable[str], page: Page) -> list[list[str]]:
    """List what makes the numbers doubtful, the gravest first, each in its lines.

    Each is a sentence, or the first clause of one that is longer than a line.
    """
    written = []
    for number, text in enumerate(reasons):
        name = "" if number else "trust"
        sentence = terminal.facts([(name, f"! {text}")], page)
        written.append(sentence if len(sentence) == 1 else terminal.facts([(name, f"! {clause(text)}.")], page))
    return written


def _fewer(reasons: Sequence[str], room: int, page: Page) -> list[str]:
    """Write the first doubts, one at least, that have `room` lines, and the others in a line, or their number."""
    written, clauses = _doubts(reasons, page), [clause(text) for text in reasons]
    clauses = [f"{text[:1].lower()}{text[1:]}" for text in clauses]
    shown = len(written)
    while shown > 1 and len(list(chain(*written[:shown]))) + (shown < len(written)) > room:
        shown -= 1
    hidden = len(written) - shown
    if not hidden:
        return list(chain(*written))
    also = terminal.facts([("", f"! also: {'; '.join(clauses[shown:])}.")], page)
    more = terminal.facts([("", f"! {hidden} more {'reason' if hidden == 1 else 'reasons'}: --details")], page)
    return [*chain(*written[:shown]), *(also if len(also) == 1 else more)]
