"""Pass options of tables to the formats whose `render` takes them, found by its arguments, so that no list is needed.

`rows` is a choice of rows, `view` the shown part of an account, `page` the terminal or pipe of a text; `columns` and
`caption` are of a table in a paper.
"""

from __future__ import annotations

from inspect import signature
from types import ModuleType
from typing import Annotated, Any

import typer

from roofline.cli.options import completion
from roofline.cli.options.terminal import page
from roofline.cli.options.words import result
from roofline.errors import InputError

Top = Annotated[
    int | None, typer.Option("--top", metavar="N", help="Show the first N rows. Default: 25 for long tables.")
]
Every = Annotated[bool, typer.Option("--all", help="Show all rows.")]
Sort = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        autocompletion=completion.columns,
        help="Sort rows by name|ops|flop|bytes|time|minimum|above|rate|roof|attained, the largest numbers first. "
        "Default: long tables by time, others unsorted.",
    ),
]
Filter = Annotated[
    str | None,
    typer.Option(
        "--filter",
        metavar="TEXT",
        help="Show only rows whose full name, or that of an op fused into them, contains TEXT (in any case); sum the "
        "others in one row.",
    ),
]
Columns = Annotated[
    int | None,
    typer.Option(metavar="1|2", help="With --format latex: width of the table in columns of the page. Default: 1."),
]
Caption = Annotated[
    str | None,
    typer.Option(metavar="short|long", help="With --format latex: long adds all versions and the spread of the steps."),
]
Limit = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="With --format json: write the first N rows of the table, and how many are left out."
    ),
]
Details = Annotated[
    bool,
    typer.Option(
        "--details",
        help="Also print the table of groups, memory, the first step, coverage and how far to trust the numbers.",
    ),
]
_CAPTIONS = ("short", "long")


def choice(top: int | None, every: bool, sort: str | None, contains: str | None) -> Any:
    """Make the choice of rows, as `render` takes it; None for the default."""
    from roofline.content.choice import FORMER, SORTS, Choice

    if top is not None and top < 1:
        raise InputError(f"--top {top} is not possible: give at least 1, or --all.")
    if top is not None and every:
        raise InputError("--top and --all exclude each other: give one of them.")
    sort = FORMER.get(sort, sort) if sort else sort
    if sort is not None and sort not in SORTS:
        raise InputError(f"There is no column {sort!r} to sort by; there are: {', '.join(SORTS)}.")
    if contains == "":
        raise InputError("--filter needs a text: give a part of a name.")
    asked = Choice(top, every, sort, contains or "")
    return None if asked == Choice() else asked


def arguments(
    renderer: ModuleType,
    format: str,
    *,
    rows: Any = None,
    view: Any = None,
    width: int | None = None,
    columns: int | None = None,
    caption: str | None = None,
    details: bool | None = None,
    limit: int | None = None,
) -> dict[str, Any]:
    """Collect the further arguments of `renderer.render`. Raises InputError for an option that its format lacks."""
    if columns not in (None, 1, 2):
        raise InputError(f"--columns {columns} is not possible: give 1 or 2.")
    if caption not in (None, *_CAPTIONS):
        raise InputError(f"There is no caption called {caption!r}; there are: {', '.join(_CAPTIONS)}.")
    if limit is not None and limit < 1:
        raise InputError(f"--limit {limit} is not possible: give at least 1.")
    accepted = signature(renderer.render).parameters
    asked = {"rows": rows, "view": view, "page": width, "columns": columns, "caption": caption, "details": details}
    asked["limit"] = limit
    spelled = {
        "rows": "--top, --all, --sort and --filter have",
        "view": "--all, --row, --why and --details have",
        "page": "--width has",
    }
    for name, value in asked.items():
        if value is not None and name not in accepted:
            words = spelled.get(name, f"--{name} has")
            raise InputError(f"{words} no meaning for --format {format}: leave it out, or give another format.")
    chosen = {name: value for name, value in asked.items() if value is not None}
    if "page" in accepted:
        chosen["page"] = page(width)
    return chosen


def write(text: str, extra: dict[str, Any]) -> None:
    """Print the text that a format rendered with the arguments `extra`, colours included where its page has them."""
    result(text, True if "page" in extra and extra["page"].colour else None)
