"""Report `roofline check` for people: the sentence, the table of gates, the causes of growth, other differences."""

from __future__ import annotations

import re
from collections.abc import Sequence

from roofline.content import terminal, wording
from roofline.content.terminal import SHEET, Page
from roofline.regression.batch import Judged
from roofline.regression.check import Result
from roofline.regression.growth import Gate
from roofline.renderers.check import _sentences

_FEW = 8  # differences that are named
_VERDICTS = {"passed": "passed", "failed": "FAILED", "unresolved": "not resolved", "skipped": "not judged"}
_LOOSE = ("failed", "unresolved", "skipped")


#: What goes first of the table for want of room: the highest.
_RANKS = (0, 4, 3, 1, 2, 0)


def report(judged: Sequence[Judged], page: Page = SHEET) -> str:
    """Write the whole report, newline at the end. No line is a workflow command, whatever names a profile brings.

    A lone profile that could not be judged has no report: the error that the command ends with says all there is.
    """
    if len(judged) == 1:
        return _one(judged[0].result, "", page) if judged[0].result else ""
    parts = []
    for profile in judged:
        file = f"{wording.plain(profile.file)}: "
        lines = terminal.broken(f"{file}not judged: {wording.plain(str(profile.error))}", page)
        parts.append(_one(profile.result, file, page) if profile.result else "\n".join(map(_inert, lines)) + "\n")
    return "\n".join(parts)


def _one(result: Result, file: str, page: Page) -> str:
    lines = [*terminal.wrapped(file + _headline(result), page, "bold"), "", *_table(result, page)]
    sentences = [f"{_VERDICTS[gate.status]}: {_sentences.sentence(gate)}" for gate in worst_first(result)]
    if result.differences:
        sentences.append(f"Different, too: {_differences(result)}.")
    for words in sentences:
        lines += ["", *terminal.broken(words, page, "  ")]
    return "\n".join(_inert(line) for line in lines) + "\n"


def worst_first(result: Result) -> list[Gate]:
    """List the gates that did not simply pass, the failed ones first."""
    noted = [gate for gate in result.gates if gate.status in _LOOSE or gate.note]
    return sorted(noted, key=lambda gate: (*_LOOSE, "passed").index(gate.status))


def without_commands(line: str) -> str:
    """Break the older form of a workflow command, "##[", which counts anywhere in a line."""
    return line.replace("##[", "# #[")


def _inert(line: str) -> str:
    """Indent a line that a runner would take for a workflow command: "::" counts at the beginning of a line."""
    return re.sub(r"^(\s*)::", r"\1: :", without_commands(line))


def _headline(result: Result) -> str:
    failed, gates = len(result.failed), len(result.gates)
    words = f"{failed} of {gates} gates failed" if failed else f"passed, {gates} gates"
    unjudged = sum(gate.status == "skipped" for gate in result.gates)
    unresolved = sum(gate.status == "unresolved" for gate in result.gates)
    counts = [
        f"{number} {outcome}" for number, outcome in ((unresolved, "not resolved"), (unjudged, "not judged")) if number
    ]
    only = " (counts only: times, gap and memory are not looked at)" if result.counts_only else ""
    return f"{wording.subject(result.current)}: {', '.join([words, *counts])}{only}."


def _table(result: Result, page: Page) -> list[str]:
    rows = [("gate", "baseline", "current", "growth", "limit", "")]
    for gate in result.gates:
        before, after = (_sentences.value(gate.measure, value) for value in (gate.baseline, gate.current))
        growth, limit = _sentences.growth(gate), _sentences.limit(gate.limit)
        rows.append((_sentences.name(gate), before, after, growth, limit, _VERDICTS[gate.status]))
    return terminal.fitted(rows, (0, 5), _RANKS, page, 1)


def _differences(result: Result) -> str:
    differences = [
        f"{wording.plain(name, 40)} {wording.plain(before, 40)} → {wording.plain(after, 40)}"
        for name, before, after in result.differences[:_FEW]
    ]
    further = len(result.differences) - len(differences)
    return ", ".join([*differences, f"{further} more"] if further else differences)
