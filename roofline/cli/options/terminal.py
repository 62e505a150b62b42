"""Describe the page of a text: the reader's terminal, or a pipe."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from roofline.errors import InputError

if TYPE_CHECKING:
    from roofline.content.terminal import Page

#: Longest name in a pipe, where no width limits it: one of a damaged trace may have thousands of letters.
_LETTERS_IN_A_PIPE = 240

Width = Annotated[
    int | None,
    typer.Option(
        "--width", metavar="N", help="Characters per line. Default: the width of the terminal, 100 in a pipe."
    ),
]


def page(width: int | None = None) -> Page:
    """Make the page of `--width`, else of the terminal; in a pipe, 100 letters for sentences, and long names."""
    from roofline.content.terminal import NARROWEST, WIDEST, WIDTH, Page

    colour = wants_colour(os.environ, _is_terminal())
    if width is not None:
        if width < NARROWEST:
            raise InputError(f"--width {width} is too narrow for a table: give at least {NARROWEST}.")
        return Page(width, colour=colour)
    if not _is_terminal():
        return Page(WIDTH, names=_LETTERS_IN_A_PIPE, colour=colour)
    columns = shutil.get_terminal_size((WIDTH, 0)).columns
    return Page(max(NARROWEST, min(columns, WIDEST)), colour=colour)


def wants_colour(environment: Mapping[str, str], terminal: bool) -> bool:
    """Decide on colours: none with NO_COLOR (no-color.org), always with FORCE_COLOR, else on a terminal.

    Empty variables count as not set. TERM=dumb is a terminal that shows none. NO_COLOR goes first, as in Python 3.13.
    """
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR"):
        return environment["FORCE_COLOR"] != "0"
    return terminal and environment.get("TERM") != "dumb"


def _is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()
