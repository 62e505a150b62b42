"""The formats of `show`, the notebook and the report have the numbers of the JSON. A new format needs a reader."""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser

import pytest
from same_numbers import (
    COLUMNS,
    OF_LONG,
    check_table,
    check_trace,
    check_verdict,
    document,
    holds,
    ops,
    profile,
    render,
    run,
    sums,
    table,
)

from roofline import plugins
from roofline.content.terminal import Page
from roofline.renderers.notebook import work_analysis as notebook
from roofline.renderers.report import report


def test_the_document_adds_up_to_itself() -> None:
    for key, by in (("groups", "group"), ("classes", "class"), ("blocks", "block")):
        told = {name: row for name, row in document()[key].items() if row["ops"]}
        assert told.keys() == sums(by).keys()
        for name, row in sums(by).items():
            assert {field: told[name][field] for field in row} == pytest.approx(row)
    assert sum(row["seconds"] for row in sums("op").values()) + document()["gap"] == pytest.approx(
        document()["wall"]["median"]
    )


def read_text() -> None:
    for by in ("group", "block", "op"):
        lines = render("text", by, page=Page(200)).splitlines()
        first, last = (number for number, line in enumerate(lines) if set(line) == {"─"})
        parts = [re.split(r"\s{2,}", line.strip()) for line in (*lines[first + 1 : last], lines[last + 1])]
        if by == "op":  # names come last, and the gap has no number of ops
            parts = [[line[-1], *[""] * (len(OF_LONG) + 1 - len(line)), *line[:-1]] for line in parts]
        check_table(table(OF_LONG if by == "op" else COLUMNS, parts), by, OF_LONG if by == "op" else COLUMNS)
    told = render("text", "group").split("\n\n")[0].replace("\n", " ")
    check_verdict(told)


def read_markdown() -> None:
    for by in ("group", "block", "op"):
        text = render("markdown", by).replace("\\", "")
        head, _, *body = (line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|"))
        check_table(table(head[1:], body), by)
        check_verdict(text.partition("\n")[0])


def read_latex() -> None:
    for by in ("group", "block", "op"):
        text = re.sub(r"\\phantom\{[.0]*\}", "", render("latex", by, columns=2))
        for tex, plain in ((r"\textmu{}", "µ"), (r"\textless{}", "<"), ("--", "–"), (r"\_", "_"), (r"\%", "%")):
            text = text.replace(tex, plain)
        check_verdict(text.splitlines()[1])
        rows = [line[4:].removesuffix(r" \\").split(" & ") for line in text.splitlines() if line.endswith(r"\\")]
        (_, *tops), (_, *bottoms), *body = rows
        if by == "op":  # names are cut; the ops are in the order of their time
            times = sums("op")
            names = sorted(times, key=lambda name: -times[name]["seconds"])
            body = [[name, *line[1:]] for name, line in zip([*names, "host time", "total"], body, strict=True)]
        heads = [" ".join(filter(None, map(str.strip, pair))) for pair in zip(tops, bottoms, strict=True)]
        (time,) = (number for number, head in enumerate(heads) if head in ("time s", "time ms", "time µs"))
        unit, heads = heads[time].removeprefix("time "), [head.replace("min. ", "minimum ") for head in heads]
        heads[time] = "time"
        for line in body:
            line[time + 1] += f" {unit}"
        check_table(table(heads, body), by)


def read_csv() -> None:
    for by in ("group", "block", "op"):
        rows = {row[by]: row for row in csv.DictReader(io.StringIO(render("csv", by)))}
        assert rows.keys() == sums(by).keys()
        for name, row in sums(by).items():
            assert {field: float(rows[name][field]) for field in row} == pytest.approx(row, rel=1e-11, abs=1e-17)


def read_json() -> None:
    for by in ("group", "class", "op"):  # the sums are in all of them
        found = json.loads(render("json", by))
        assert {key: found[key] for key in ("wall", "gap", "groups")} == {
            key: document()[key] for key in ("wall", "gap", "groups")
        }


def read_perfetto() -> None:
    check_trace(render("perfetto", "op"))


SHOW = {
    "text": read_text,
    "markdown": read_markdown,
    "latex": read_latex,
    "csv": read_csv,
    "json": read_json,
    "perfetto": read_perfetto,
}


@pytest.mark.parametrize("name", plugins.names("roofline.renderers"))
def test_formats_of_show(name: str) -> None:
    SHOW[name]()


class Tables(HTMLParser):
    """The tables of a page: caption, then rows of texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: list[tuple[str, list[list[str]]]] = []
        self.data = ""
        self._text: list[str] | None = None
        self._json = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.tables.append(("", []))
        elif tag == "tr" and self.tables:
            self.tables[-1][1].append([])
        elif tag in ("td", "th", "caption"):
            self._text = []
        self._json = tag == "script" and ("id", "data") in attrs

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th") and self.tables and self.tables[-1][1]:
            self.tables[-1][1][-1].append("".join(self._text or []).strip())
        elif tag == "caption":
            self.tables[-1] = ("".join(self._text or []).strip(), self.tables[-1][1])
        self._json = False

    def handle_data(self, data: str) -> None:
        if self._json:
            self.data += data
        elif self._text is not None:
            self._text.append(data)


def test_the_notebook() -> None:
    page = notebook.html(run())
    ((_, (head, *body)),) = Tables(page).tables
    check_table(table(head[1:], body), "group")
    check_verdict(re.search(r"<p>(.*?)</p>", page)[1])
    assert notebook.document(run())["groups"] == document()["groups"]


def test_the_report() -> None:
    found = Tables(report([profile()]))
    by_caption = dict(found.tables)
    for by in ("group", "block", "op"):
        head, *body = by_caption[f"By {by}"]
        if by == "op":
            body = [[line[0], *line[1:]] for line in body]
        check_table(table(head[1:], body), by, ("ops", *COLUMNS) if by == "op" else COLUMNS)
    rows = json.loads(found.data)["runs"][0]["ops"]["each"]
    ordered = sorted(ops(), key=lambda op: -float(op["seconds"]))
    wall = document()["wall"]["median"]
    for key, exact in {
        "time": lambda op: op["seconds"],
        "share": lambda op: 100 * op["seconds"] / wall,
        "floor": lambda op: 100 * op["floor"] / wall,
        "loss": lambda op: 100 * op["loss"] / wall,
        "work": lambda op: op["flops"] + op["vector_flops"],
        "traffic": lambda op: op["bytes_read"] + op["bytes_written"],
        "attained": lambda op: 100 * op["floor"] / op["own_seconds"],
        "rate": lambda op: (op["flops"] + op["vector_flops"]) / op["own_seconds"],
    }.items():
        texts = [rows[key]["texts"][number] for number in rows[key]["rows"]]
        for text, op in zip(texts, ordered, strict=True):
            assert holds(text, exact(op)), (key, text, op)
