"""The wall chart: shares of work and of busy time that add up, what stands apart, and every format of the table."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import handmade
import pytest
import set_in_latex
from msgspec.structs import replace

from roofline import plugins, units
from roofline.analysis.analysis import Analysis, analyze, analyze_timed
from roofline.analysis.wall_chart import CLASSES, group_shares
from roofline.api.import_trace import import_trace
from roofline.content import bounds, wording
from roofline.content.facts import wall
from roofline.content.facts.wall import chart
from roofline.content.terminal import Page
from roofline.core.cost import unknown
from roofline.core.schema import Profiled, load
from roofline.renderers import figures

ROOT = Path(__file__).resolve().parents[3]
H100 = ROOT / "profiles" / "h100"
FORMATS = plugins.names("roofline.renderers.wall")
#: Shares of busy time on an H100, training BERT-base at batch 32 x 128, and of the article on a V100 [%].
BUSY = {
    "bert-torch-train-b32-bf16": (57.2, 23.4, 19.4),
    "bert-torch-compile-default-train-b32-bf16": (65.0, 21.6, 13.4),
    "bert-torch-train-b32-tf32": (73.6, 12.8, 13.6),
    "bert-torch-train-b32-fp32": (91.0, 4.4, 4.6),
    "bert-jax-buffers-on-train-b32-tf32": (43.9, 30.8, 25.4),
}
ARTICLE = ((99.8, 0.17, 0.03), (61.0, 25.5, 13.5))


@cache
def h100(name: str) -> Analysis:
    return analyze(load(H100 / f"{name}.json"))


def counted() -> Analysis:
    return analyze(handmade.profile(profiled=None))


@cache
def plain_run() -> Analysis:
    return analyze_timed(handmade.profile())


@cache
def hostile_run(hostile: str) -> Analysis:
    return analyze_timed(replace(handmade.hostile(hostile), mode=hostile))


@pytest.mark.parametrize("name", BUSY)
def test_the_article_holds_on_an_h100_in_bf16_and_not_in_fp32(name: str) -> None:
    """Matmuls are over 99 % of the FLOPs in each, and what they take of the time depends on their arithmetic."""
    shown = chart([h100(name)])
    (run,) = shown.runs
    assert tuple(row.group for row in run.classes) == CLASSES
    assert tuple(round(100 * row.time, 1) for row in run.classes) == BUSY[name]
    for field in ("flops", "bytes", "time"):
        assert sum(getattr(row, field) for row in run.classes) == pytest.approx(1.0)
    assert run.classes[0].flops > 0.99
    # All groups, and no gap, are the busy time.
    assert sum(row.busy for row in run.rows) == pytest.approx(1.0)
    (published,) = shown.published
    assert tuple(round(100 * row.flops, 2) for row in published.rows) == ARTICLE[0]
    assert tuple(round(100 * row.time, 1) for row in published.rows) == ARTICLE[1]
    assert [row.bytes for row in published.rows] == [None] * 3


def test_shares_are_of_the_three_groups_and_the_rest_stands_apart() -> None:
    """By handmade.py: 5 ms matmul, 1.96 ms normalisation, 0.425 ms pointwise; 3 ms optimizer and 0.317 ms other."""
    analysis = analyze(handmade.profile())
    sums = analysis.by("group")
    rows = {row.group: row for row in group_shares(analysis)}
    three = sum(sums[group].seconds for group in CLASSES)
    assert rows["matmul"].time == pytest.approx(sums["matmul"].seconds / three)
    assert rows["matmul"].busy == pytest.approx(sums["matmul"].seconds / analysis.busy)
    assert rows["matmul"].slower == 1
    rate = sums["pointwise"].flop_rate
    assert rate
    assert rows["pointwise"].slower == pytest.approx(sums["matmul"].flop_rate / rate)
    assert (rows["optimizer"].flops, rows["optimizer"].time) == (None, None)
    assert chart([analysis]).runs[0].apart == "optimizer 28 %, other 3 %"


def test_a_counted_profile_has_shares_of_work_and_none_of_time() -> None:
    analysis = counted()
    rows = [row for row in group_shares(analysis) if row.group in CLASSES]
    assert sum(row.flops for row in rows) == pytest.approx(1.0)
    assert [(row.time, row.busy, row.slower) for row in rows] == [(None, None, None)] * 3
    shown = chart([analysis])
    assert "busy time" not in shown.title
    assert "of the known bytes" in shown.title
    assert [(row.seconds, row.floor, row.bound) for row in shown.runs[0].classes] == [(None, None, None)] * 3
    assert any("counted and not timed" in note for note in shown.notes)


def test_a_step_without_a_class_has_none_of_its_work() -> None:
    """A group without ops does nothing, which is known: 0, and not unknown."""
    products = tuple(op for op in handmade.profile().ops if analyze(handmade.profile()).op_class(op) == "contraction")
    rows = group_shares(analyze(handmade.profile(ops=products)))
    assert [(row.flops, row.time) for row in rows] == [(1.0, 1.0), (0.0, 0.0), (0.0, 0.0)]
    assert chart([analyze(handmade.profile(ops=()))]).title == "Neither work nor time of the matmuls is known"


def test_shares_of_work_that_is_not_all_known_say_so() -> None:
    """Of an op outside the three groups, and of one of two pointwise ops, nothing is known."""
    profile = handmade.profile()
    assert "of the known FLOPs and " in chart([analyze(profile)]).title
    known = tuple(op for op in profile.ops if profile.signatures[op.signature].name != "mylib::mystery")
    assert "of the FLOPs and " in chart([analyze(handmade.profile(ops=known))]).title
    assert "of the FLOPs and " in chart([analyze(handmade.profile(ops=known, profiled=None))]).title


@pytest.mark.parametrize("profiled", [handmade.profile().profiled, None])
def test_work_has_no_shares_where_a_group_has_only_unknown_work(profiled: Profiled | None) -> None:
    pointwise = {"pointwise", "movement", "embedding", "random"}
    signatures = tuple(
        replace(one, cost=unknown("no formula")) if one.op_class in pointwise else one for one in handmade.SIGNATURES
    )
    shown = chart([analyze(handmade.profile(signatures=signatures, profiled=profiled))])
    assert [(row.flops, row.bytes) for row in shown.runs[0].classes] == [(None, None)] * 3
    assert "FLOPs" not in shown.title
    assert "bytes" not in shown.title


def test_published_shares_stand_beside_steps_of_their_model_alone() -> None:
    step = load(H100 / "bert-torch-train-b32-bf16.json")
    for changed, number in (({}, 1), ({"model": "bert-layer"}, 1), ({"model": "gpt2"}, 0), ({"mode": "infer"}, 0)):
        shown = chart([analyze(replace(step, **changed))])
        assert len(shown.published) == number
        for run in shown.published:
            assert run.name == "Ivanov et al. 2020 (fp16)"
            assert "V100 SXM2" in run.about
            # (99.8 / 61) / (0.17 / 25.5) = 245 and (99.8 / 61) / (0.03 / 13.5) = 736
            assert [wall.relative_rate(row.slower) for row in run.rows] == ["1", "1/250", "1/740"]


@pytest.mark.parametrize(
    ("slower", "told"),
    [(1.0, "1"), (425.7, "1/430"), (99.9, "1/100"), (43.3, "1/43"), (1.26, "1/1.3"), (0.5, "2.0x"), (None, "–")],
)
def test_rates_are_fractions_of_the_matmuls(slower: float | None, told: str) -> None:
    assert wall.relative_rate(slower) == told


def test_every_run_is_named_with_its_arithmetic() -> None:
    shown = chart([h100(name) for name in BUSY])
    assert [run.name for run in shown.runs] == [
        *("torch (bf16)", "torch-compile (bf16)", "torch (tf32)", "torch (fp32)", "jax (tf32)"),
    ]
    assert "NVIDIA H100" in shown.subject


def test_the_title_names_what_its_shares_are_of_where_groups_stand_apart() -> None:
    """A training step has an optimizer: of all of its busy time the matmuls take less than the title's share."""
    shown = chart([h100(name) for name in BUSY])
    shares = "Matmuls are 99.3 to 99.8 % of the FLOPs and 44 to 91 % of the busy time"
    assert shown.title == f"{shares} of matmul, normalisation and pointwise ops"
    matmuls = [row for run in shown.runs for row in run.rows if row.group == "matmul"]
    assert all(row.busy < row.time for row in matmuls if row.busy is not None and row.time is not None)
    whole = chart([h100("bert-torch-infer-b32-tf32")])
    assert not any(row.apart for row in whole.runs[0].shown)
    assert whole.title.endswith("% of the busy time")


@pytest.mark.parametrize(
    ("name", "group", "words"),
    [
        ("bert-torch-train-b32-fp32", "matmul", "compute-limited, at 83 % of FP32 peak"),
        (
            *("bert-torch-train-b32-fp32", "normalisation"),
            "memory-limited, at 21 to 25 % of the ops' roofs (cache and DRAM bandwidth)",
        ),
        # 42 % of its time is under the launch floor.
        ("bert-torch-train-b32-bf16", "normalisation", "58 % memory-limited, at 14 to 18 % of cache bandwidth"),
        ("bert-torch-compile-default-train-b32-bf16", "pointwise", "near the ridge, at 44 to 52 % of erf ceiling"),
        (
            *("bert-jax-buffers-on-train-b32-tf32", "pointwise"),
            "memory-limited, at 35 to 52 % of the ops' roofs (DRAM and cache bandwidth)",
        ),
    ],
)
def test_a_bound_names_its_roof_and_its_share_of_the_time(name: str, group: str, words: str) -> None:
    (run,) = chart([h100(name)]).runs
    assert next(row.words for row in run.rows if row.group == group) == words


def test_the_key_says_which_ops_a_group_holds() -> None:
    """Pooling and a loss are no normalisation, though their group has that name."""
    pooled = tuple(
        replace(s, op_class="reduction") if s.op_class == "normalisation" else s for s in handmade.SIGNATURES
    )
    for signatures, words in (
        (handmade.SIGNATURES, "normalisation, softmax"),
        (pooled, "normalisation: softmax, reduction"),
    ):
        items = [analyze(handmade.profile(signatures=signatures))]
        assert chart(items).members("normalisation") == words
        assert chart(items).members("matmul") == "matmul"
        drawn, _ = figures.render("wall", items, ".svg", 7.0)
        assert f">{words}<".encode() in drawn


def test_a_bound_is_said_as_in_the_verdict() -> None:
    """Of a step of layer norms alone (8 µs each, a launch takes 5 there), and of one that is faster than its roof."""
    norms = tuple(op for op in handmade.OPS if handmade.profile().signatures[op.signature].name.endswith("layer_norm"))
    for device, words in (
        (handmade.device(), "overhead-limited, at 1.6 times the launch floor"),
        (handmade.device(**{"launch.torch-eager": 2e-6}), "overhead-limited, at 4.0 times the launch floor"),
        (handmade.device(**{"launch.torch-eager": 10e-6}), "(above its roof)"),
    ):
        analysis = analyze(handmade.profile(ops=norms), device)
        row = next(row for row in chart([analysis]).runs[0].rows if row.group == "normalisation")
        assert row.words.endswith(words)
        times, upper = (split(analysis)["overhead"] for split in (bounds.split, bounds.split_at_upper_end))
        assert row.words == wording.bound(analysis, "overhead", times, upper)  # of which a verdict is made


@pytest.mark.slow
def test_the_range_of_a_minimum_is_said(recorded: Callable[[str], Path]) -> None:
    """A trace does not say what the caches held."""
    shown = chart([analyze(import_trace(recorded("h100_bert_small_infer.json.gz")))])
    row = shown.runs[0].classes[0]
    assert row.floor
    assert row.floor[0] < row.floor[1]
    assert any("minimum times are ranges" in note for note in shown.notes)
    cell = next(column.cell for column in wall.COLUMNS if column.name == "minimum")
    assert re.fullmatch(r"[\d.]+(–| µs to )[\d.]+ \w+", cell(row))


# ------------------------------------------------------------------------------------------------------------ formats


def render(name: str, *analyses: Analysis, **more: Any) -> str:
    text = plugins.load("roofline.renderers.wall", name, "format").render(chart(analyses), **more)
    assert isinstance(text, str)
    return text


def test_every_format_of_the_table_of_groups_has_one() -> None:
    assert set(FORMATS) == {"csv", "json", "latex", "markdown", "text"}


@pytest.mark.parametrize("name", FORMATS)
def test_formats_survive_what_is_hostile_counted_or_empty(name: str) -> None:
    for hostile in handmade.HOSTILE:
        text = render(name, hostile_run(hostile), plain_run())
        assert text.endswith("\n")
        assert all(c.isprintable() or c == "\n" for c in text)
        if name == "latex":
            set_in_latex.check(text)
        if name == "csv":
            assert not any(
                cell.startswith(("=", "+", "-", "@")) for row in csv.reader(io.StringIO(text)) for cell in row
            )
        if name == "markdown":
            table = [line for line in text.splitlines() if line.startswith("| ")]
            assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table}) == 1
    for analysis in (counted(), analyze(handmade.profile(ops=())), analyze(handmade.profile(ops=(), profiled=None))):
        assert not re.search(r"\b(nan|None|inf)\b", render(name, analysis))


def test_programs_read_the_same_shares() -> None:
    analyses = [h100("bert-torch-train-b32-bf16"), counted()]
    document = json.loads(render("json", *analyses))
    rows = list(csv.DictReader(io.StringIO(render("csv", *analyses))))
    runs = [*document["runs"], *document["published"]]
    assert len(rows) == sum(len(run["groups"]) for run in runs)
    cells = iter(rows)
    for run in runs:
        for group, row in run["groups"].items():
            line = next(cells)
            assert line["group"] == group
            for field in ("flops", "bytes", "time", "busy_share", "matmul_rate_over_rate", "seconds", "floor_reach"):
                assert (float(line[field]) if line[field] else None) == pytest.approx(row[field])
    assert document["runs"][1]["timed"] is False
    assert document["published"][0]["device"] == "V100 SXM2"


@pytest.mark.parametrize("width", [60, 100, 140])
def test_the_text_is_as_wide_as_its_page(width: int) -> None:
    text = render("text", h100("bert-torch-train-b32-bf16"), page=Page(width))
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize(("width", "bytes_too"), [(80, False), (100, True)])
def test_long_bounds_take_several_lines_and_no_column_from_others(width: int, bytes_too: bool) -> None:
    """Published rows stand below the last rule, one line each."""
    text = render("text", h100("bert-jax-buffers-on-train-b32-tf32"), page=Page(width))
    assert "  bound" in text
    assert ("bytes" in text.partition("───")[0].partition("separately")[2]) == bytes_too
    assert "memory-limited, at 35 to 52 % of the ops' roofs (DRAM and cache bandwidth)" in " ".join(text.split())
    assert text.rpartition("─\n")[2].startswith("Ivanov et al.")


def test_long_bounds_take_several_lines_of_a_cell_in_latex() -> None:
    text = render("latex", h100("bert-jax-buffers-on-train-b32-tf32"), columns=2)
    assert "memory-limited, at 35 to 52 \\% of the ops' roofs\\newline{}" in text
    assert " & bytes & " in text
    # Of one column the bounds have no room: no line of the table is left empty for them.
    narrow = [
        line for line in render("latex", h100("bert-jax-buffers-on-train-b32-tf32")).splitlines() if " & " in line
    ]
    assert not any(set(line) <= set(" &\\") for line in narrow)


@pytest.mark.parametrize("width", [3.3, 7.0])
def test_the_caption_has_what_the_figure_has_no_room_for(width: int) -> None:
    _, caption = plugins.load("roofline.renderers.figures", "wall", "kind").figure([h100(name) for name in BUSY], width)
    for words in (caption.short, caption.long):
        assert "normalisation: 58 % memory-limited, at 14 to 18 % of cache bandwidth" in words
    rate = "1/430 of the FLOP/s of matmuls"
    assert rate in caption.long
    assert (rate in caption.short) == (width < 7)


def test_text_of_an_h100(golden: Callable[[str, str], None]) -> None:
    golden("wall.txt", render("text", *map(h100, BUSY)))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("a.json", "b.json"), "takes one profile, and 2 are given: leave the others out, add --wall"),
        (("a.json", "--wall", "--by", "op"), "--wall always shows a table by group: leave --by and --depth out."),
        (("a.json", "--wall", "--top", "2"), "--top, --all, --sort and --filter have no meaning for --format text"),
        (("a.json", "--wall", "--format", "perfetto"), "There is no format of the wall chart called 'perfetto'"),
    ],
)
def test_what_show_refuses(words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    from roofline.cli import main

    with pytest.raises(SystemExit) as ended:
        main(["show", *words])
    assert ended.value.code == 2
    assert told in " ".join(capsys.readouterr().err.split())


# ----------------------------------------------------------------------------------------------------- the page of docs

PAGE = (ROOT / "docs" / "wall.md").read_text(encoding="utf-8")


def test_the_page_states_the_shares_of_the_profiles() -> None:
    table = [line for line in PAGE.splitlines() if line.startswith("|")][2:]
    for line, (name, shares) in zip(table, BUSY.items(), strict=False):
        _, *cells, took = (cell.strip() for cell in line.strip("|").split("|"))
        assert cells == [f"{share} %" for share in shares]
        assert took == units.seconds(h100(name).by("group")["matmul"].seconds)


def test_the_sentences_below_the_picture_say_what_the_table_says() -> None:
    """The numbers of all but torch.compile are ranges over these four runs."""
    page = " ".join(PAGE.split())
    runs = dict(zip(BUSY, chart([h100(name) for name in BUSY]).runs, strict=True))
    shares = {name: units.percent(run.classes[0].time, 0) for name, run in runs.items()}
    jax = shares["bert-jax-buffers-on-train-b32-tf32"]
    compiled = runs.pop("bert-torch-compile-default-train-b32-bf16")
    assert (
        f"matmuls take {jax} of the busy time in JAX and {shares['bert-torch-train-b32-tf32']} in eager PyTorch" in page
    )
    for number, said in ((1, "normalisation is"), (2, "pointwise ops are")):
        rows = [run.classes[number] for run in runs.values()]
        for row, run in zip(rows, runs.values(), strict=True):
            total = run.analysis.by("group")[row.group]
            assert total.bounds["memory"] > total.seconds / 2
        ends = [int(end) for row in rows for end in re.findall(r"at (\d+) to (\d+) %", row.words)[0]]
        assert f"{said} at {min(ends)} to {max(ends)} %" in page
    assert compiled.classes[1].words.startswith("45 % memory-limited, at 35 to 38 %")
    assert compiled.classes[2].words == "near the ridge, at 44 to 52 % of erf ceiling"
    assert "memory limits 45 % of the time of normalisation, at 35 to 38 %" in page
    assert "near the ridge, at 44 to 52 %" in page


def test_the_times_in_the_sentences_are_those_of_the_profiles() -> None:
    """Matmuls, and normalisation and pointwise ops together, of pairs of runs; busy time against the step."""
    page = " ".join(PAGE.split())
    groups = {name: h100(name).by("group") for name in BUSY}
    matmuls = {name: units.seconds(totals["matmul"].seconds) for name, totals in groups.items()}
    rest = {
        name: units.seconds(totals["normalisation"].seconds + totals["pointwise"].seconds)
        for name, totals in groups.items()
    }
    fp32, bf16, tf32 = (f"bert-torch-train-b32-{precision}" for precision in ("fp32", "bf16", "tf32"))
    jax, compiled = "bert-jax-buffers-on-train-b32-tf32", "bert-torch-compile-default-train-b32-bf16"
    flops = {chart([h100(name)]).runs[0].classes[0].flops for name in (fp32, bf16)}
    assert {units.percent(share) for share in flops} == {"99.8 %"}
    run = h100(bf16)
    for words in (
        f"the same matmuls take {matmuls[fp32]} in place of {matmuls[bf16]}",
        f"together {rest[fp32]} in place of {rest[bf16]}: 91 % of the busy time is then where 99.8 % of the FLOPs are",
        f"They run for {matmuls[jax].removesuffix(' ms')} and {matmuls[tf32]}, normalisation and pointwise ops for "
        f"{rest[jax].removesuffix(' ms')} and {rest[tf32]}",
        f"`torch.compile` does that rest in {rest[compiled]} in place of {rest[bf16]}",
        f"busy for {units.seconds(run.busy)} of {units.seconds(run.wall)}",
    ):
        assert words in page, words


@pytest.mark.slow
def test_the_figure_of_the_page_is_what_its_command_draws(tmp_path: Path) -> None:
    """Where it is not: run the command, and look at the picture. Pixels are those of the pinned matplotlib."""
    import matplotlib

    pinned = re.search(r"^matplotlib==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    if pinned is None or matplotlib.__version__ != pinned[1]:
        pytest.skip("another matplotlib than the pinned one sets text otherwise")
    lines = PAGE.replace("\\\n", "").splitlines()
    command = next(line.split() for line in lines if line.strip().startswith("roofline plot"))
    paths = [ROOT / "profiles" / f"{word}.json" for word in command if word.startswith("h100/")]
    assert command[command.index("--kind") + 1] == "wall"
    width = float(command[command.index("--width") + 1].removesuffix("in"))
    figures.draw("wall", [analyze(load(path)) for path in paths], tmp_path / "x.png", width)
    assert (tmp_path / "x.png").read_bytes() == (ROOT / "docs" / "figures" / command[-1]).read_bytes()
