"""Write tables and lists of facts: the cells of a heading, a row and a number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from roofline.content.grid import Grid
from roofline.content.wording import plain
from roofline.renderers.report.parts.html import Html, join, name, tag
from roofline.renderers.report.parts.run import scrolled

#: Letters of a name, by what rows are.
_LONGEST = {"scope": 70, "op": 90, "kernel": 90}


def head(words: str, number: bool = True) -> Html:
    """Write the heading of a column."""
    return tag("th", words, scope="col", class_="number" if number else None)


def cell(words: object, number: bool = True) -> Html:
    """Write a cell, without `tag`: most elements of a page are cells."""
    opened = '<td class="number">' if number else "<td>"
    return Html(f"{opened}{join(words)}</td>")


def table(caption: object, heads: Iterable[Html], rows: Iterable[Html], label: str, foot: Sequence[Html] = ()) -> Html:
    """Write a table that scrolls where the page is narrow. label: the name of the region; foot: its sums."""
    element = tag(
        "table",
        tag("caption", caption) if caption else None,
        tag("thead", tag("tr", heads)),
        tag("tbody", rows),
        tag("tfoot", foot) if foot else None,
    )
    return scrolled(element, label)


def table_of(grid: Grid, caption: str, label: str) -> Html:
    """Write a table in words. label: the name of its region."""
    body, names = [], grid.names(_LONGEST.get(grid.by, 60), plain)
    for place, (words, short, line) in enumerate(zip(grid.labels, names, grid.cells, strict=True)):
        parts = tag("small", name(grid.parts[place], 100)) if grid.parts and grid.parts[place] else None
        cells = [cell(text, number not in grid.words) for number, text in enumerate(line)]
        body.append(tag("tr", tag("th", name(words, short=short), parts, scope="row"), cells))
    heads = [head(grid.name, False)]
    heads += [head(grid.head(number), number not in grid.words) for number in range(len(grid.heads))]
    sums = grid.rules[0] if grid.rules else len(body)
    return table(caption, heads, body[:sums], label, body[sums:])


def facts(pairs: Iterable[tuple[str, str]]) -> Html:
    """Write names with words beside them; an empty name continues the one above."""
    listed: list[tuple[str, list[str]]] = []
    for label, words in pairs:
        if label or not listed:
            listed.append((label, []))
        listed[-1][1].append(words)
    return tag(
        "dl",
        [[tag("dt", label), [tag("dd", words) for words in descriptions]] for label, descriptions in listed],
        class_="facts",
    )
