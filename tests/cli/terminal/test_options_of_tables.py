"""What is asked for of a table: rows, their order, columns of a page; and what cannot be."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from roofline import plugins

Run = Callable[..., Any]


def test_rows_that_are_asked_for(files: Path, roofline: Run) -> None:
    def ops(*words: str) -> list[str]:
        found = re.findall(r"(?:aten|mylib)::(\w+)", roofline("show", "a.json", "--by", "op", *words).out)
        return [name for name in found if name not in ("native_layer_norm",)]

    assert ops("--top", "2") == ["addmm", "_fused_adamw_"]
    assert ops("--top", "1", "--sort", "bytes") == ["_fused_adamw_"]
    assert ops("--filter", "GELU") == ["gelu"]
    assert ops("--filter", "embedding") == ["_softmax", "embedding"], "an embedding was fused into the softmax"
    assert len(ops("--all")) == len(ops()) == 6
    assert "(6 filtered out)" in roofline("show", "a.json", "--by", "op", "--filter", "gelu").out
    rows = csv.reader(io.StringIO(roofline("show", "a.json", "--by", "op", "--top", "1", "--format", "csv").out))
    assert [row[0] for row in rows] == ["op", "aten::addmm [1000] [100, 1000] [1000, 1000]", "(6 more)"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--top", "0"), "--top 0 is not possible: give at least 1, or --all."),
        (("--top", "2", "--all"), "--top and --all exclude each other: give one of them."),
        (("--sort", "colour"), "There is no column 'colour' to sort by; there are: name, ops, flop, bytes, time, "),
        (("--filter", ""), "--filter needs a text: give a part of a name."),
        (("--filter", "xyz"), "No group has 'xyz' in its name: give another text to --filter."),
        (
            ("--top", "1", "--format", "json"),
            "--top, --all, --sort and --filter have no meaning for --format json: leave ",
        ),
        (("--columns", "1"), "--columns has no meaning for --format text: leave it out, or give another format."),
        (("--columns", "3", "--format", "latex"), "--columns 3 is not possible: give 1 or 2."),
        (("--caption", "long"), "--caption has no meaning for --format text: leave it out, or give another format."),
        (("--caption", "none", "--format", "latex"), "There is no caption called 'none'; there are: short, long."),
    ],
)
def test_what_cannot_be_asked_for(files: Path, roofline: Run, words: tuple[str, ...], why: str) -> None:
    ended = roofline("show", "a.json", *words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"roofline: {why}")


def test_tables_of_a_paper(files: Path, roofline: Run) -> None:
    wide = roofline("show", "a.json", "--format", "latex", "--columns", "2", "--caption", "long").out
    assert r"\begin{table*}[t]" in wide
    assert "torch 2.13.0" in re.search(r"\\caption\{(.*)\}", wide)[1]
    both = roofline("compare", "a.json", "b.json", "--format", "latex", "--columns", "2").out
    assert both.count(r"\begin{table*}[t]") == both.count(r"\end{table*}") >= 1
    assert r"\label{tab:torch-jax-with-quite-a-long-name-where}" in both


@pytest.mark.parametrize("format", plugins.names("roofline.renderers.comparison"))
def test_compare_prints_nothing_but_the_document(files: Path, roofline: Run, format: str) -> None:
    for runs in (("a.json", "b.json"), ("a.json", "b.json", "c.json")):
        ended = roofline("compare", *runs, "--allow", "--format", format)
        assert (ended.code, ended.err) == (0, "")
        assert ("Next: " in ended.out) == (format == "text")
