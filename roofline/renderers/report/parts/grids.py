"""Write tables and lists of facts: the cells of a heading, a row and a number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from roofline.renderers.report.parts.html import Html, join, tag
from roofline.renderers.report.parts.run import scrolled


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
