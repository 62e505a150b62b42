"""Write pieces of HTML for a notebook. Names come from models and traces: all text is escaped here."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roofline.analysis.analysis import WorkAnalysis

#: What a cell shows of one result [characters]: more is cut, and says so. Jupyter keeps every output in the notebook.
MOST = 60_000
_NUMBER = "text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap"
_NAME = "text-align: left"


def page(*parts: str) -> str:
    """Put the parts under one another."""
    return f'<div class="roofline">{"".join(parts)}</div>'


def paragraph(text: str) -> str:
    """Write a sentence or two."""
    return f"<p>{escape(text)}</p>"


def caption(text: str) -> str:
    """Write the caption of a table or a figure, small."""
    return f'<p style="font-size: smaller; opacity: 0.75">{escape(text)}</p>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[bool]) -> str:
    """Write rows of cells under their headings. numbers: whether each column holds numbers."""
    styles = [_NUMBER if number else _NAME for number in numbers]

    def line(tag: str, cells: Sequence[str]) -> str:
        elements = (f'<{tag} style="{style}">{escape(cell)}</{tag}>' for style, cell in zip(styles, cells, strict=True))
        return f"<tr>{''.join(elements)}</tr>"

    body = "".join(line("td", cells) for cells in rows)
    return f"<table><thead>{line('th', head)}</thead><tbody>{body}</tbody></table>"


def preformatted(text: str) -> str:
    """Write text as a terminal shows it; of a very long one the beginning."""
    if len(text) > MOST:
        beginning = text[:MOST].rpartition("\n")[0]
        text = f"{beginning}\n… {text.count(chr(10)) - beginning.count(chr(10))} more lines: print(...) shows all"
    return f'<pre style="line-height: 1.2; overflow-x: auto">{escape(text)}</pre>'


def figure(kind: str, runs: Sequence[WorkAnalysis], width: float = 7.0) -> str:
    """Draw a figure of `roofline plot`, `width` [in], or say why it cannot be drawn of these runs."""
    from roofline.errors import RooflineError
    from roofline.renderers import figures

    try:
        return image(*figures.render(kind, runs, ".svg", width))
    except RooflineError as error:
        return caption(f"No picture: {error}")


def image(svg: bytes, description: str) -> str:
    """Embed a drawing as an image, in which nothing runs and whose style reaches nothing else."""
    data = base64.b64encode(svg).decode()
    # On white, as figures are drawn for paper: a dark notebook would swallow their text.
    return (
        f'<img alt="{escape(description, quote=True)}" style="max-width: 100%; background: white" '
        f'src="data:image/svg+xml;base64,{data}">'
    )
