"""What `compare` says of runs whose ops are in no block: rows by class, and the ops that differ. Built by synthetic.py.

A and B have one step each. Both do 3 products of 20 MFLOP (300 and 250 us), a norm (30 and 20 us) and an add of 0.6 MB
(100 and 40 us) which may come from the cache of 1 MB; A has a copy besides (100 us). B's device is twice as fast:

    class            A      B   A - B   ceilings                     kernels
    contraction    900    750     150   3 * (200 - 100) = 300        150 - 300
    movement       100              100                               (nothing that both do: other)
    pointwise      100     40      60   15 - 7.5 to 60 - 30           52.5 to 30
    normalisation   30     20      10   5 - 5 to 20 - 10              10 to 0
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace as change
from functools import cache

import handmade
import pytest
import randomly
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from synthetic import LAYER, LINEAR, NORM, Row, step

from roofline import plugins
from roofline.analysis.analysis import KEYS
from roofline.comparison.account.account import account
from roofline.comparison.ranking import Ranking, rank
from roofline.content.comparison.account_rows import View
from roofline.core.schema import Imported, Profile, Profiled, Wall
from roofline.renderers import figures

FORMATS = plugins.names("roofline.renderers.comparison")
FAST = replace(handmade.device(matrix_fp32=200e9, vector_fp32=100e9, dram_copy=20e9, cache_llc=80e9), name="Fast One")
ADD, COPY = Row("aten::add", "pointwise", 100, bytes=0.6e6), Row("aten::copy_", "movement", 100, bytes=4e6)


def once(profile: Profile) -> Profile:
    """The profile as the trace of one step is imported: no block, no history of buffers."""
    (wall,) = profile.profiled.corrected[:1]
    ops = tuple(replace(op, own_ns=op.own_ns[1:2]) for op in profile.ops)
    profiled = Profiled(
        walls=(wall,), corrected=(wall,), dropped=0, events=9, event_cost=0.0, idle=(), idle_causes={}, joined=1.0
    )
    return replace(
        profile,
        ops=ops,
        profiled=profiled,
        blocks=("(top)",) * len(profile.blocks),
        wall=Wall(steps=(wall,), source="profiled"),
        imported=Imported(),
    )


@cache
def traces(by: str | None = None) -> Ranking:
    a = step([LINEAR] * 3 + [NORM, ADD, COPY])
    b = step([change(LINEAR, own=250)] * 3 + [change(NORM, own=20), change(ADD, own=40)], device=FAST)
    return rank([once(a), once(b)], as_given=True, by=by)


def render(name: str, ranking: Ranking) -> str:
    """Render with the tables, which text shows where they are asked for."""
    more = {"view": View(details=True)} if name == "text" else {}
    return plugins.load("roofline.renderers.comparison", name, "format").render(ranking, **more)


@pytest.mark.parametrize("name", FORMATS)
def test_output(name: str, golden: Callable[[str, str], None]) -> None:
    text = render(name, traces())
    if name == "json":
        told = {key: value for key, value in json.loads(text).items() if key in ADDED}
        text = json.dumps(told, indent=1, default=str) + "\n"
        text = re.sub(r"-?\d+\.\d{8,}(e-?\d+)?|-?\d\.\d+e-\d+", lambda found: f"{float(found[0]):.9f}", text)
    golden(f"comparison-no-blocks.{ {'text': 'txt', 'markdown': 'md', 'latex': 'tex'}.get(name, name) }", text)


ADDED = ("by", "breakdown", "observations", "unresolved", "findings")


def test_of_one_step_no_difference_is_told_from_noise_and_no_cause_is_named() -> None:
    for name in FORMATS:
        text = " ".join(render(name, traces()).split())
        assert "With 1 step of A and 1 step of B, no difference can be separated from noise" in text
        assert not re.search("because|cause[sd] by|due to|thanks to|Why", text)


@pytest.mark.parametrize("key", [key for key in KEYS if key != "block"])
def test_rows_of_the_document_and_the_gap_are_the_difference(key: str) -> None:
    found = json.loads(render("json", traces(key)))
    gap = sum(term["seconds"] for term in found["terms"] if term["kind"].startswith("gap."))
    rows = found["breakdown"]["rows"]
    assert found["breakdown"]["by"] == found["by"] == key
    assert found["breakdown"]["why"] == ""
    assert sum(row["seconds"] for row in rows) + gap == pytest.approx(found["difference"])
    for row in rows:
        for ceilings, kernels in zip(row["ceilings"], row["kernels"], strict=True):
            assert ceilings + kernels + row["other"] == pytest.approx(row["seconds"], abs=1e-15)


def test_blocks_that_are_asked_for_are_the_terms() -> None:
    for name in ("text", "markdown"):
        text = render(name, traces("block"))
        assert "(top)" in text
        assert "class [" not in text.replace("\\", "")
    assert json.loads(render("json", traces("block")))["breakdown"] is None


def test_a_long_table_has_its_largest_rows_and_their_sum_is_kept() -> None:
    rows = tuple(change(LINEAR, flops=1e6 * (1 + n), own=100 + 10 * n) for n in range(40))
    a, b = once(step(rows)), once(step(tuple(change(row, own=100) for row in rows)))
    lines = render("text", rank([a, b], as_given=True, by="op")).splitlines()
    (left,) = (line for line in lines if "(15 more)" in line)
    # The 25 that differ most have 390 to 150 us more; of the others 140 to 0, 1050 in all. All have 7800.
    assert left.split()[2] == "+1.05"
    assert any(line.endswith("all ops") and line.split()[2] == "+7.80" for line in lines)
    assert sum("aten::addmm" in line for line in lines) == 25  # told once, not as observations too


def test_several_runs_have_few_observations_each_and_the_rows_that_are_asked_for() -> None:
    runs = [once(step([change(LINEAR, own=own), change(NORM, own=own)] + [ADD] * 3)) for own in (100, 120, 150)]
    for name, head in (("text", "by op ("), ("markdown", "by op \\(")):
        text = " ".join(render(name, rank(runs)).split())
        assert text.replace("\\", "").count(head.replace("\\", "")) == 2
        assert "all ops" not in text
        assert render(name, rank(runs, by="class")).count("all ops") == 2
    # Where no op has a name in common, they are told by class.
    runs = [once(step([change(LINEAR, name=str(n), own=100 * n), change(NORM, name=f"norm{n}")])) for n in (1, 2, 3)]
    assert render("text", rank(runs)).count("Where the runs differ most, by class (100 %") == 2


def test_intervals_stand_beside_rows_of_enough_steps() -> None:
    nowhere = {"blocks": ("(top)",) * 3}
    found = rank([step(**nowhere), step([change(row, own=1.5 * row.own) for row in LAYER * 4], **nowhere)])
    text = render("text", found)
    assert "95 % interval" in next(line for line in text.splitlines() if line.startswith("class ["))
    assert "Where the runs differ most, by op" in text


@pytest.mark.parametrize(
    "hostile", ["\x1b[31mred\u202e\r\n", "a|b <script>", "`code` [link](http://x.y)", "n" * 300, ""]
)
def test_hostile_names_stay_text_in_every_row(hostile: str) -> None:
    plain, bare = once(handmade.hostile(hostile)), once(handmade.profile(ops=()))
    for by, runs in ((None, [plain, once(handmade.profile())]), ("kernel", [bare, plain]), ("op", [plain] * 3)):
        ranking = rank(runs, by=by)
        for name in FORMATS:
            text = render(name, ranking)
            assert all(c.isprintable() or c == "\n" for c in text)
            assert not re.search(r"\b(nan|None|inf)\b", text)
            if name == "markdown":
                assert not re.search(r"<script|(?<!\\)\[link", text)
                tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
                assert all(
                    len({len(re.findall(r"(?<!\\)\|", row)) for row in each.splitlines()}) == 1 for each in tables
                )
            if name == "text":
                assert max(len(line) for line in text.splitlines()) <= 100


@settings(deadline=None, max_examples=25)
@given(randomly.profiles(), randomly.profiles(), st.sampled_from([None, *KEYS]))
def test_any_two_runs_are_shown(a: Profile, b: Profile, by: str | None) -> None:
    ranking = rank([a, b], as_given=True, by=by)
    for name in FORMATS:
        render(name, ranking)
    document = json.loads(render("json", ranking))
    gap = sum(term["seconds"] for term in document["terms"] if term["kind"].startswith("gap."))
    for key in ("breakdown", "observations"):
        if (found := document[key]) is not None:
            whole = sum(row["seconds"] for row in found["rows"]) + found["rest"]
            assert whole + gap == pytest.approx(document["difference"], rel=1e-9, abs=1e-11)


def test_a_waterfall_has_the_rows_of_the_account() -> None:
    (pair,) = traces().pairs
    figure, caption = figures.build("waterfall", [pair.comparison.a, pair.comparison.b], 7.0)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    classes = [f"the same {name} ops" for name in ("matmul", "pointwise", "normalisation")]
    assert labels[1:-1] == [classes[0], "copies: copy_, forward", *classes[1:], "not known"]
    assert "Bars are the rows of their account, which add up" in caption.long
    # A caption stands alone, and calls the runs by their names.
    named = account(pair.comparison, pair.names)
    assert all(row.text in caption.long for row in named.rows if row.seconds)
