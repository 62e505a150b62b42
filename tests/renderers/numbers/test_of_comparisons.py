"""The formats of `compare` have the numbers of both runs' JSON. A new format needs a reader."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence

import pytest
from same_numbers import document, holds, profile, sums

from roofline import plugins
from roofline.comparison.ranking import rank
from roofline.content.terminal import Page


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
