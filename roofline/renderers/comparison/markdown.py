"""GitHub Markdown for a write-up: the verdict, parity, the findings and the table of terms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from roofline import units
from roofline.comparison.breakdown.breakdown import Breakdown
from roofline.comparison.ranking import RankedPair, Ranking
from roofline.renderers import _words
from roofline.renderers._markdown import escape
from roofline.renderers._signed import signed
from roofline.renderers.comparison import _broken_down, _comparing, _proofs, _term_table
from roofline.renderers.comparison._broken_down import Line


def render(ranking: Ranking) -> str:
    """Two runs in full; of more, the table of runs, the matrix, and the largest findings of each."""
    lines = _two(ranking.pairs[0]) if len(ranking.runs) == 2 else _several(ranking)
    return "\n".join(lines) + "\n"


def _two(pair: RankedPair) -> list[str]:
    found = pair.comparison
    lines = [*_head(pair), *_findings(pair, len(pair.findings)), *_tendencies(pair), *_proven(pair)]
    lines += [*_observed(pair, _broken_down.OBSERVED, pair.breakdown), "", *_differences(pair)]
    facts = [_comparing.places(pair), _broken_down.why(pair), _broken_down.legend(pair)]
    facts.append(f"{_comparing.closing(found)}.")
    facts = [words for words in (*facts, _broken_down.hardware(pair), _comparing.communication(pair)) if words]
    facts += [
        f"{letter}: {_comparing.name(pair, side)}; {_comparing.subject([run])}: {_words.provenance(run)}"
        for letter, side, run in (("A", 0, found.a), ("B", 1, found.b))
    ]
    return [*lines, "", f"*{escape(' '.join(facts))}*"]


def _several(ranking: Ranking) -> list[str]:
    lines = [escape(_comparing.headline(ranking)), "", *_runs(ranking), "", *_matrix(ranking)]
    for pair in ranking.pairs:
        lines += ["", *_head(pair), *_findings(pair, _comparing.TOP), *_tendencies(pair), *_proven(pair)]
        lines += _observed(pair, _broken_down.FEW, _broken_down.asked(pair))
        if _broken_down.asked(pair):
            lines += ["", *_differences(pair)]
    told = [
        f"{_words.plain(ranking.names[number], 60)}: {_words.provenance(ranking.runs[number])}"
        for number in ranking.order
    ]
    return [*lines, "", f"*{escape(' '.join(told))}*"]


def _proven(pair: RankedPair) -> list[str]:
    return [] if pair.proofs is None else ["", *_proofs.markdown(pair.proofs)]


def _head(pair: RankedPair) -> list[str]:
    """The verdict, the warning and what parity says."""
    parity = pair.comparison.parity
    more = " ".join(filter(None, (_comparing.causes(pair), _comparing.again(pair))))
    lines = [f"**{escape(_comparing.verdict(pair))}** {escape(more)}".rstrip(), ""]
    if _comparing.warning(pair):
        lines = [f"**{escape(_comparing.warning(pair))}**", "", *lines]
    lines += [f"Parity: {escape(_comparing.judged(parity))}.", ""]
    told = [f"- {escape(words)}" for words in _comparing.differences(pair)]
    return [*lines, *told, ""] if told else lines


def _findings(pair: RankedPair, most: int) -> list[str]:
    if not pair.findings:
        return [escape(_broken_down.no_finding(pair))]
    left = pair.findings[most:]
    rest = pair.rest + sum(finding.seconds for finding in left)
    what = f"{_words.counted(len(left), 'more finding')}, and what none accounts for" if left else "the rest"
    rows = [
        [
            str(number),
            signed(finding.seconds),
            _comparing.share(finding.seconds, pair),
            escape(finding.rule),
            escape(finding.text),
            escape(finding.advice),
        ]
        for number, finding in enumerate(pair.findings[:most], 1)
    ]
    rows.append(["", signed(rest), _comparing.share(rest, pair), "", what, ""])
    heads = ["", "A − B", "share", "rule", "why", "what to try"]
    return [f"{escape(_comparing.sign(pair))}.", "", *_grid(heads, rows, numbers=(0, 1, 2))]


def _tendencies(pair: RankedPair) -> list[str]:
    told = _comparing.tendencies(pair)
    return ["", escape(told)] if told else []


def _observed(pair: RankedPair, most: int, table: Breakdown | None) -> list[str]:
    """The ops that differ most, where they are told."""
    found, told = _broken_down.observed(pair, most, table)
    return (
        ["", escape(told), "", *_lines(found, (), pair.observations.by if pair.observations else "")] if found else []
    )


def _differences(pair: RankedPair) -> list[str]:
    """The table that adds up to the difference: the terms by phase and block, or the ops by another key."""
    if pair.breakdown is None:
        return _terms(pair)
    found = _broken_down.lines(pair, pair.breakdown)
    return _lines(found.rows, (found.ops, *found.gap, found.total), pair.breakdown.by)


def _lines(some: Sequence[Line], sums: Sequence[Line], by: str) -> list[str]:
    rows, scale = (*some, *sums), _broken_down.scale_of(some, sums)
    heads, *cells = _broken_down.cells(rows, scale)
    body = [[escape(_words.plain(row.label, 120)), *each] for row, each in zip(rows, cells, strict=True)]
    return _grid([f"{by} \\[{scale.unit}\\]", *heads], body, numbers=range(1, len(heads) + 1))


def _terms(pair: RankedPair) -> list[str]:
    table = _term_table.table(pair.comparison)
    scale = table.scale
    columns = table.columns(scale)
    heads = [_term_table.COLUMNS[number][0].replace("-\n", "").replace("\n", " ").strip() for number in columns]
    rows = [
        [
            escape(row.label),
            *("" if row.terms[number] is None else scale.write(row.terms[number]) for number in columns),
            scale.write(row.seconds),
            scale.between(row.ci95),
        ]
        for row in (*table.rows, table.total)
    ]
    names = [f"where [{scale.unit}]".replace("[", "\\[").replace("]", "\\]"), *heads, "total", "95 % interval"]
    return _grid(names, rows, numbers=range(1, len(names)))


def _runs(ranking: Ranking) -> list[str]:
    best = ranking.runs[ranking.fastest]
    rows = []
    for place, number in enumerate(ranking.order, 1):
        run = ranking.runs[number]
        parity = "" if number == ranking.fastest else ranking.verdicts[number][ranking.fastest]
        shares = [units.percent(part, 0) for part in (run.busy / run.wall, run.gap_told / run.wall)]
        shares.append(_words.attained(run.total))
        time = [units.seconds(run.wall), f"{run.wall / best.wall:.2f}x"]
        rows.append([str(place), escape(ranking.names[number]), *time, *map(escape, shares), parity])
    heads = ["", "run", "step", "factor", "busy", "gap", "attained", "parity with the fastest"]
    return _grid(heads, rows, numbers=(0, 2, 3, 4, 5, 6))


def _matrix(ranking: Ranking) -> list[str]:
    order = ranking.order
    rows = [
        [
            str(place),
            escape(ranking.names[row]),
            *(
                "1"
                if row == column
                else f"{ranking.speedups[row][column]:.2f}{escape(_comparing.mark(ranking.verdicts[row][column]))}"
                for column in order
            ),
        ]
        for place, row in enumerate(order, 1)
    ]
    heads = ["", "row / column", *(str(place) for place in range(1, len(order) + 1))]
    note = (
        "Time of the row / time of the column: how many times faster the run of the column is. "
        + _comparing.MARKS
        + "."
    )
    return [*_grid(heads, rows, numbers=(0, *range(2, len(heads)))), "", escape(note)]


def _grid(heads: list[str], rows: Iterable[list[str]], numbers: Iterable[int]) -> list[str]:
    right = set(numbers)
    rule = ["---:" if number in right else "---" for number in range(len(heads))]
    return [f"| {' | '.join(cells)} |" for cells in (heads, rule, *rows)]
