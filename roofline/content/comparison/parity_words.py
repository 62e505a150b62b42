"""Say how two runs differ in work, settings and measurement. Plain text; each format escapes it."""

from __future__ import annotations

from collections.abc import Iterator

from roofline import units
from roofline.comparison.account.annotate import known_annotations
from roofline.comparison.account.oriented_row import OrientedRow
from roofline.comparison.account.row import OpChange, Row
from roofline.comparison.parity.difference import SAME_WORK
from roofline.comparison.parity.parity import Difference, Parity
from roofline.comparison.ranking import RankedPair
from roofline.content import wording
from roofline.content.comparison import account_rows
from roofline.content.signed import snapped
from roofline.content.wording import plain

#: Differences whose seconds are of the whole step; those of others are of ops alone.
_WITH_HOST = frozenset(("clocks", "pace", "protocol"))


def judged(parity: Parity) -> str:
    """Say the verdict of the parity gate."""
    doubts, named = len(parity.of("warning")), len(parity.of("named"))
    words = {
        "comparable": "comparable",
        "named differences": f"comparable, with {wording.counted(named, 'named difference')}",
        "not comparable": "not comparable",
    }[parity.verdict]
    return f"{words}; {wording.counted(doubts, 'doubt')} about the measurement" if doubts else words


def same_work(pair: RankedPair) -> str:
    """Say whether both runs do the same work, in a few words."""
    parity, (a, b) = pair.comparison.parity, (run.total.model_flops for run in (pair.comparison.a, pair.comparison.b))
    equal = abs(a - b) <= SAME_WORK * max(a, b)
    certain = a and equal and len(parity.settings) == len(parity.of("named"))
    found = [difference for difference in parity.differences if difference.what.startswith("model FLOPs")]
    nearly = any(difference.seconds for difference in found if difference.severity == "named")
    differ = nearly or any(difference.severity == "refused" for difference in found)
    answer = "yes" if certain else "nearly" if nearly else "as far as is known"
    if parity.verdict == "not comparable":
        answer = "no" if a or b else "not known"
    if equal:
        flops = "model FLOPs of matmuls are equal" if a else "neither has matmuls of known work"
    else:
        numbers = " and ".join(units.flop(flops) if flops else "none" for flops in (a, b))
        flops = f"model FLOPs of matmuls differ ({numbers})" if differ else f"of matmuls {numbers} are known"
    return f"{answer}, though {flops}" if answer == "no" and equal else f"{answer}; {flops}"


def differences(pair: RankedPair, *, numbered: bool = True) -> list[str]:
    """Say all that differs, each in a sentence; numbered: whether the reader sees the numbers of the account's rows."""
    heads = {"refused": "not comparable: ", "named": "", "warning": "doubt: "}
    return [
        f"{heads[difference.severity]}{_sentence(pair, difference, numbered=numbered)}"
        for difference in pair.comparison.parity.differences
    ]


def work(pair: RankedPair) -> list[str]:
    """Say how the work of the runs differs, and what keeps them from being compared."""
    parity = pair.comparison.parity
    refused = [f"not comparable: {_sentence(pair, difference)}" for difference in parity.of("refused")]
    named = [_sentence(pair, difference) for difference in parity.of("named") if difference not in parity.settings]
    return refused + named


def settings(pair: RankedPair) -> list[str]:
    """Say which settings differ."""
    return [_sentence(pair, difference) for difference in pair.comparison.parity.settings]


def settings_annotations(pair: RankedPair) -> list[str]:
    """Name the annotations of the settings that differ."""
    return [name for row in pair.account.rows if row.kind == "setting" for name in row.annotations]


def doubts(pair: RankedPair) -> list[str]:
    """Say why the times may not be what they seem."""
    return [_sentence(pair, difference) for difference in pair.comparison.parity.of("warning")]


def alike(pair: RankedPair, limit: int | None = None) -> Iterator[tuple[str, str]]:
    """Yield whether both runs do the same work, the settings that differ, and doubts about times; `limit` of each."""
    yield "same work?", f"{same_work(pair)}."
    for head, sentences in (("", work(pair)), ("settings", settings(pair)), ("trust", doubts(pair))):
        for number, sentence in enumerate(sentences[:limit]):
            yield head if not number else "", sentence
        if limit is not None and len(sentences) > limit:
            yield "", f"{len(sentences) - limit} more: compare the two alone."


def _sentence(pair: RankedPair, difference: Difference, *, numbered: bool = True) -> str:
    """Say a difference, and the rows that it explains, or else the most that it can explain."""
    upper = _explained(pair, difference) if numbered else ""
    if difference.seconds and not upper:
        whole = units.seconds(abs(pair.comparison.difference))
        share = "" if difference.share is None else f" of {whole}, {units.percent(difference.share, 0)}"
        dispatch = "" if difference.what in _WITH_HOST else ", dispatching not counted"
        upper = f" (explains at most {units.seconds(snapped(difference.seconds))}{share}{dispatch})"
    return f"{plain(difference.text, 400).rstrip('.')}{upper}."


def _explained(pair: RankedPair, difference: Difference) -> str:
    """Name the rows of the account that have an annotation of a setting: " (row 2, +8.20 ms)"; empty for none."""
    change = OpChange(name=difference.what, a=difference.a, b=difference.b)
    setting = OrientedRow(Row(kind="setting", ops=(change,)), alike=True, other_ops=frozenset())
    names = {name for name, annotation in known_annotations().items() if annotation.fits(setting)}
    rows = {number: row for number, row in enumerate(account_rows.rows(pair), 1) if names & {*row.annotations}}
    if not rows:
        return (
            " (no row shows its cost alone)"
            if names and not difference.seconds and None not in (difference.a, difference.b)
            else ""
        )
    around = " with the ops around" if any(account_rows.holds_neighbours(row) for row in rows.values()) else ""
    time = account_rows.written(pair, sum(map(account_rows.seconds, rows.values())))
    numbers = wording.conjunction(list(map(str, rows)))
    return f" (row {numbers}, {time}{around})" if len(rows) == 1 else f" (rows {numbers}, {time} together{around})"
