"""Results as people see them: printed, in a notebook, as dictionaries and as data frames, all with the same numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import handmade
import numpy as np
import pytest
from msgspec.structs import replace

import roofline
from roofline import devices, units
from roofline.analysis.analysis import analyze
from roofline.core.schema import Profile
from roofline.projection.least import least
from roofline.renderers import figures
from roofline.renderers import json as json_format
from roofline.renderers import text as text_format
from roofline.repr_mixin import ReprMixin


def slower(profile: Profile, factor: float = 2.0) -> Profile:
    steps = tuple(factor * seconds for seconds in profile.wall.steps)
    return replace(profile, wall=replace(profile.wall, steps=steps))


RESULTS: dict[str, Callable[[Profile], ReprMixin]] = {
    "profile": lambda profile: profile,
    "analysis": analyze,
    "ranking": lambda profile: roofline.compare(profile, slower(profile), allow=True),
    "several": lambda profile: roofline.compare(profile, slower(profile), slower(profile, 3.0), allow=True),
    "what-if": lambda profile: roofline.whatif(profile, "a100-40gb"),
    "least": lambda profile: least(profile, devices.load("a100-40gb")),
    "judgement": lambda profile: roofline.check(profile, profile, counts_only=True),
}


class Page(HTMLParser):
    """The tags of a page and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


@cache
def result(kind: str) -> ReprMixin:
    return RESULTS[kind](handmade.filled())


@cache
def html(kind: str) -> str:
    return result(kind)._repr_html_()


@pytest.mark.parametrize("kind", RESULTS)
def test_a_result_prints_itself_and_fits_a_notebook(kind: str) -> None:
    shown = result(kind)
    assert len(str(shown).splitlines()) > 3
    assert kind == "profile" or repr(shown) == str(shown)
    assert len(html(kind)) < 100_000
    assert Page(html(kind)).tags <= {"div", "p", "pre", "table", "thead", "tbody", "tr", "th", "td", "img"}
    json.dumps(shown.to_dict(), allow_nan=False)
    assert len(shown.to_pandas().columns) > 2


@pytest.mark.parametrize("kind", ["profile", "analysis", "ranking", "several", "what-if"])
def test_a_cell_shows_numbers_and_a_picture(kind: str) -> None:
    page = Page(html(kind))
    assert "img" in page.tags
    assert page.tags & {"table", "pre"}


def test_a_cell_says_why_it_has_no_picture() -> None:
    """Of a step without any op there is none by group."""
    page = Page(analyze(handmade.profile(ops=(), profiled=None))._repr_html_())
    assert "img" not in page.tags
    assert "No picture: toy train, b4 s25 has no op" in page.text


def test_the_picture_of_a_projection_has_its_numbers() -> None:
    whatif = roofline.whatif(handmade.profile(), "a100-40gb")
    svg, caption = figures.render_projection(whatif, ".svg")
    texts = re.findall(r"<text[^>]*>([^<]*)<", svg.decode())
    assert {units.seconds(whatif.compared), units.seconds(whatif.seconds)} <= set(texts)
    assert f"{units.significant(whatif.speedup)}x" in texts
    assert units.seconds(whatif.seconds) in caption
    # Of one op the work is not known: neither time is that of a step, and the title says what they lack.
    assert whatif.total.not_carried > 0
    assert f"both without {units.seconds(whatif.total.not_carried)}" in caption


def test_a_profile_is_one_line_where_a_program_prints_it() -> None:
    """A test that fails, a log: the whole of it is a page and takes its time."""
    profile = handmade.profile()
    assert repr(
        profile
    ) == f"<Profile of {profile.model!r}, {profile.mode}, {profile.backend!r} on {profile.device.name!r}: " + (
        f"{len(profile.ops)} ops>"
    )
    assert str(profile) == text_format.render(analyze(profile), None).rstrip("\n")


@pytest.mark.parametrize(
    "name", ['"><img src=x onerror=alert(1)><script>alert(1)</script>\u202eevil', "x" * 10_000], ids=["acts", "long"]
)
@pytest.mark.parametrize("kind", ["profile", "ranking", "several", "what-if", "judgement"])
def test_a_name_does_nothing_in_a_notebook(kind: str, name: str) -> None:
    cell = RESULTS[kind](handmade.hostile(name))._repr_html_()
    page = Page(cell)
    assert len(cell) < 100_000
    assert "script" not in page.tags
    assert page.attributes <= {"class", "style", "alt", "src"}
    assert set(re.findall(r'src="([a-z:/+]*)', cell)) <= {"data:image/svg+xml"}
    assert "\u202e" not in cell


def test_the_table_of_ops_adds_up_to_the_step() -> None:
    """Work of the known ops, and times: with the gap those are the wall."""
    analysis = analyze(handmade.profile())
    frame = analysis.to_pandas()
    assert len(frame) == len(analysis.profile.ops)
    for column, total in (
        ("seconds", analysis.busy),
        ("own_seconds", analysis.total.own_seconds),
        ("floor", analysis.total.floor),
        ("loss", analysis.total.loss),
        ("flops", analysis.total.flops),
        ("bytes_read", analysis.total.bytes_read),
        ("launches", analysis.total.kernels),
    ):
        assert np.nansum(frame[column]) == pytest.approx(total, rel=1e-12), column
    assert frame.seconds.sum() + analysis.gap == pytest.approx(analysis.wall)
    sums = frame.groupby("group").seconds.sum()
    assert {group: pytest.approx(total.seconds) for group, total in analysis.by("group").items()} == dict(sums)


def test_unknown_is_no_number_in_a_data_frame() -> None:
    profile = handmade.profile()
    unknown = [not one.cost.flops_known for one in profile.signatures]
    frame = profile.to_pandas()
    assert any(unknown), "the example has an op of unknown work"
    assert list(frame.flops.isna()) == [unknown[op.signature] for op in profile.ops]
    counted = replace(profile, profiled=None)
    assert counted.to_pandas().seconds.isna().all()


def test_a_dictionary_is_the_document_of_the_command_line(tmp_path: Path) -> None:
    profile = handmade.profile()
    document: Any = json.loads(json_format.render(analyze(profile), None))
    assert json.loads(json.dumps(profile.to_dict())) == document


def test_without_pandas_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roofline.plugins.importable", lambda module: module != "pandas")
    with pytest.raises(roofline.errors.MissingError, match="roofline\\[pandas\\]"):
        handmade.profile().to_pandas()
