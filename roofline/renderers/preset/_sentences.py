"""Write the paragraph of a row, sentence by sentence, and the lines around it; all formats share them. Plain text.

Every sentence rests on a measurement, a row of the account or the published table.
"""

from __future__ import annotations

from collections.abc import Iterator

from roofline import units
from roofline.comparison.headline import factor_text
from roofline.comparison.ranking import RankedPair
from roofline.content.comparison import account_rows, comparing, parity_words
from roofline.content.facts import preset
from roofline.content.wording import conjunction, counted, plain
from roofline.published.presets.averages import averages
from roofline.published.presets.compared import ComparedRow, PresetPair, PresetRows, PublishedPair


def opening(rows: PresetRows) -> str:
    """Explain the figures, and the times in front of the causes."""
    introduction = (
        f"{rows.preset.name}: {rows.publication.title}. Its statistic is {rows.preset.statistic}; here it is the "
        "mean of what the benchmark timed where all runs of a row have that, else of the plain steps. The difference "
        "of the medians of plain steps is accounted for in parts; the time before each is what the run takes more (+) "
        "or less (-) for it than the fastest."
    )
    runs = [reproduction for row in rows.compared for reproduction in row.besides]
    return " ".join(
        [
            introduction,
            *(sentence for sentence in rows.preset.everywhere if any(sentence in run.apart for run in runs)),
        ]
    )


def head(row: ComparedRow) -> str:
    """Name the row, its model and its device."""
    task = f"{plain(row.row.task, 120)} — " if row.row.task else ""
    return f"{task}{comparing.subject(row.ranking.runs)}"


def paragraph(row: ComparedRow) -> list[str]:
    """Say who wins, by how much, and why; add the published figures of the same pairs, and how the step differs."""
    sentences_of_row = [_fastest(row), *_timed(row)]
    for pair in row.pairs:
        sentences_of_row += _pair(row, pair)
        sentences_of_row += [_published(row, pair, figures) for figures in pair.published]
    if not any(pair.published for pair in row.pairs):
        sentences_of_row.append("The published table has no figures of these pairs.")
    sentences_of_row += [
        f"Known of these figures, {note.kind}: {note.says} ({note.evidence})."
        for note in row.notes
        if note.kind in preset.KINDS
    ]
    return [*sentences_of_row, *_apart(row)]


def _name(row: ComparedRow, number: int) -> str:
    return plain(row.ranking.names[number], 60)


def _fastest(row: ComparedRow) -> str:
    """Name the fastest run by the publication's statistic, and by our median where that is another run."""
    best, median = row.ranking.fastest, row.fastest_by_median
    runs = row.ranking.runs
    steps = _steps(row, best)
    sentence = f"{_name(row, best)} has the least mean, {units.seconds(row.means[best])} of {steps}"
    if median != best:
        sentence += (
            f"; the least median is that of {_name(row, median)}, {units.seconds(runs[median].wall)} against "
            f"{units.seconds(runs[best].wall)}"
        )
    return f"{sentence}."


def _steps(row: ComparedRow, number: int) -> str:
    """Describe the steps that the mean of a run is taken over."""
    api = row.besides[number].api
    if row.as_timed and api is not None:
        return f"{counted(len(api.steps), 'step')} of {plain(api.name, 40)}"
    return counted(len(row.ranking.runs[number].profile.wall.steps), "plain step")


def _timed(row: ComparedRow) -> Iterator[str]:
    """Say whether the means are of the function that the benchmark timed, and how that differs from the bare step."""
    having = [number for number, reproduction in enumerate(row.besides) if reproduction.api is not None]
    if not having:
        return
    if row.as_timed:
        parts = [f"{_name(row, number)} {_loop(row, number)}" for number in range(len(row.besides))]
        yield f"The means are those of what the benchmark timed: {conjunction(parts)}."
    else:
        names = conjunction([_name(row, number) for number in having])
        yield f"What the benchmark timed was measured only for {names}, so the means are those of the bare steps."
    for number in having:
        yield f"Of {_name(row, number)}, {preset.between_words(row.besides[number])}."


def _loop(row: ComparedRow, number: int) -> str:
    api = row.besides[number].api
    return "a loop around the bare step" if api is None else plain(api.name, 40)


def _pair(row: ComparedRow, pair: PresetPair) -> Iterator[str]:
    """Say parity first; of comparable runs then the factor, its interval and the account."""
    ranked, parity = pair.ranked, pair.ranked.comparison.parity
    names = _name(row, pair.a), _name(row, pair.b)
    takes = f"{names[0]} takes {units.seconds(row.means[pair.a])}"
    if not pair.comparable:
        reasons = [plain(difference.text, 300).rstrip(".") for difference in parity.of("refused")]
        yield f"{takes} and is not comparable with it, so no cause is named: {'; '.join(reasons) or 'see parity'}."
        return
    undecided = ", which do not say which is faster" if ranked.headline.slower is None else ""
    factor = f"{factor_text(pair.factor)} as long in these runs{undecided}"
    yield f"{takes}, {factor}; the two are {parity_words.judged(parity)}."
    differences = parity_words.differences(ranked, numbered=False)
    yield from (f"{words[0].upper()}{words[1:]}" for words in differences[: account_rows.FEW])
    if len(differences) > account_rows.FEW:
        yield f"{counted(len(differences) - account_rows.FEW, 'more difference')}: compare the two alone."
    yield f"By the medians{' of the bare steps' if row.as_timed else ''}: {comparing.verdict(ranked)}"
    yield from _interval(pair)
    yield from _rows(ranked)


def _interval(pair: PresetPair) -> Iterator[str]:
    """Give the interval of the factor in the sentence before; nothing where it has none."""
    ci95 = pair.ranked.headline.factor_ci95
    if ci95 is not None and not ci95[0] <= 1 <= ci95[1]:
        low, high = ci95 if ci95[0] > 1 else (1 / ci95[1], 1 / ci95[0])
        bounds = [factor_text(low), factor_text(high)]
        if bounds[0] == bounds[1]:
            bounds = [f"{low:.4f}x", f"{high:.4f}x"]
        yield f"The factor's 95 % interval is {' to '.join(bounds)}."


def _rows(pair: RankedPair) -> Iterator[str]:
    """Say the largest rows of the account and the sum of the others."""
    if not pair.comparison.has_intervals:
        yield "No part of it can be separated from noise: that needs 3 plain and 3 profiled steps of each."
        return
    rows = account_rows.rows(pair)[: account_rows.FEW]
    if not rows:
        yield "Nothing differs: each row of the account is 0."
    lead = "Why: " if account_rows.is_explained(pair) else "The account: "
    for number, row in enumerate(rows):
        share = comparing.share(account_rows.seconds(row), pair)
        of = "" if share == units.UNKNOWN else f", {share} of the difference"
        yield f"{'' if number else lead}{account_rows.size(pair, row)}{of}: {account_rows.said(row)}"
    if smaller := account_rows.smaller(pair, rows):
        yield f"{smaller}: {account_rows.written(pair, account_rows.rest(pair, rows))}."


def _published(row: ComparedRow, pair: PresetPair, figures: PublishedPair) -> str:
    """Report the published figures of the same two columns."""
    columns = [plain(column.name) if (column := row.besides[number].column) else "" for number in (pair.a, pair.b)]
    sentence = (
        f"Published on {plain(figures.hardware)}: {columns[0]} {units.seconds(figures.a)}, {columns[1]} "
        f"{units.seconds(figures.b)}, {factor_text(figures.ratio)} as long"
    )
    sentence += "" if figures.citable else " (unverified)"
    differing = [
        part for part, is_same in (("device", figures.same_device), ("step", figures.same_step)) if not is_same
    ]
    return (
        f"{sentence}; that is {conjunction([f'another {part}' for part in differing])} than here."
        if differing
        else f"{sentence}."
    )


def _apart(row: ComparedRow) -> Iterator[str]:
    """List the deviations of the runs from the benchmark, one sentence for all runs with the same ones."""
    deviations: dict[str, list[str]] = {}
    for number, reproduction in enumerate(row.besides):
        parts = [
            f"{plain(difference.setting)} {plain(difference.run_value, 60)} instead of {difference.benchmark_value}"
            for difference in reproduction.differences
        ]
        parts += [] if reproduction.column else ["no column for this backend"]
        parts += [] if row.recorded[number] else ["not measured with --preset"]
        if parts:
            deviations.setdefault(", ".join(parts), []).append(_name(row, number))
    for words, names in deviations.items():
        yield f"Differences from the preset in {conjunction(names)}: {words}."
    sentences: dict[str, list[str]] = {}
    for number, reproduction in enumerate(row.besides):
        for sentence in reproduction.apart_in_row:
            sentences.setdefault(sentence, []).append(_name(row, number))
    for sentence, names in sentences.items():
        yield sentence if len(names) == len(row.besides) else f"In {conjunction(names)}: {sentence}"


def left_out(rows: PresetRows) -> list[str]:
    """Write a line for each row with one profile, and for each profile that belongs to no row."""
    lines = []
    for lone_profile in rows.alone:
        profile = lone_profile.profile
        task = f"{lone_profile.row.task}, " if lone_profile.row.task else ""
        sizes = [f"{letter}{n}" for letter, n in (("b", profile.batch), ("s", profile.seq)) if n is not None]
        where = " ".join([f"{task}{plain(profile.model, 60)}", plain(profile.mode, 20), *sizes])
        on = plain(profile.device.name, 60)
        lines.append(f"{where} on {on}: only {plain(profile.backend, 60)}, nothing to compare it with.")
    for stranger in rows.strangers:
        lines.append(f"{plain(stranger.profile.backend, 60)} belongs to no row: {plain(stranger.reason, 300)}")
    return lines


def means(rows: PresetRows) -> list[str]:
    """Write a sentence for every two backends that share several rows."""
    lines = []
    for average in averages(rows):
        names = plain(average.backend, 60), plain(average.baseline, 60)
        reasons = ((average.not_comparable, "not comparable"), (average.several, "with several runs of one of them"),
                   (average.absent, "without one of them"))  # fmt: skip
        excluded = [f"{number} {reason}" for number, reason in reasons if number]
        tail = f" Left out: {conjunction(excluded)}." if excluded else ""
        if average.mean is None:
            lines.append(f"{names[0]} against {names[1]}: no mean, for fewer than two rows can be held together.{tail}")
            continue
        geometric, arithmetic = map(factor_text, (average.mean.geometric, average.mean.arithmetic))
        lines.append(
            f"{names[0]} is {geometric} as fast as {names[1]} by the geometric mean of "
            f"{counted(average.mean.rows, 'row')}, {arithmetic} by the arithmetic one.{tail}"
        )
    return lines
