"""docs/reliability.md: each row of its tables names tests that exist, and what it says of marks is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from roofline import plugins

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
ID = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
#: Rows of the tables of faults: what happens, verbs, what is seen, tests.
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.partition("## Faults")[2].partition("\n## ")[0].splitlines()
    if line.startswith("| ") and not line.startswith(("| --- ", "| fault ", "| when ", "| what it does "))
]
#: What a row may call verbs beside their names.
WORDS = {"all", "show and others", "import DIR", "profile (PyTorch)"}


def test_there_are_rows() -> None:
    assert len(ROWS) > 60
    verbs = {verb.strip() for row in ROWS for verb in row[1].split(",")}
    assert verbs - WORDS <= set(plugins.names("roofline.cli"))
    assert {"profile", "run", "sweep", "import DIR"} <= verbs


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} ({row[1]})")
def test_each_row_names_tests_that_there_are(row: list[str]) -> None:
    assert len(row) == 4
    tests = ID.findall(row[3])
    assert tests
    assert ID.sub("", row[3]).strip(", ") == ""
    for file, name in tests:
        assert re.search(rf"^def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), f"{file}::{name}"
