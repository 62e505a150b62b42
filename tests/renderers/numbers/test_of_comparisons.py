"""The formats of `compare`, and the report, have the numbers of both runs' JSON. A new format needs a reader."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace
from same_numbers import document, holds, profile, sums

from roofline import plugins
from roofline.comparison.ranking import rank
from roofline.content.terminal import Page
from roofline.renderers.report import report


def compared(name: str) -> str:
    """Both runs by class: each row has the time of A, of B, and A - B."""
    renderer = plugins.load("roofline.renderers.comparison", name, "format")
    more = {"text": {"page": Page(200)}, "latex": {"columns": 2}}.get(name, {})
    return renderer.render(rank([profile("a"), profile("b")], as_given=True, by="class"), **more)


def check_compared(lines: Sequence[Sequence[str]], unit: str) -> None:
    """Rows of a name, A, B and A - B; absent is empty."""
    both = [sums("class", letter) for letter in "ab"]
    ends = [document(letter)["wall"]["median"] for letter in "ab"]
    assert {line[0] for line in lines} >= set(both[0]) | set(both[1]) | {"total"}
    for name, a, b, difference, *_ in lines:
        times = [each[name]["seconds"] if name in each else 0.0 for each in both] if name != "total" else ends
        if name != "total" and name not in {*both[0], *both[1]}:
            continue  # the sum of all ops, and the gap by cause
        for text, exact in ((a, times[0]), (b, times[1]), (difference, times[0] - times[1])):
            assert not exact if text == "" else holds(f"{text} {unit}".strip(), exact), (name, text, exact)


def compare_text() -> None:
    lines = compared("text").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("class ["))
    unit = re.search(r"\[(\w+)\]", lines[start])[1]
    heads = ("A", "B", "A − B")
    ends = [re.search(rf"(?<= ){re.escape(head)}(?=  )", lines[start]).end() for head in heads]
    rows = []
    for line in lines[start + 1 :]:
        if not line.strip():
            break
        if set(line) != {"─"}:
            # Numbers end below their heads.
            before = [len(line.split("  ")[0]), *ends]
            rows.append([line[: before[0]], *(line[b:e].strip() for b, e in zip(before, ends, strict=False))])
    check_compared(rows, unit)


def compare_markdown() -> None:
    lines = [line for line in compared("markdown").splitlines() if line.startswith("|")]
    start = next(number for number, line in enumerate(lines) if line.startswith("| class"))
    unit = re.search(r"\[(\w+)\\\]", lines[start])[1]
    check_compared([[cell.strip() for cell in line.strip("|").split("|")] for line in lines[start + 2 :]], unit)


def compare_latex() -> None:
    text = compared("latex").replace("$-$", "−")
    lines = text[text.index("    class [") :].splitlines()
    unit = re.search(r"\[(\w+)\]", lines[0])[1]
    rows = [line.strip().removesuffix(r" \\").split(" & ") for line in lines[1:] if line.endswith(r"\\")]
    check_compared([[cell.strip() for cell in row] for row in rows], unit)


def compare_csv() -> None:
    rows = list(csv.DictReader(io.StringIO(compared("csv"))))
    both = [sums("class", letter) for letter in "ab"]
    for row in rows:
        if row["row"] == "op":
            for field, side in (("a_seconds", both[0]), ("b_seconds", both[1])):
                exact = side[row["label"]]["seconds"] if row["label"] in side else None
                assert row[field] == "" if exact is None else float(row[field]) == pytest.approx(exact, rel=1e-11)
    (whole,) = (float(row["seconds"]) for row in rows if row["row"] == "difference")
    assert whole == pytest.approx(document("a")["wall"]["median"] - document("b")["wall"]["median"])
    parts = sum(float(row["seconds"]) for row in rows if row["row"] in ("op", "gap", "residual"))
    assert parts == pytest.approx(whole)


def compare_json() -> None:
    found = json.loads(compared("json"))
    both = [sums("class", letter) for letter in "ab"]
    for row in found["breakdown"]["rows"]:
        times = [each.get(row["label"], {"seconds": 0.0})["seconds"] for each in both]
        assert row["seconds"] == pytest.approx(times[0] - times[1], abs=1e-15)
    assert [each["wall"]["median"] for each in found["runs"]] == [document(letter)["wall"]["median"] for letter in "ab"]


COMPARE = {
    "text": compare_text,
    "markdown": compare_markdown,
    "latex": compare_latex,
    "csv": compare_csv,
    "json": compare_json,
}


@pytest.mark.parametrize("name", plugins.names("roofline.renderers.comparison"))
def test_formats_of_compare(name: str) -> None:
    COMPARE[name]()


# ------------------------------------------------------------------------------------------------------------ accounts

#: How each format and the page write the seconds of a row.
TIME = r"(?:[≤≥] )?([+-][\d.]+.\S?s)"


def latex_rows(text: str) -> list[str]:
    head, _, body = text.replace(r"\textmu{}", "µ").replace("$-$", "-").partition(r"\midrule")
    (unit,) = re.findall(r"& (\S?s) &", head)
    rows = [line.split(" & ")[1] for line in body.partition(r"\bottomrule")[0].strip().splitlines()]
    return [f"{cell.rpartition(' ')[2]} {unit}" for cell in rows]


def csv_rows(text: str) -> list[str]:
    rows = [row for row in csv.DictReader(io.StringIO(text)) if row["row"] == "account" and row["seconds"]]
    return [f"{float(row['seconds']):.15f} s" for row in rows]


ACCOUNT: dict[str, Callable[[str], list[str]]] = {
    "text": lambda text: re.findall(rf"^ ?\d+ +{TIME} ", text, re.MULTILINE),
    "markdown": lambda text: re.findall(rf"^\| \d+ \| {TIME} \|", text, re.MULTILINE),
    "latex": latex_rows,
    "csv": csv_rows,
    "report": lambda page: re.findall(rf'<li><p><b>.*?</b><span class="figure">{TIME}</span>', page),
}


@pytest.mark.parametrize("name", ACCOUNT)
def test_every_writer_has_the_rows_of_the_account(name: str) -> None:
    """The rows of the JSON, the largest first, as far as each shows them; the waterfall is read in test_of_figures."""
    text = report([profile("a"), profile("b")]) if name == "report" else compared(name)
    rows = [row["seconds"] for row in json.loads(compared("json"))["account"] if row["seconds"] is not None]
    told = ACCOUNT[name](text)
    assert len(told) >= 3
    for written, exact in zip(told, rows, strict=False):
        assert holds(written.replace("\xa0", " "), exact), (written, exact)


@pytest.mark.parametrize("name", [name for name in ACCOUNT if name != "csv"])
def test_every_writer_has_the_factors_of_several_runs(name: str) -> None:
    """Of three runs with one process each: the recorded time over that of the fastest."""
    profiles = [profile("a"), profile("b"), replace(profile("a"), backend="jax")]
    factor = document("a")["wall"]["median"] / document("b")["wall"]["median"]
    renderer = None if name == "report" else plugins.load("roofline.renderers.comparison", name, "format")
    text = report(profiles) if renderer is None else renderer.render(rank(profiles))
    told = re.findall(r"\b(\d+\.\d\d)x\b", text.replace("\\,", ""))
    assert any(holds(each, factor) for each in told)
