"""Text below workflow commands of GitHub: annotations of what failed."""

from __future__ import annotations

from roofline.regression.check import Result
from roofline.renderers.check import _report, _sentences


def render(result: Result) -> str:
    """The text below one annotation per gate that failed (error) or is not resolved (warning)."""
    commands = []
    for gate in _report.worst_first(result):
        level = {"failed": "error", "unresolved": "warning"}.get(gate.status)
        if level:
            title = _property(f"roofline: {_sentences.name(gate)}")
            commands.append(f"::{level} title={title}::{_data(_sentences.sentence(gate))}")
    return "\n".join([*map(_report.without_commands, commands), _report.report(result)])


def _data(words: str) -> str:
    """A message, escaped as GitHub's workflow commands want it."""
    return words.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(words: str) -> str:
    """A property of a workflow command: what ends it is escaped, too."""
    return _data(words).replace(":", "%3A").replace(",", "%2C")
