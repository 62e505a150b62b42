"""The reference of the command line, made from the commands themselves: what `roofline VERB --help` prints.

It takes the place of a line `<!-- commands -->` in a page.
"""

from __future__ import annotations

import re
from typing import Any

MARK = "<!-- commands -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page with every verb where it asks for them."""
    return markdown.replace(MARK, reference()) if MARK in markdown else markdown


def reference() -> str:
    """A section for each verb, in the order of the help: usage, what it does, arguments and options."""
    import typer

    from roofline import cli

    group: Any = typer.main.get_command(cli.build())
    return "\n".join(_section(name, command) for name, command in group.commands.items())


def _section(name: str, command: Any) -> str:
    import typer

    context = typer.Context(command, info_name=f"roofline {name}")
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [f"## `roofline {name}`", "", f"    roofline {name} {usage}", "", *_text(command.help or ""), ""]
    for title, kind in (("argument", "argument"), ("option", "option")):
        found = [one for one in command.params if one.param_type_name == kind and one.name != "help"]
        if found:
            lines += [f"| {title} | |", "| --- | --- |", *(_row(*one.get_help_record(context)) for one in found), ""]
    return "\n".join(lines)


def _text(told: str) -> list[str]:
    """The paragraphs of a help text."""
    return [_escaped(line.strip()) for line in told.splitlines()]


def _row(names: str, told: str) -> str:
    """What the help says of one argument or option, as a row of a table."""
    return f"| {_escaped(f'`{names}`')} | {_escaped(told)} |"


def _escaped(text: str) -> str:
    """Text in a table's cell, as GitHub has it: in backticks only what would end the cell is escaped."""
    return re.sub(r"(`[^`]*`)|([|<*\[\]])", _safe, text)


def _safe(found: re.Match[str]) -> str:
    code, sign = found.groups()
    return f"\\{sign}" if code is None else str(code).replace("|", "\\|")
