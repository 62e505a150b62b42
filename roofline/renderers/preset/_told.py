"""The paragraph of a row, sentence by sentence, and the lines around it; shared by the formats. Plain text.

Nothing is said that does not stand in a measurement, a row of the account or the published table.
"""

from __future__ import annotations

from collections.abc import Iterator

from roofline import units
from roofline.comparison.ranking import RankedPair
from roofline.published.presets.averages import averages
from roofline.published.presets.compared import ComparedRow, PresetPair, PresetRows, PublishedPair
from roofline.renderers._facts import preset
from roofline.renderers._words import conjunction, counted, plain
from roofline.renderers.comparison import _account, _comparing

#: What a reader must know of a published figure to hold another beside it.
_KINDS = ("precision", "jit", "batch", "timing")


def opening(found: PresetRows) -> str:
    """What the figures and the times before the causes are."""
    told = (
        f"{found.preset.name}: {found.publication.title}. Its statistic is {found.preset.statistic}; here it is the "
        "mean of what the benchmark timed where all runs of a row have that, else of the plain steps. The difference "
        "of the medians of plain steps is accounted for in parts; the time before each is what the run takes more (+) "
        "or less (-) for it than the fastest."
    )
    runs = [beside for row in found.compared for beside in row.besides]
    return " ".join([told, *(each for each in found.preset.everywhere if any(each in run.apart for run in runs))])


def head(row: ComparedRow) -> str:
    """The row, what was run, and where."""
    task = f"{plain(row.row.task, 120)} — " if row.row.task else ""
    return f"{task}{_comparing.subject(row.ranking.runs)}"


def paragraph(row: ComparedRow) -> list[str]:
    """Who wins, by what, and why; what is published of the same pairs; how far this is the benchmark's step."""
    told = [_fastest(row), *_timed(row)]
    for pair in row.pairs:
        told += _pair(row, pair)
        told += [_published(row, pair, each) for each in pair.published]
    if not any(pair.published for pair in row.pairs):
        told.append("The published table has no figures of these pairs.")
    told += [
        f"Known of these figures, {note.kind}: {note.says} ({note.evidence})."
        for note in row.notes
        if note.kind in _KINDS
    ]
    return [*told, *_apart(row)]


def _name(row: ComparedRow, number: int) -> str:
    return plain(row.ranking.names[number], 60)


def _fastest(row: ComparedRow) -> str:
    """By the publication's statistic, and by our median where that is another run."""
    best, median = row.ranking.fastest, row.fastest_by_median
    runs = row.ranking.runs
    steps = _steps(row, best)
    told = f"{_name(row, best)} has the least mean, {units.seconds(row.means[best])} of {steps}"
    if median != best:
        told += (
            f"; the least median is that of {_name(row, median)}, {units.seconds(runs[median].wall)} against "
            f"{units.seconds(runs[best].wall)}"
        )
    return f"{told}."


def _steps(row: ComparedRow, number: int) -> str:
    """What the mean of a run is of."""
    api = row.besides[number].api
    if row.as_timed and api is not None:
        return f"{counted(len(api.steps), 'step')} of {plain(api.name, 40)}"
    return counted(len(row.ranking.runs[number].profile.wall.steps), "plain step")


def _timed(row: ComparedRow) -> Iterator[str]:
    """Whether the means are of what the benchmark timed, and what lies between that and the bare step."""
    having = [number for number, beside in enumerate(row.besides) if beside.api is not None]
    if not having:
        return
    if row.as_timed:
        parts = [f"{_name(row, number)} {_loop(row, number)}" for number in range(len(row.besides))]
        yield f"The means are of what the benchmark timed: {conjunction(parts)}."
    else:
        names = conjunction([_name(row, number) for number in having])
        yield f"What the benchmark timed was measured of {names} alone, so that the means are of the bare steps."
    for number in having:
        yield f"Of {_name(row, number)}, {preset.between_words(row.besides[number])}."


def _loop(row: ComparedRow, number: int) -> str:
    api = row.besides[number].api
    return "a loop around the bare step" if api is None else plain(api.name, 40)


def _pair(row: ComparedRow, pair: PresetPair) -> Iterator[str]:
    """Parity first; of runs that are comparable, the factor, its interval and the account."""
    found, parity = pair.ranked, pair.ranked.comparison.parity
    names = _name(row, pair.a), _name(row, pair.b)
    takes = f"{names[0]} takes {units.seconds(row.means[pair.a])}"
    if not pair.comparable:
        reasons = [plain(difference.text, 300).rstrip(".") for difference in parity.of("refused")]
        yield f"{takes} and is not comparable with it, so that no cause is told: {'; '.join(reasons) or 'see parity'}."
        return
    unknown = ", which do not say which is faster" if found.headline.slower is None else ""
    factor = f"{_comparing.factor(pair.factor)} as long in these runs{unknown}"
    yield f"{takes}, {factor}; the two are {_comparing.judged(parity)}."
    differences = _comparing.differences(found)
    yield from (f"{words[0].upper()}{words[1:]}" for words in differences[: _account.FEW])
    if len(differences) > _account.FEW:
        yield f"{counted(len(differences) - _account.FEW, 'more difference')}: compare the two alone."
    yield f"By the medians{' of the bare steps' if row.as_timed else ''}: {_comparing.verdict(found)}"
    yield from _interval(pair)
    yield from _rows(found)


def _interval(pair: PresetPair) -> Iterator[str]:
    """The interval of the factor that the sentence before has, where it has one."""
    ci95 = pair.ranked.headline.factor_ci95
    if ci95 is not None and not ci95[0] <= 1 <= ci95[1]:
        low, high = ci95 if ci95[0] > 1 else (1 / ci95[1], 1 / ci95[0])
        told = [_comparing.factor(low), _comparing.factor(high)]
        if told[0] == told[1]:
            told = [f"{low:.4f}x", f"{high:.4f}x"]
        yield f"The factor's 95 % interval is {' to '.join(told)}."


def _rows(pair: RankedPair) -> Iterator[str]:
    """Say the largest rows of the account and the sum of the others."""
    if pair.comparison.ci95 is None:
        yield "No part of it is told from noise: that takes 3 plain and 3 profiled steps of each."
        return
    rows = _account.rows(pair)[: _account.FEW]
    if not rows:
        yield "Nothing differs: each row of the account is 0."
    lead = "Why: " if _account.is_explained(pair) else "The account: "
    for number, row in enumerate(rows):
        share = _comparing.share(_account.seconds(row), pair)
        of = "" if share == units.UNKNOWN else f", {share} of the difference"
        yield f"{'' if number else lead}{_account.written(pair, _account.seconds(row))}{of}: {_account.said(row)}"
    if smaller := _account.smaller(pair, rows):
        yield f"{smaller}: {_account.written(pair, _account.rest(pair, rows))}."


def _published(row: ComparedRow, pair: PresetPair, each: PublishedPair) -> str:
    """What the table says of the same two columns."""
    columns = [plain(column.name) if (column := row.besides[number].column) else "" for number in (pair.a, pair.b)]
    told = (
        f"Published on {plain(each.hardware)}: {columns[0]} {units.seconds(each.a)}, {columns[1]} "
        f"{units.seconds(each.b)}, {_comparing.factor(each.ratio)} as long"
    )
    told += "" if each.citable else " (unverified)"
    other = [what for what, same in (("device", each.same_device), ("step", each.same_step)) if not same]
    return f"{told}; that is {conjunction([f'another {what}' for what in other])} than here." if other else f"{told}."


def _apart(row: ComparedRow) -> Iterator[str]:
    """What the runs did otherwise than the benchmark, those that did the same together."""
    told: dict[str, list[str]] = {}
    for number, beside in enumerate(row.besides):
        parts = [f"{plain(one.what)} {plain(one.here, 60)} instead of {one.there}" for one in beside.differences]
        parts += [] if beside.column else ["no column for this backend"]
        parts += [] if row.recorded[number] else ["not measured with --preset"]
        if parts:
            told.setdefault(", ".join(parts), []).append(_name(row, number))
    for words, names in told.items():
        yield f"Apart from the preset, {conjunction(names)}: {words}."
    sentences: dict[str, list[str]] = {}
    for number, beside in enumerate(row.besides):
        for sentence in beside.apart_in_row:
            sentences.setdefault(sentence, []).append(_name(row, number))
    for sentence, names in sentences.items():
        yield sentence if len(names) == len(row.besides) else f"Of {conjunction(names)}: {sentence}"


def left_out(found: PresetRows) -> list[str]:
    """A line for each row with one profile, and for each profile that is of no row."""
    lines = []
    for alone in found.alone:
        profile = alone.profile
        task = f"{alone.row.task}, " if alone.row.task else ""
        sizes = [f"{letter}{n}" for letter, n in (("b", profile.batch), ("s", profile.seq)) if n is not None]
        where = " ".join([f"{task}{plain(profile.model, 60)}", plain(profile.mode, 20), *sizes])
        on = plain(profile.device.name, 60)
        lines.append(f"{where} on {on}: only {plain(profile.backend, 60)}, nothing to compare it with.")
    for stranger in found.strangers:
        lines.append(f"{plain(stranger.profile.backend, 60)} is of no row: {plain(stranger.reason, 300)}")
    return lines


def means(found: PresetRows) -> list[str]:
    """A sentence for every two backends that several rows have both of."""
    lines = []
    for each in averages(found):
        names = plain(each.backend, 60), plain(each.baseline, 60)
        reasons = ((each.not_comparable, "not comparable"), (each.several, "with several runs of one of them"),
                   (each.absent, "without one of them"))  # fmt: skip
        out = [f"{number} {what}" for number, what in reasons if number]
        tail = f" Left out: {conjunction(out)}." if out else ""
        if each.mean is None:
            lines.append(f"{names[0]} against {names[1]}: no mean, for fewer than two rows can be held together.{tail}")
            continue
        geometric, arithmetic = map(_comparing.factor, (each.mean.geometric, each.mean.arithmetic))
        lines.append(
            f"{names[0]} is {geometric} as fast as {names[1]} by the geometric mean of "
            f"{counted(each.mean.rows, 'row')}, {arithmetic} by the arithmetic one.{tail}"
        )
    return lines
