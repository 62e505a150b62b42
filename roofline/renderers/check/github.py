"""Write text below GitHub's workflow commands, which annotate the gates that failed."""

from __future__ import annotations

from collections.abc import Sequence

from roofline.content import wording
from roofline.regression.batch import Judged
from roofline.renderers.check import _report, _sentences


def render(judged: Sequence[Judged]) -> str:
    """Annotate each gate that failed (error) or is not resolved (warning), and each lost profile; then the text."""
    commands = []
    for profile in judged:
        file = f"{wording.plain(profile.file)}: " if len(judged) > 1 else ""
        if profile.result is None:
            commands.append(_command("error", "roofline", f"{file}{wording.plain(str(profile.error))}"))
            continue
        for gate in _report.worst_first(profile.result):
            level = {"failed": "error", "unresolved": "warning"}.get(gate.status)
            if level:
                commands.append(_command(level, f"roofline: {_sentences.name(gate)}", file + _sentences.sentence(gate)))
    return "\n".join([*map(_report.without_commands, commands), _report.report(judged)])


def _command(level: str, title: str, words: str) -> str:
    return f"::{level} title={_property(title)}::{_data(words)}"


def _data(words: str) -> str:
    """Escape a message for GitHub's workflow commands."""
    return words.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(words: str) -> str:
    """Escape a property of a workflow command, in which more letters end it."""
    return _data(words).replace(":", "%3A").replace(",", "%2C")
