"""What may stand in the page: text stays text, whatever it is."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import handmade
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofline.renderers.report.parts.html import Html, data, join, name, tag


class Read(HTMLParser):
    """The elements, attributes and text of some HTML, as a browser reads them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def harmless(text: str) -> str:
    """What is left of a text without controls and bidirectional marks, by Unicode's own table."""
    import unicodedata

    marks = ("LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI")
    drop = {"\u061c", "\u200e", "\u200f", "\u2028", "\u2029", "\ufeff"}
    return "".join(
        c
        for c in text
        if not (
            c in drop or unicodedata.bidirectional(c) in marks or (unicodedata.category(c) == "Cc" and c not in "\t\n")
        )
    )


@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=60))
def test_text_comes_out_as_it_went_in(text: str) -> None:
    found = Read(tag("p", text, title=text))
    assert found.tags == ["p"]
    # Between a number and its unit stands a space at which no line ends.
    assert found.text.replace("\N{NO-BREAK SPACE}", " ") == harmless(text).replace("\N{NO-BREAK SPACE}", " ")
    assert found.attributes == [("title", harmless(text))]


def test_no_line_ends_between_a_number_and_its_unit() -> None:
    glued = "took 5\N{NO-BREAK SPACE}ms, 12\N{NO-BREAK SPACE}% of 3 steps"
    assert Read(tag("p", "took 5 ms, 12 % of 3 steps")).text == glued
    assert Read(tag("td", "5 ms")).text == "5 ms"  # a cell of a number ends nowhere


def test_a_name_may_go_on_where_a_part_of_it_ends() -> None:
    assert name("layer.0/self_attn") == "<bdi>layer.0/<wbr>self_<wbr>attn</bdi>"
    assert Read(name("a::b<c, d>[1,2]")).text == "a::b<c, d>[1,2]"


@pytest.mark.parametrize(
    "hostile", [*handmade.HOSTILE, "a" * 10_000, "</script><script>alert(1)</script>", "-->", "]]>"]
)
def test_a_name_is_one_element_of_printable_text(hostile: str) -> None:
    found = Read(name(hostile, 60))
    assert [tag for tag in found.tags if tag != "wbr"] == ["bdi"]
    assert found.text.isprintable()
    assert len(found.text) <= 60
    assert all(len(value or "") <= 1000 for _, value in found.attributes)


def test_a_long_name_keeps_what_says_most() -> None:
    assert "abcde…" in name("abcdefgh", 6)
    assert "…defgh" in name("abcdefgh", 6, end=True)
    assert 'title="abcdefgh"' in name("abcdefgh", 6)


def test_only_what_is_html_already_is_left_alone() -> None:
    assert tag("b", "<i>", Html("<i></i>")) == "<b>&lt;i&gt;<i></i></b>"
    assert join(["a&b", None, [Html("<br>")]]) == "a&amp;b<br>"
    assert tag("input", checked=True, hidden=False, value=None, data_run=0) == '<input checked data-run="0">'


@pytest.mark.parametrize("hostile", [*handmade.HOSTILE, "</script>", "<!--<script>", "\u2028"])
def test_data_cannot_end_its_element(hostile: str) -> None:
    text = data({"name": hostile})
    assert not set(text) & set("<>&")
    assert text.isascii()
    assert json.loads(text) == {"name": hostile}


def test_numbers_that_json_lacks_are_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        data([float("nan")])
