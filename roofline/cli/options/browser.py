"""Show a page in the user's browser: `--open`."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from roofline.units import printable


def temporary_page() -> Path:
    """Choose the place of a page that nobody gave a name; it stays there."""
    import tempfile

    return Path(tempfile.mkdtemp(prefix="roofline-")) / "report.html"


def open_page(page: Path) -> None:
    """Open a page in the user's browser, or say why it stays closed: a run in CI has nobody to look at it."""
    import webbrowser

    if os.environ.get("CI"):
        typer.echo("Did not open it: this is a run in CI.")
    elif not webbrowser.open(page.absolute().as_uri()):
        typer.echo(f"Could not open it: there is no browser here. Copy {printable(page)} to a machine that has one.")
