"""The first screen: what it shows of which step, and that it fits."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import handmade
import pytest
from msgspec.structs import replace

from roofline import importing
from roofline.analysis.analysis import analyze, analyze_timed
from roofline.analysis.flags import CURES, FLAGS, clause
from roofline.analysis.gap_causes import DISPATCH
from roofline.analysis.gap_parts import FOR_A_CORE
from roofline.analysis.places import places
from roofline.content import wording
from roofline.content.choice import Choice
from roofline.content.facts import doubts as facts
from roofline.content.facts.advice import advise
from roofline.content.terminal import NARROWEST, Page
from roofline.core.executor import QUEUED
from roofline.core.schema import Profile, load
from roofline.core.shipped import paths
from roofline.renderers import _screen, text

TRACE = Path(__file__).resolve().parents[1] / "data" / "synthetic_gpu_train.json"

Golden = Callable[[str, str], None]


def one_op() -> Profile:
    return handmade.profile(ops=handmade.profile().ops[:1])


def long_names() -> Profile:
    signatures = tuple(replace(one, name=f"{one.name}{'x' * 200}") for one in handmade.SIGNATURES)
    return handmade.profile(
        signatures=signatures, model="m" * 200, blocks=tuple("b" * 200 for _ in handmade.profile().blocks)
    )


#: What is shown, by the name of its file.
SCREENS: dict[str, Callable[[], Profile]] = {
    "infer": lambda: load(paths()["bert-torch-infer-b1-s128-amd-epyc-1"]),
    "train": lambda: load(paths()["h100/bert-torch-compile-default-train-b32-bf16"]),
    "generate": lambda: load(paths()["keras-benchmark/gemma-generate-b1-torch"]),
    "graph-replay": lambda: load(paths()["h100/bert-torch-compile-reduce-overhead-infer-b1-bf16"]),
    "one-op": one_op,
    "long-names": long_names,
    "import": lambda: importing.read([str(TRACE)], device="h100-sxm")[0],
    "busy": lambda: handmade.profile(flags=("contended",)),
}


@pytest.mark.parametrize("name", SCREENS)
def test_screen(name: str, golden: Golden) -> None:
    shown = text.render(analyze(SCREENS[name]()), None)
    golden(f"screen-{name}.txt", shown)
    assert shown.count("\n") <= _screen.LINES
    assert max(map(len, shown.splitlines())) <= 100


@pytest.mark.parametrize("step", [8, pytest.param(1, marks=pytest.mark.thorough)])
def test_the_screens_of_all_shipped_profiles_fit(step: int) -> None:
    """Of every eighth in `make test`: most screens are as long and as wide as may be."""
    for name in sorted(paths())[::step]:
        lines = text.render(analyze(load(paths()[name])), None).splitlines()
        assert len(lines) <= _screen.LINES, name
        assert max(map(len, lines)) <= 100, name


@pytest.mark.parametrize("name", SCREENS)
def test_it_fits_a_narrow_page(name: str) -> None:
    shown = text.render(analyze(SCREENS[name]()), None, page=Page(NARROWEST))
    assert max(map(len, shown.splitlines())) <= NARROWEST


def test_forty_columns(golden: Golden) -> None:
    golden("screen-narrow.txt", text.render(analyze(SCREENS["infer"]()), None, page=Page(NARROWEST)))


@pytest.mark.parametrize("name", SCREENS)
def test_its_bars_and_its_places_hold_all_of_the_step(name: str) -> None:
    analysis = analyze_timed(SCREENS[name]())
    # Bars under half a percent are left out: four bounds and the gap are at most 2.5 %.
    assert sum(bar.share for bar in _screen.bars(analysis)) == pytest.approx(1, abs=0.025)
    assert sum(place.seconds for place in places(analysis)) == pytest.approx(analysis.busy)
    assert sum(row.seconds for row in _screen.ranked(analysis)) == pytest.approx(analysis.wall, rel=0.005)


def test_top_shows_as_many_places_and_the_rest_as_one() -> None:
    analysis = analyze_timed(handmade.profile())
    number = len(_screen.ranked(analysis))
    for asked, shown, left in ((2, 2, number - 2), (number - 1, number, 0), (number, number, 0)):
        table = text.render(analysis, None, Choice(top=asked)).partition("by time above minimum")[2]
        lines = table.splitlines()
        assert sum(bool(re.match(r"\d+ ", line)) for line in lines) == shown
        assert [line.split()[0] for line in lines if re.match(r"  \d+ more ", line)] == ([str(left)] if left else [])


def test_what_the_others_could_save_holds_the_host_and_is_at_most_that() -> None:
    analysis = analyze_timed(SCREENS["generate"]())
    left = _screen.ranked(analysis)[5:]
    gap = next(row for row in left if row.is_gap)
    shown = text.render(analysis, None, Choice(top=5))
    line = next(line for line in shown.splitlines() if f" {len(left)} more " in line)
    assert line.endswith(f"≤ {sum(row.at_most for row in left):.4f} s")
    assert gap.at_most == gap.seconds == analysis.gap_told


def test_rows_of_one_place_are_told_apart_by_the_class_of_their_ops() -> None:
    """FFN has its products and its gelu among the first five rows; other places have one row."""
    shown = _screen.ranked(analyze_timed(SCREENS["infer"]()))[:5]
    places = [row.where for row in shown]
    assert [place for place in places if places.count(place) > 1] == ["FFN", "FFN"]
    rendered = text.render(analyze(SCREENS["infer"]()), None, Choice(top=5))
    names = [line[2:].split("  ")[0] for line in rendered.splitlines()]
    assert {"FFN, matmul", "FFN, pointwise", "attention core"} <= set(names)
    assert "FFN" not in names


def test_names_of_ops_that_end_otherwise_are_not_cut_to_one() -> None:
    """Kernels without an op, named alike in their first 60 letters, and launched 24 times in the row of either."""
    name = f"_matmul_{'x' * 60}"
    signatures = [replace(one, name=f"{name}{number}") for number, one in enumerate(handmade.SIGNATURES)]
    kernels = tuple(one.name for one in signatures)
    ops = [replace(op, launches=24, kernels=((op.signature, sum(op.own_ns) // len(op.own_ns)),)) for op in handmade.OPS]
    device = replace(handmade.device(), kind="cuda")
    analysis = analyze_timed(handmade.profile(signatures=signatures, ops=ops, kernels=kernels, device=device))
    assert {place.runs for place in places(analysis)} <= {24, 48}
    lines = [line.split(" x ")[1].split()[0] for line in text.render(analysis, None).splitlines() if " x _mat" in line]
    assert len(set(lines)) == len(lines) > 1


def test_what_is_no_fault_is_no_doubt_and_a_busy_machine_is_the_first() -> None:
    def doubts(*flags: str) -> list[str]:
        analysis = analyze_timed(handmade.profile(flags=flags))
        return list(facts.reasons(analysis))

    plain = doubts()
    assert doubts("in-process", "model-flops-derived") == plain
    first, second = doubts("opaque-regions: 2", "contended")[:2]
    assert FLAGS["contended"].startswith(first.removesuffix("."))
    assert second.replace(" (2)", "") == FLAGS["opaque-regions"]
    assert "vendor-note." in doubts("vendor-note")  # one that nothing here knows
    unranked = [f"note-{letter}" for letter in "qwertzuiop"]  # in the order of the profile
    assert doubts(*unranked)[:10] == [f"{name}." for name in unranked]


@pytest.mark.parametrize("name", sorted(FLAGS.keys() - facts.HARMLESS))
def test_a_doubt_longer_than_a_line_is_cut_behind_what_was_seen(name: str) -> None:
    lines = _screen._doubts(facts.reasons(analyze_timed(handmade.profile(flags=(name,)))), Page())[0]
    assert clause(FLAGS[name]) in " ".join(" ".join(lines).split())


def test_advice_is_given_on_the_largest_part_of_the_gap_alone() -> None:
    analysis = analyze_timed(load(paths()["h100/bert-torch-infer-b1-fp32"]))
    parts = analysis.gap_causes or {}
    first = advise(analysis)[0]
    assert (first.annotation, first.part) == ("op-by-op", DISPATCH)
    assert first.seconds == parts[DISPATCH] == max(parts.values())
    assert "try " in text.render(analysis, None)
    compiled = analyze_timed(SCREENS["train"]())  # its largest part is dispatching, too, and it is compiled already
    assert [one.annotation for one in advise(compiled)] == ["graph-replay"]
    replayed = analyze_timed(load(paths()["h100/bert-torch-compile-reduce-overhead-infer-b32-bf16"]))
    assert [one.annotation for one in advise(replayed)] == []
    assert f"try          {_screen._NOTHING}" in text.render(replayed, None)
    on_a_cpu = replace(compiled.profile, device=replace(compiled.profile.device, kind="cpu"))
    assert [one.annotation for one in advise(analyze_timed(on_a_cpu))] == [], "a CPU launches nothing"


def test_the_two_largest_parts_are_named_whatever_they_are() -> None:
    """43 % memory and 40 % compute; of one op the host's 97 % and memory's 3 %."""
    two = " ".join(text.render(analyze(handmade.profile()), None).split())
    assert "Memory limits 43 % of the step, at 69 to 74 % of DRAM bandwidth; compute 40 %, at 80 % of its roof." in two
    idle = " ".join(text.render(analyze(one_op()), None).split())
    assert "Host time is 97 % of the step, most of it not known; memory limits 3 %, at 75 to 100 %" in idle


def test_parts_of_the_gap_add_up() -> None:
    """1.80 ms: dispatching takes 1.20 ms, and the rest is input, which is named where there is room."""
    bar = next(bar for bar in _screen.bars(analyze_timed(handmade.profile())) if bar.bound is None)
    assert bar.words == "1.80 ms: 1.20 ms host dispatch, the rest 600 µs"
    assert bar.longer == "1.80 ms: 1.20 ms host dispatch, 600 µs waiting for input"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("contended",), "waiting for a core that other programs held"),
        (("contended", "oversubscribed"), FOR_A_CORE),  # its own threads may have had it
        ((), FOR_A_CORE),
    ],
)
def test_who_held_a_core_is_said_where_it_was_seen(flags: tuple[str, ...], words: str) -> None:
    """A thread that waited for a core for all of the gap, 1.8 ms in a step."""
    profile = handmade.profile(flags=flags, ops=handmade.OPS[:1], conditions={QUEUED: 1.0})
    assert f"most of it {words};" in " ".join(text.render(analyze(profile), None).split())


def test_what_to_do_about_a_doubt_is_advice() -> None:
    shown = text.render(analyze(handmade.profile(flags=("in-process", "few-steps", "contended"))), None)
    assert f"try          - {CURES['contended']}; {CURES['few-steps']}\n" in shown


def test_a_detail_of_a_flag_stands_behind_what_was_seen() -> None:
    first = next(facts.reasons(analyze_timed(handmade.profile(flags=("throttled: thermal (software)",)))))
    assert first == "The device's clock may have been lowered (thermal, software): times may be too long."


def test_more_doubts_than_lines_are_counted() -> None:
    flags = tuple(f"note-{letter}" for letter in "qwertzuiopasdfgh")
    lines = text.render(analyze(handmade.profile(flags=flags)), None).splitlines()
    assert len(lines) <= _screen.LINES
    # Sixteen notes, and the work of one op that is not known.
    shown = sum(line.endswith(tuple(f"! {flag}." for flag in flags)) for line in lines)
    assert 1 <= shown < len(flags)
    assert lines[-1].split("! ")[1] == f"{17 - shown} more reasons: --details"


def test_doubts_without_a_line_of_their_own_share_one() -> None:
    texts = ["The first is long.", "The second is as well, so it is cut.", "A third: of little weight."]
    assert len(_screen._fewer(texts, 3, Page())) == 3
    assert _screen._fewer(texts, 2, Page())[1].strip() == "! also: the second is as well; a third."
    assert _screen._fewer(texts, 2, Page(40))[1].strip() == "! 2 more reasons: --details"


def test_a_convolution_is_none_of_the_matmuls() -> None:
    signatures = [
        replace(one, kind="convolution", name="aten::convolution") if one.kind == "addmm" else one
        for one in handmade.SIGNATURES
    ]
    analysis = analyze_timed(handmade.profile(signatures=signatures))
    assert {row.kind for row in _screen.ranked(analysis) if "convolution" in row.ops} == {"convolution"}
    assert not any(row.kind == "matmul" for row in _screen.ranked(analysis))


def test_phases_are_shortened_before_a_place_is_cut() -> None:
    name = "attention projections below"
    profile = handmade.profile(blocks=tuple(f"{name} {number}" for number, _ in enumerate(handmade.profile().blocks)))
    shown = text.render(analyze(profile), None, page=Page(92))
    assert re.search(rf"\d {name} \d, fwd  ", shown)


def test_a_call_that_generates_says_its_prompt_and_its_new_tokens() -> None:
    """Gemma: a prompt of 8 tokens, 8 new ones in 1.95 s."""
    lines = text.render(analyze(SCREENS["generate"]()), None).splitlines()
    assert "batch 1, prompt 8 + 8 new tokens" in lines[0]
    assert lines[2].split("   ")[0] == "  1.95 s per generate call"
    assert "4.11 new tokens/s" in lines[2]


def test_ends_of_ranges_are_explained_and_what_is_at_most_so_says_so() -> None:
    """The softmax's traffic is a range: 35 to 40 % of its roof, so at most 1.27 ms above its minimum."""
    analysis = analyze_timed(handmade.profile())
    rows = {row.ops: row for row in _screen.ranked(analysis)}
    assert (rows["_softmax"].open, rows["_softmax"].is_range) == (True, True)
    assert (rows["addmm"].open, rows["addmm"].is_range) == (False, False)
    assert wording.range_ends(analysis, "69 to 74 %") in " ".join(text.render(analysis, None).split())
    assert "Ranges" not in text.render(analyze(SCREENS["graph-replay"]()), None)


def test_what_a_trace_without_shapes_lacks_is_said_once() -> None:
    """The work of one op of the hand-made step is not known; without shapes that is so of all."""
    sentence = "have no known FLOPs or bytes"
    for flags, number in (((), 1), (("no-shapes",), 0)):
        reasons = list(facts.reasons(analyze_timed(handmade.profile(flags=flags))))
        assert sum(sentence in reason for reason in reasons) == number


def test_an_mfu_of_at_least_next_to_nothing_is_none() -> None:
    """What is known, not of the whole busy time, is 3 % of 1 TFLOP/s, and so 0.3 % of ten."""
    small, large = (
        " ".join(_screen._time(analyze_timed(handmade.profile(), handmade.device(matrix_fp32=rate)), Page(100)))
        for rate in (1e12, 10e12)
    )
    assert "MFU at least 3 %" in small
    assert "MFU" not in large


def test_lines_of_the_program_stand_where_there_is_room_for_all() -> None:
    analysis = analyze(handmade.lined())
    wide, narrow = (text.render(analysis, None, page=Page(width)) for width in (102, 80))
    rows = {line.split()[1]: line for line in wide.splitlines() if line[:2] in ("1 ", "2 ", "3 ")}
    assert "1 x _softmax  model/layers.py:15  " in rows["attention"]
    assert "2 x addmm     model/layers.py:12  " in rows["FFN,"]
    assert "model/layers" not in narrow
    assert max(map(len, wide.splitlines())) <= 102
    without = text.render(analyze(handmade.profile()), None, page=Page(102))
    assert len(wide.splitlines()) == len(without.splitlines())


def test_ops_that_ran_at_once_may_take_longer_than_the_step() -> None:
    """All ops of the hand-made step are 10.8 ms: 7725 + 2708 + 367 µs; two of them share 100 µs, and 10.7 ms pass."""
    signatures = [
        replace(one, cost=handmade.SIGNATURES[3].cost) if one.kind == "unknown" else one for one in handmade.SIGNATURES
    ]
    known = handmade.profile(signatures=tuple(signatures))
    assert "All ops together run for 10.8 ms, 100 µs of it beside others;" in _screen._at_their_roofs(
        analyze_timed(known), least=""
    )
    alone = replace(known, ops=tuple(replace(op, overlap_ns=0) for op in known.ops))
    assert "All ops together run for 10.8 ms; at their roofs" in _screen._at_their_roofs(analyze_timed(alone), "")
    # Of the unknown op that runs at the same time nobody asks what it takes at its roof.
    assert "of known work together run for 10.4 ms; at" in _screen._at_their_roofs(
        analyze_timed(handmade.profile()), ""
    )
