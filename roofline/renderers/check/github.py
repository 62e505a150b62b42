"""Text below workflow commands of GitHub: annotations of what failed."""

from __future__ import annotations

from collections.abc import Sequence

from roofline.regression.judged import Judged
from roofline.renderers import _words
from roofline.renderers.check import _report, _sentences


def render(judged: Sequence[Judged]) -> str:
    """The text below one annotation per gate that failed (error) or is not resolved (warning), and per lost profile."""
    commands = []
    for each in judged:
        file = f"{_words.plain(each.file)}: " if len(judged) > 1 else ""
        if each.result is None:
            commands.append(_command("error", "roofline", f"{file}{_words.plain(str(each.error))}"))
            continue
        for gate in _report.worst_first(each.result):
            level = {"failed": "error", "unresolved": "warning"}.get(gate.status)
            if level:
                commands.append(_command(level, f"roofline: {_sentences.name(gate)}", file + _sentences.sentence(gate)))
    return "\n".join([*map(_report.without_commands, commands), _report.report(judged)])


def _command(level: str, title: str, words: str) -> str:
    return f"::{level} title={_property(title)}::{_data(words)}"


def _data(words: str) -> str:
    """A message, escaped as GitHub's workflow commands want it."""
    return words.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(words: str) -> str:
    """A property of a workflow command: what ends it is escaped, too."""
    return _data(words).replace(":", "%3A").replace(",", "%2C")
