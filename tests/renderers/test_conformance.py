"""What every format must do, whatever is in the folder: escape names, close its table, survive an empty profile."""

from __future__ import annotations

import csv
import io
import json
import re
from functools import cache
from html.parser import HTMLParser

import handmade
import pytest
import set_in_latex
from msgspec.structs import replace

from roofline import plugins
from roofline.analysis.analysis import KEYS, WorkAnalysis, analyze
from roofline.core.schema import Compilation, Profile, Wall
from roofline.errors import InputError

NAMES = plugins.names("roofline.renderers")
#: Formats of what ran when.
TIMED = {"perfetto"}
pytestmark = pytest.mark.parametrize("name", NAMES)


def render(name: str, analysis: WorkAnalysis, by: str | None = None) -> str:
    text = plugins.load("roofline.renderers", name, "format").render(analysis, by)
    assert isinstance(text, str)
    return text


# What is rendered by several keys is worked out once.


@cache
def plain_run() -> WorkAnalysis:
    return analyze(handmade.profile())


@cache
def hostile_run(hostile: str) -> WorkAnalysis:
    return analyze(handmade.hostile(hostile))


@pytest.mark.parametrize("by", [None, *KEYS])
def test_every_key_gives_a_document_that_ends_in_a_newline(name: str, by: str | None) -> None:
    assert render(name, plain_run(), by).endswith("\n")


@pytest.mark.parametrize("hostile", handmade.HOSTILE)
@pytest.mark.parametrize("by", [None, "op", "scope", "block", "phase", "kernel"])
def test_hostile_names_stay_text(name: str, hostile: str, by: str | None) -> None:
    text = render(name, hostile_run(hostile), by)
    # No format lets a control character or a bidirectional mark through to a terminal.
    assert all(c.isprintable() or c == "\n" for c in text)
    CHECKS.get(name, lambda text: None)(text)


@cache
def compiled_run(hostile: str) -> WorkAnalysis:
    facts = Compilation(
        compiler=hostile,
        mode=hostile,
        breaks={hostile: 1},
        recompilations=(hostile,),
        eager={hostile: (1, 1e-3)},
        notes=(hostile,),
    )
    plain = handmade.hostile(hostile)
    ops = tuple(replace(op, constituents=(0, 1, 2, 3)) for op in plain.ops)
    return analyze(replace(plain, compilation=facts, ops=ops))


@pytest.mark.parametrize("hostile", handmade.HOSTILE)
@pytest.mark.parametrize("by", [None, "op", "kernel"])
def test_hostile_names_of_compiled_code_stay_text(name: str, hostile: str, by: str | None) -> None:
    text = render(name, compiled_run(hostile), by)
    assert all(c.isprintable() or c == "\n" for c in text)
    CHECKS.get(name, lambda text: None)(text)


def test_a_profile_without_ops(name: str) -> None:
    analysis = analyze(handmade.profile(ops=()))
    for by in (None, *KEYS):
        render(name, analysis, by)


@pytest.mark.parametrize("profile", [handmade.profile(profiled=None), handmade.profile(profiled=None, ops=())])
@pytest.mark.parametrize("by", [None, *KEYS])
def test_a_counted_profile_has_work_and_no_time(name: str, by: str | None, profile: Profile) -> None:
    if name in TIMED:
        with pytest.raises(InputError, match="was counted and not timed: measure it again without --count-only"):
            render(name, analyze(profile), by)
        return
    text = render(name, analyze(profile), by)
    assert not re.search(r"\b(nan|NaN|inf|per step|host time|attained \d)\b", text)


def test_a_profile_that_knows_next_to_nothing(name: str) -> None:
    plain = handmade.profile()
    profile = handmade.profile(
        device=replace(plain.device, ceilings={}, caches=(), kind="cuda"),
        wall=Wall(steps=(0.0125,), source="profiled"),
        batch=None,
        seq=None,
        samples=None,
        tokens=None,
        parameters=None,
        memory=type(plain.memory)(),
        versions={},
    )
    assert not re.search(r"\b(nan|None|inf)\b", render(name, analyze(profile)))


def _lines_fit(text: str) -> None:
    assert max(len(line) for line in text.splitlines()) <= 100


def _json_is_ascii(text: str) -> None:
    json.loads(text)
    assert text.isascii()


def _csv_has_no_formula(text: str) -> None:
    rows = list(csv.reader(io.StringIO(text)))
    assert {len(row) for row in rows} == {len(rows[0])}
    for cell in (cell for row in rows for cell in row):
        number = re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", cell)
        assert number or not cell.startswith(("=", "+", "-", "@", "\t", "\r"))


def _markdown_has_no_markup(text: str) -> None:
    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            raise AssertionError(f"a tag: {tag}")

    Tags().feed(text)
    table = [line for line in text.splitlines() if line.startswith("| ")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table}) == 1
    body = text.replace("\\\\", "")
    assert not re.search(r"(?<!\\)[`\[]", body)
    assert "://" not in body


CHECKS = {
    "text": _lines_fit,
    "json": _json_is_ascii,
    "perfetto": _json_is_ascii,
    "csv": _csv_has_no_formula,
    "markdown": _markdown_has_no_markup,
    "latex": set_in_latex.check,
}
