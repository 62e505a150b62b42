"""Tables and lists of facts: the cells of a heading, a row and a number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from roofline.renderers.report.parts.html import Html, tag
from roofline.renderers.report.parts.run import scrolled


def head(words: str, number: bool = True) -> Html:
    """The heading of a column."""
    return tag("th", words, scope="col", class_="number" if number else None)


def cell(words: object, number: bool = True) -> Html:
    """A cell."""
    return tag("td", words, class_="number" if number else None)


def table(caption: object, heads: Iterable[Html], rows: Iterable[Html], label: str, foot: Sequence[Html] = ()) -> Html:
    """A table that scrolls where the page is narrow. label: what the region is called; foot: its sums."""
    made = tag(
        "table",
        tag("caption", caption) if caption else None,
        tag("thead", tag("tr", heads)),
        tag("tbody", rows),
        tag("tfoot", foot) if foot else None,
    )
    return scrolled(made, label)


def facts(pairs: Iterable[tuple[str, str]]) -> Html:
    """Names with words beside them; a name that is empty goes on with the one above."""
    listed: list[tuple[str, list[str]]] = []
    for what, words in pairs:
        if what or not listed:
            listed.append((what, []))
        listed[-1][1].append(words)
    return tag("dl", [[tag("dt", what), [tag("dd", words) for words in many]] for what, many in listed], class_="facts")
