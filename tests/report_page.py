"""A page of `roofline report` as a reader of its text and tables finds it."""

from __future__ import annotations

from html.parser import HTMLParser


class Page(HTMLParser):
    """The text of the page, its tables as rows of cells by their captions, its elements, and its data."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.words: list[str] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.data = ""
        self._caption: str | None = None
        self._rows: list[list[str]] = []
        self._cell: list[str] | None = None
        self._open: list[str] = []
        self.feed(text)
        self.close()

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).replace(" \0 ", "").split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "wbr":  # within a word
            self.words.append("\0")
            return
        self.tags.append(tag)
        given = dict(attrs)
        self.ids += [given["id"]] if given.get("id") else []
        self._open.append("data" if given.get("type") == "application/json" else tag)
        if tag == "table":
            self._caption, self._rows = "", []
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._cell = []

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() not in (tag, "data"):
            pass
        if tag in ("td", "th") and self._cell is not None:
            self._rows[-1].append(" ".join("".join(self._cell).split()))
            self._cell = None
        elif tag == "table" and self._caption is not None:
            self.tables[" ".join(self._caption.split())] = self._rows

    def handle_data(self, data: str) -> None:
        inside = self._open[-1] if self._open else ""
        if inside == "data":
            self.data += data
        elif inside in ("style", "script"):
            return
        elif inside == "caption" and self._caption is not None:
            self._caption += data
        elif self._cell is not None and "svg" not in self._open:
            self._cell.append(data)
        self.words.append(data)
