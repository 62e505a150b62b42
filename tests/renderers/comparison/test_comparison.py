"""What `roofline compare` prints: whole outputs of hand-made pairs, tables that add up, names that stay text.

A is the step of handmade.py, 12.5 ms. B takes 11 ms: its softmax runs 1000 µs instead of 2000, it has no layer_norm
(5 µs floor, 3 µs loss), and its gap is 1308 µs instead of 1800:

    1500 µs = 1000 loss + (5 launch + 3 loss) + 492 gap
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import handmade
import pytest
import randomly
import set_in_latex
from hypothesis import given, settings
from msgspec.structs import replace
from synthetic import LAYER, UNFUSED_NORM, instead, step

from roofline import plugins, units
from roofline.analysis.analysis import analyze
from roofline.comparison.account.account import account
from roofline.comparison.account.row import MOVED_BY, Account, Amount, Note, OpChange
from roofline.comparison.account.row import Row as AccountRow
from roofline.comparison.breakdown.rows import split_busy
from roofline.comparison.headline import factor_text
from roofline.comparison.parity.difference import Difference
from roofline.comparison.parity.parity import Parity
from roofline.comparison.ranking import RankedPair, Ranking, rank
from roofline.comparison.terms import Comparison, compare
from roofline.content.comparison import (
    account_rows,
    broken_down,
    comparing,
    pair_facts,
    parity_words,
    ranked,
    term_table,
)
from roofline.content.comparison.account_rows import View
from roofline.content.comparison.term_table import Row, Table
from roofline.content.signed import rounding, signed
from roofline.content.terminal import NARROWEST, Page
from roofline.core.device import Ceiling
from roofline.core.schema import Imported, Profile, Wall, load
from roofline.errors import InputError
from roofline.renderers.comparison import text

Golden = Callable[[str, str], None]
FORMATS = plugins.names("roofline.renderers.comparison")
formats = pytest.mark.parametrize("name", FORMATS)

NAMED = Difference(
    what="attention", a="fused", b="eager", severity="named", text="The attention differs: fused in a and eager in b.",
    seconds=0.75e-3, share=0.5,
)  # fmt: skip
DOUBT = Difference(what="threads", a=None, b="2", severity="warning", text="The threads of A are not recorded.")
REFUSED = Difference(what="batch", a="4", b="8", severity="refused", text="The batches differ: 4 in a and 8 in b.")

ROWS = (
    AccountRow(
        kind="setting",
        ops=(OpChange(name="attention", a="fused", b="eager"),),
        text="attention: fused in torch, eager in jax.",
    ),
    AccountRow(
        kind="only",
        scopes=("layers.*/attention",),
        phase="forward",
        seconds=1.0e-3,
        ci95=(0.9e-3, 1.1e-3),
        a=Amount(launches=24, bytes=8e6, seconds=1.6e-3, dispatch=0.1e-3, of_roof=0.4),
        b=Amount(launches=2, bytes=4e6, seconds=0.6e-3, dispatch=0.1e-3, of_roof=0.8),
        ops=(
            OpChange(name="aten::_softmax", type="fp32", a=24.0, b=0.0, seconds=1.6e-3),
            OpChange(name="softmax_fusion", type="fp32", a=0.0, b=2.5, seconds=-0.6e-3),
        ),
        annotations=("softmax-written-out",),
        advice="use torch.softmax",
        notes=(Note("group", "2 x the same place"), Note("page faults", "10.0 µs is elsewhere")),
        text="layers.*/attention, forward: torch runs 24 _softmax where jax runs 2 softmax_fusion: a long sentence.",
    ),
    AccountRow(
        kind="gap",
        place="waiting for input",
        seconds=0.6e-3,
        ci95=(0.2e-3, 0.9e-3),
        a=Amount(seconds=0.6e-3),
        upper=True,
        text="waiting for input: 600 µs in torch, none in jax.",
    ),
    AccountRow(
        kind="rate",
        op_class="pointwise",
        seconds=-0.2e-3,
        ci95=(-0.3e-3, -0.1e-3),
        a=Amount(launches=8, seconds=0.2e-3),
        b=Amount(launches=8, seconds=0.4e-3),
        text="the same 8 pointwise ops: 200 µs in torch, 400 µs in jax.",
    ),
    AccountRow(
        kind="gap",
        place="not known",
        seconds=0.1e-3,
        a=Amount(seconds=0.1e-3),
        text="not known: 100 µs in torch, none in jax.",
    ),
)
ACCOUNT = Account(rows=ROWS)


def faster(**changes: object) -> Profile:
    """B of the module docstring."""
    plain = handmade.profile()
    ops = [replace(op, own_ns=tuple(own // 2 for own in op.own_ns)) if op.signature == 3 else op for op in plain.ops]
    fields: dict[str, object] = {
        "backend": "jax",
        "ops": tuple(op for op in ops if op.signature != 5),
        "wall": Wall(steps=tuple(step * 11 / 12.5 for step in plain.wall.steps)),
        "profiled": replace(plain.profiled, corrected=(10.9e-3, 11e-3, 11.1e-3), idle=(1.2e-3, 1.3e-3, 1.4e-3)),
        "versions": {"jax": "0.10.2"},
    }
    return handmade.profile(**(fields | changes))


def two(*differences: Difference, verdict: Any = "named differences") -> Ranking:
    """A and B with an account of four rows: 1.0 + 0.6 - 0.2 + 0.1 = 1.5 ms."""
    found = dataclasses.replace(
        compare(handmade.profile(), faster()), parity=Parity(verdict=verdict, differences=differences)
    )
    return Ranking(("torch", "jax"), (found.a, found.b), 1, (RankedPair(("torch", "jax"), found, ACCOUNT),))


def several() -> Ranking:
    """A, B and a run that is not comparable with either; the matrix is parity's own."""
    third = faster(backend="keras-jax", wall=Wall(steps=(14e-3, 14.1e-3, 14.2e-3)), batch=8)
    found = rank([handmade.profile(), faster(), third])
    parities = (Parity(verdict="named differences", differences=(NAMED,)), Parity(verdict="not comparable",
                differences=(REFUSED, NAMED, NAMED, NAMED)))  # fmt: skip
    pairs = [
        dataclasses.replace(pair, comparison=dataclasses.replace(pair.comparison, parity=parity), account=ACCOUNT)
        for pair, parity in zip(found.pairs, parities, strict=True)
    ]
    return dataclasses.replace(found, pairs=tuple(pairs))


def render(name: str, ranking: Ranking, details: bool = False) -> str:
    more = {"view": View(details=True)} if details and name == "text" else {}
    return plugins.load("roofline.renderers.comparison", name, "format").render(ranking, **more)


# --------------------------------------------------------------------------------------------------- whole outputs


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in ("csv", "json")])
def test_of_a_step_that_ops_fill_no_time_without_ops_is_told(name: str) -> None:
    rankings = [rank(runs) for runs in ([handmade.profile(), handmade.filled()], [handmade.filled()] * 3)]
    two_runs, three_runs = (render(name, ranking) for ranking in rankings)
    assert not re.search(r"-[\d.]+ ns", two_runs)
    assert "-0 %" not in three_runs


@formats
@pytest.mark.parametrize("case", ["two", "several", "refused"])
def test_output(name: str, case: str, golden: Golden) -> None:
    ranking = {
        "two": lambda: two(NAMED, DOUBT),
        "several": several,
        "refused": lambda: two(REFUSED, NAMED, verdict="not comparable"),
    }[case]()
    text = render(name, ranking, details=case == "refused")
    if name == "json":  # the last digits of sums may differ between versions of numpy; runs are as `show` has them
        text = json.dumps(_shortened(json.loads(text)), indent=1) + "\n"
    elif name == "csv":
        text = re.sub(r"-?\d+\.\d{10,}(e-?\d+)?|-?\d\.\d+e-\d+", lambda found: f"{float(found[0]):.8g}", text)
    ending = {"text": "txt", "markdown": "md", "latex": "tex"}.get(name, name)
    golden(f"comparison-{case}.{ending}", text)


def _shortened(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.10g}") if abs(value) > 1e-15 else 0.0
    if isinstance(value, dict):
        return {key: _runs(item) if key == "runs" else _shortened(item) for key, item in value.items()}
    return [_shortened(item) for item in value] if isinstance(value, list) else value


def _runs(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"name": run["name"], "backend": run["backend"], "wall": run["wall"]["median"]} for run in runs]


# ------------------------------------------------------------------------------------------------------------ table


def test_the_table_by_hand() -> None:
    table = term_table.table(two().pairs[0].comparison)
    heads = [head.partition("\n")[0] for head, *_ in term_table.COLUMNS]
    rows = {row.label: row for row in table.rows}
    assert list(rows) == [
        "fwd attention core", "other places (4)", "host time: host dispatch", "host time: waiting for input",
    ]  # fmt: skip
    core, other = rows["fwd attention core"], rows["other places (4)"]
    assert core.seconds == core.terms[heads.index("above")] == pytest.approx(1000e-6)
    assert other.terms[heads.index("launch")] == pytest.approx(5e-6)
    assert other.seconds == pytest.approx(8e-6)
    # The gaps are 1800 and 1308 µs. In the profiled steps of both a third of the idle time was input.
    assert rows["host time: host dispatch"].seconds == pytest.approx(492e-6 * 2 / 3)
    assert rows["host time: waiting for input"].seconds == pytest.approx(492e-6 / 3)
    assert table.total.seconds == pytest.approx(1500e-6)


def test_causes_that_one_run_does_not_know_are_not_told_apart() -> None:
    unknown = replace(handmade.profile().profiled, idle=())
    table = term_table.table(compare(handmade.profile(), faster(profiled=unknown)))
    assert [row.label for row in table.gap] == ["host time"]
    low, high = table.gap[0].ci95
    assert low < table.gap[0].seconds < high


@settings(max_examples=30)
@given(randomly.profiles(), randomly.profiles())
def test_rows_and_columns_add_up(a: Profile, b: Profile) -> None:
    found = compare(a, b)
    # Minima may be far longer than the steps, and what cancels leaves their rounding.
    largest = max([found.a.wall + found.b.wall, *(abs(term.seconds) for term in found.work.terms)])
    near = {"rel": 1e-9, "abs": 1e-12 * largest}
    for most in (0, 1, 12):
        table = term_table.table(found, most)
        assert sum(row.seconds for row in table.rows) == pytest.approx(found.difference, **near)
        assert len(table.places) <= most + 1
        for row in table.places:
            whole = sum(term for term in row.terms if term is not None)
            assert row.seconds == pytest.approx(whole, **near)
        for number, whole in enumerate(table.total.terms):
            column = [row.terms[number] for row in table.places if row.terms[number] is not None]
            assert (whole is None) == (not column)
            assert not column or whole == pytest.approx(sum(column), **near)


def test_every_kind_of_term_is_in_one_column() -> None:
    kinds = [kind for _, kinds, _ in term_table.COLUMNS for kind in kinds]
    assert len(set(kinds)) == len(kinds)
    found = compare(handmade.profile(), faster())
    used = {term.kind for term in found.work.terms if not term.kind.startswith("gap.")}
    assert used <= set(kinds)


# -------------------------------------------------------------------------------------------------------- sentences


def pair(a: Profile, b: Profile, names: tuple[str, str] = ("a", "b")) -> RankedPair:
    comparison = compare(a, b)
    return RankedPair(names, comparison, account(comparison, names))


def timed(milliseconds: float) -> Profile:
    steps = tuple(milliseconds * 1e-3 * (1 + n / 1000) for n in (-2, -1, 0, 1, 2))
    return handmade.profile(wall=Wall(steps=steps))


def test_the_verdict() -> None:
    # One process each: 20 against 15 ms is more than processes differ by, either way round.
    for a, b, names in ((20, 15, ("slow", "fast")), (15, 20, ("fast", "slow"))):
        words = comparing.verdict(pair(timed(a), timed(b), names))
        assert words == (
            "slow took 1.33x longer than fast in these two runs (20.0 against 15.0 ms a step, one process each)."
        )


def test_one_step_proves_nothing() -> None:
    single = pair(handmade.profile(), handmade.profile(wall=Wall(steps=(11e-3,))))
    assert single.comparison.difference == pytest.approx(1.5e-3)
    assert comparing.verdict(single) == (
        "These runs do not say which is faster: a took 12.5 ms a step and b 11.0 ms, one process each, one of fewer "
        "than 3 steps. a − b is 1.50 ms, 95 % CI -0.165 to 3.17 ms, which includes 0. The interval holds the 10 % by "
        "which processes of one step differ."
    )
    ranking = Ranking(single.names, (single.comparison.a, single.comparison.b), 1, (single,))
    document = json.loads(render("json", ranking))
    assert document["ci95"] is None
    assert document["resolved"] is False
    assert (document["settled"], document["factor"], document["factor_ci95"]) == (None, 12.5 / 11, None)


def test_what_is_not_resolved_is_not_said() -> None:
    a = handmade.profile()
    same = pair(a, handmade.profile(wall=replace(a.wall, steps=a.wall.steps[::-1])))
    assert comparing.verdict(same).startswith("These runs do not say which is faster: a took 12.5 ms a step and b")
    assert comparing.share(1e-3, same) == "–"
    assert "is faster than" not in render(
        "text", Ranking(same.names, (same.comparison.a, same.comparison.b), 0, (same,))
    )


@pytest.mark.parametrize(
    ("ratio", "text"), [(1.834, "1.83x"), (1.0042, "1.004x"), (1.0, "1.00x"), (12.34, "12.3x"), (1e-3, "0.00x")]
)
def test_factors(ratio: float, text: str) -> None:
    assert factor_text(ratio) == text


def test_what_cancels_is_written_as_nothing() -> None:
    # Sums of times that cancel leave 1e-17 s or so, of either sign.
    assert [signed(value) for value in (-2.1e-17, 1e-18, 0.0)] == ["0 s"] * 3
    assert [signed(value) for value in (2e-15, -2e-9)] == ["+0.00000200 ns", "-2.00 ns"]
    resolved = two().pairs[0]
    assert comparing.share(-2.1e-17, resolved) == "0 %"
    assert comparing.share(0.3e-3, resolved) == "20 %"  # of 1.5 ms


def test_what_parts_that_cancel_leave_is_no_whole() -> None:
    """Of 1.5 ms a row of 1 ms is 67 %, and one of 4 ms, which others make up for, is no share of it."""
    found = two().pairs[0]
    assert comparing.share(1e-3, found) == "67 %"
    rows = (ROWS[1], replace(ROWS[1], seconds=4e-3), replace(ROWS[1], seconds=-3.5e-3))
    cancelling = dataclasses.replace(found, account=Account(rows=rows))
    assert comparing.share(1e-3, cancelling) == "–"


@pytest.mark.parametrize("loss", [2e-3, -2e-3])
def test_columns_that_cancel_have_a_unit_for_their_numbers(loss: float) -> None:
    number = [head for head, *_ in term_table.COLUMNS].index("above\nmin.")

    def row(loss: float, overlap: float, seconds: float) -> Row:
        terms = [None] * len(term_table.COLUMNS)
        terms[number], terms[-1] = loss, overlap
        return Row("", tuple(terms), seconds, None)

    table = Table((row(loss, -loss, -1e-18),), (), row(loss, -loss, -1e-18))
    scale = table.scale
    assert (scale.unit, scale.write(loss), scale.write(-1e-18)) == ("ms", f"{1e3 * loss:+.2f}", "0.00")
    # Where the numbers of an interval are the large ones, they need room, too.
    wide = Row("", (), 1e-18, (-3e-6, 4e-6))
    assert Table((), (wide,), wide).scale.unit == "µs"


def test_runs_have_the_same_names_throughout_an_output() -> None:
    """Two runs of one backend that nothing tells apart: sentences call them as the table does."""
    rows = instead(LAYER * 4, "aten::native_layer_norm", UNFUSED_NORM), LAYER * 4, LAYER * 6
    runs = [step(each, switches={"loss": loss}) for each, loss in zip(rows, ("sum", "mean", "none"), strict=True)]
    for profiles in (runs[:2], runs):
        found = rank(profiles)
        for pair in found.pairs:
            a, b = pair.names
            assert (a, b) == (("torch (A)", "torch (B)") if len(profiles) == 2 else pair.names)
            told = [difference.text for difference in pair.comparison.parity.differences]
            assert told
            assert all(f" in {a} and " in text and text.endswith(f" in {b}.") for text in told)
            # Rows are told of A and B, as the heading above them is.
            assert all(re.search(r"\b[AB]\b", row.text) for row in pair.account.rows)
        for name in FORMATS:
            text = " ".join(render(name, found).replace("\\", "").split())
            assert not re.search("the (first|second) run", text)
            assert ("torch (A)" in text, "torch #2" in text) == (len(profiles) == 2, len(profiles) > 2)


def test_rounding_is_named_and_not_written_out() -> None:
    assert rounding(-3e-18) == rounding(0.0) == "below 1 fs"
    assert rounding(2e-6) == "2e-06 s"


def test_hardware_and_the_table_by_another_key_are_one_split() -> None:
    other = handmade.device(matrix_fp32=200e9, vector_fp32=100e9, dram_copy=20e9, cache_llc=80e9)
    a = handmade.profile(kernels=("one of A's",), ops=tuple(replace(op, kernels=((0, 1),)) for op in handmade.OPS))
    b = faster(device=replace(other, name="Twice as Fast"))
    b = replace(b, kernels=("one of B's",), ops=tuple(replace(op, kernels=((0, 1),)) for op in b.ops))
    found = rank([a, b], by="kernel").pairs[0]
    told = broken_down.lines(found, found.breakdown).ops.split
    # The same kernels do other work here: the table has none of it under ceilings.
    assert told.ceilings != split_busy(found.comparison).ceilings
    assert f"ceilings explain {broken_down._amount(told.ceilings)} and" in broken_down.hardware(found)


def test_hardware_is_told_apart() -> None:
    other = handmade.device(matrix_fp32=200e9, vector_fp32=100e9, dram_copy=20e9, cache_llc=80e9)
    found = pair(handmade.profile(), faster(device=replace(other, name="Twice as Fast")))
    # The difference of 1500 µs as a sum. Of softmax the step has 1950 of 2000 µs in A and 950 of 1000 in B, 96.25 % in
    # the mean. Ceilings: half of 300 + 2000 + 20 + 2000 + 96.25 % of 700 + 2700 µs of floors, and more where all
    # results reach memory, as far as own times allow it. Kernels: what is left of 96.25 % of the 1000 µs of that work.
    # Other: 37.5 µs of it, and layer_norm, 8 µs, that B does not have.
    assert broken_down.hardware(found) == (
        "Round Device, 2 threads against Twice as Fast, 2 threads: of +1.50 ms, the devices' ceilings explain "
        "+3.85 ms to +4.09 ms and the kernels' distance from them -2.88 ms to -3.13 ms; +45.5 µs is other work or work "
        "without a minimum, and +492 µs the host time."
    )
    assert broken_down.hardware(two().pairs[0]) == ""
    blank = pair(handmade.profile(), faster(device=replace(other, name="Unheard of", ceilings={})))
    assert broken_down.hardware(blank).endswith(
        "the ceilings of Unheard of, 2 threads are not known, so hardware and kernels cannot be separated."
    )


def test_places_that_one_run_does_not_tell_are_named() -> None:
    a = handmade.profile()
    assert comparing.places(two().pairs[0]) == ""
    lost = pair(a, handmade.profile(blocks=tuple(f"other {block}" for block in a.blocks)))
    words = "only 0 % of the ops' time is at the same phase and block in both runs"
    assert comparing.places(lost).startswith(words)
    for name in ("text", "markdown"):
        assert words in " ".join(
            render(name, Ranking(("a", "b"), (lost.comparison.a, lost.comparison.b), 0, (lost,)), details=True).split()
        )


def test_exposed_communication() -> None:
    facts = Imported(communication=4e-3, exposed=1e-3, waiting=0.5e-3)
    found = pair(handmade.profile(imported=facts), faster(imported=Imported(communication=2e-3)))
    assert comparing.communication(found) == (
        "a 4.00 ms per step: 1.00 ms exposed, 3.00 ms hidden by computation, 500 µs of it waiting for slower ranks; "
        "b 2.00 ms per step: how much of it is hidden is not known."
    )
    assert comparing.communication(two().pairs[0]) == ""


def test_the_difference_is_told_as_busy_and_idle_time() -> None:
    """1500 µs = 1008 of ops + 492 of the gap, as above; a run whose ops were not seen has no such parts."""
    found = two().pairs[0]
    assert dict(pair_facts.runs(found))["A − B"] == "+1.50 ms: +1.01 ms busy, +492 µs host time"
    unseen = dataclasses.replace(found, comparison=compare(handmade.profile(ops=()), faster()))
    assert "A − B" not in dict(pair_facts.runs(unseen))


def test_seconds_of_ops_alone_are_without_dispatching() -> None:
    clocks = Difference(what="clocks", a="1 GHz", b="2 GHz", severity="named", text="The clocks differ.", seconds=1e-3)
    of_ops, of_step = parity_words.differences(two(NAMED, clocks).pairs[0])
    assert "explains at most 750 µs of 1.50 ms, 50 %, dispatching not counted" in of_ops
    assert of_step == "The clocks differ (explains at most 1.00 ms)."


def test_rows_of_the_account_add_up_in_spreadsheets() -> None:
    rows = list(csv.DictReader(io.StringIO(render("csv", two()))))
    parts = [line for line in rows if line["row"] == "account"]
    assert [line["kind"] for line in parts] == ["setting", "only", "gap", "rate", "gap"]
    assert [line["seconds"] for line in parts] == ["", "0.001", "0.0006", "-0.0002", "0.0001"]
    assert (parts[1]["a_seconds"], parts[1]["b_seconds"]) == ("0.0016", "0.0006")
    (whole,) = (line["seconds"] for line in rows if line["row"] == "difference")
    assert sum(float(line["seconds"] or 0) for line in parts) == pytest.approx(float(whole))
    (finding,) = (line for line in rows if line["row"] == "finding")
    assert (finding["kind"], finding["seconds"]) == ("fusion", "0.001")


def test_smaller_rows_are_one_line_that_closes_the_sum() -> None:
    lines = render("text", several()).splitlines()
    line = next(line for line in lines if "smaller row" in line)
    assert line.split() == ["+100", "µs", "7", "%", "1", "smaller", "row", "(--all", "shows", "them)"]
    every = text.render(several(), view=View(every=True))
    assert "smaller row" not in every
    assert every.count("not known: 100 µs in torch") == 2


def test_rows_that_fit_a_screen_are_shown() -> None:
    rows = [replace(ROWS[2], seconds=(40 - n) * 1e-5, text=f"the sentence of {n}: " + "word " * 20) for n in range(40)]
    ranking = two()
    (pair,) = ranking.pairs
    long = dataclasses.replace(ranking, pairs=(dataclasses.replace(pair, account=Account(rows=tuple(rows))),))
    shown = render("text", long).count("the sentence of")
    assert 3 < shown < 24
    assert f"{40 - shown} smaller rows, each +10.0 µs to +290 µs, together (--all shows them)" in render("text", long)
    assert text.render(long, view=View(every=True)).count("the sentence of") == 40


@pytest.mark.parametrize("width", [NARROWEST, 60])
def test_no_line_is_wider_than_the_page(width: int) -> None:
    for ranking in (two(NAMED, DOUBT), several()):
        shown = text.render(ranking, Page(width), View(why=True))
        assert max(map(len, shown.splitlines())) <= width


def test_one_row_is_listed_with_its_ops_in_both_runs() -> None:
    told = text.render(two(), view=View(row=1))
    assert "Row 1: +1.00 ms, 67 %, 95 % interval 900 µs to 1.10 ms" in told
    cells = [line.split() for line in told.splitlines() if "softmax" in line and "fp32" in line]
    assert cells == [
        ["aten::_softmax", "fp32", "24", "0", "+1.60"],
        ["softmax_fusion", "fp32", "0", "2.50", "-0.60"],
    ]
    with pytest.raises(InputError, match="There is no row 5: the account has 4 rows"):
        text.render(two(), view=View(row=5))


def test_why_says_what_passes_merged() -> None:
    told = " ".join(text.render(two(), view=View(why=True)).split())
    assert "), group: 2 x the same place; page faults: 10.0 µs is elsewhere" in told
    assert "same place" not in render("text", two())


def test_marks_are_explained_where_a_speedup_has_one() -> None:
    """Of three runs of one program all are comparable, so that no number has a mark."""
    for name in ("text", "markdown"):
        explained = "named differences; ! not comparable"
        assert explained in render(name, several())
        assert explained not in render(name, rank([handmade.profile(), handmade.profile(), handmade.profile()]))


def test_of_three_runs_each_pair_has_the_notes_of_its_own_rows() -> None:
    pairs = [
        dataclasses.replace(pair, account=Account(rows=(replace(ROWS[1], notes=(Note("group", f"of {name}"),)),)))
        for pair, name in zip(several().pairs, ("first", "second"), strict=True)
    ]
    told = text.render(dataclasses.replace(several(), pairs=tuple(pairs)), view=View(why=True))
    assert re.findall(r"group: of (\w+)", told) == ["first", "second"]
    first, second = (told.index(f"group: of {name}") for name in ("first", "second"))
    assert first < told.index("keras-jax took") < second


def test_settings_come_before_the_rows_and_have_no_number() -> None:
    lines = render("text", two(NAMED, DOUBT)).splitlines()
    same, settings, first = (
        next(number for number, line in enumerate(lines) if line.startswith(head))
        for head in ("same work?   yes", "settings     The attention differs", " 1   +1.00 ms")
    )
    assert same < settings < first
    assert lines[first - 3].split(maxsplit=1) == ["trust", "The threads of A are not recorded."]


def test_a_setting_names_the_rows_that_have_its_annotation() -> None:
    """Rows 1 and 2 of another account: 1.0 and 0.6 ms of attention; a doubt of the ops alone is not said then."""
    written_out = replace(NAMED, a="written out", b="a fused kernel (flash)")
    ranked = two(written_out).pairs[0]
    assert "explains at most 750 µs of 1.50 ms, 50 %, dispatching not counted" in parity_words.settings(ranked)[0]
    rows = [replace(row, annotations=("attention-written-out",)) for row in ROWS[1:3]]
    one, both = (
        dataclasses.replace(ranked, account=Account(rows=(*some, *ROWS[1 + len(some) :]))) for some in (rows[:1], rows)
    )
    assert parity_words.settings(one)[0].endswith(" (row 1, +1.00 ms).")
    assert parity_words.settings(both)[0].endswith(" (rows 1 and 2, +1.60 ms together).")
    # Where rows have no numbers the most that it explains is said.
    assert "explains at most 750 µs" in parity_words.differences(both, numbered=False)[0]


def test_seconds_that_only_the_profiler_saw_are_an_end() -> None:
    ranked = two().pairs[0]
    waiting = ROWS[2]
    assert account_rows.size(ranked, waiting) == "≤ +600 µs"
    assert account_rows.size(ranked, replace(waiting, seconds=-0.6e-3)) == "≥ -600 µs"
    assert account_rows.size(ranked, replace(waiting, upper=False)) == "+600 µs"


@pytest.mark.parametrize(
    ("differences", "verdict", "words"),
    [
        ((), "comparable", "yes; model FLOPs of matmuls are equal"),
        ((NAMED,), "named differences", "yes; model FLOPs of matmuls are equal"),
        ((replace(NAMED, what="batch"),), "named differences", "as far as is known; model FLOPs of matmuls are equal"),
        ((REFUSED,), "not comparable", "no, though model FLOPs of matmuls are equal"),
    ],
)
def test_whether_the_work_is_the_same(differences: tuple[Difference, ...], verdict: str, words: str) -> None:
    assert parity_words.same_work(two(*differences, verdict=verdict).pairs[0]) == words


@pytest.mark.parametrize(
    ("difference", "verdict", "words"),
    [
        (NAMED, "named differences", "as far as is known; of matmuls {} and none are known"),
        (REFUSED, "not comparable", "no; of matmuls {} and none are known"),
        (
            replace(REFUSED, what="model FLOPs forward"),
            "not comparable",
            "no; model FLOPs of matmuls differ ({} and none)",
        ),
    ],
)
def test_work_differs_where_parity_found_that(difference: Difference, verdict: str, words: str) -> None:
    """Elsewhere the rest may not be known, whatever else is refused."""
    pair = two(difference, verdict=verdict).pairs[0]
    found = dataclasses.replace(pair, comparison=dataclasses.replace(pair.comparison, b=analyze(faster(ops=()))))
    assert parity_words.same_work(found) == words.format(units.flop(pair.comparison.a.total.model_flops))


def test_what_both_runs_do_alike_is_said() -> None:
    same = rank([handmade.profile(), handmade.profile()])
    for name in ("text", "markdown"):
        assert "Nothing differs: each row of the account is 0." in render(name, same)


@formats
def test_a_warning_stands_on_every_output(name: str) -> None:
    refused = two(REFUSED, verdict="not comparable")
    text = " ".join(render(name, refused).split())
    assert "NOT COMPARABLE, compared anyway: The batches differ: 4 in a and 8 in b" in text
    assert "NOT COMPARABLE" not in render(name, two(NAMED))


# ------------------------------------------------------------------------------------------------------------- JSON


def test_the_document_closes() -> None:
    found = json.loads(render("json", two(NAMED)))
    near = pytest.approx(found["difference"], rel=1e-12)
    assert sum(term["seconds"] for term in found["terms"]) + found["residual"] == near
    assert sum(term["seconds"] for term in found["kernel_terms"]) + found["kernel_residual"] == near
    assert sum(finding["seconds"] for finding in found["findings"]) + found["rest"] == near
    assert sum(row["seconds"] or 0.0 for row in found["account"]) == near
    assert found["difference"] == found["runs"][0]["wall"]["median"] - found["runs"][1]["wall"]["median"]
    assert found["speedup"] == pytest.approx(12.5 / 11)
    assert set(found["terms"][0]) == {"phase", "block", "class", "kind", "seconds", "ci95"}
    setting, row = found["account"][:2]
    assert set(row) == {
        *(
            "kind",
            "place",
            "scopes",
            "phase",
            "class",
            "kernels",
            "seconds",
            "ci95",
            "a",
            "b",
            "ops",
            "times",
            "upper",
            "annotations",
        ),
        "text",
    }
    assert set(row["a"]) == {"launches", "bytes", "seconds", "dispatch", "of_roof", "times"}
    assert set(row["ops"][0]) == {"name", "type", "classes", "is_part", "parts", "a", "b", "seconds"}
    assert (setting["seconds"], setting["a"], setting["b"]) == (None, None, None)
    assert (found["smaller"], found["tendencies"]) == ([], [])
    assert [finding["rule"] for finding in found["findings"]] == ["fusion"]
    assert set(found["findings"][0]) == {"rule", "terms", "seconds", "ci95", "label", "text", "advice"}
    assert set(found["findings"][0]["terms"][0]) == {"phase", "block", "class", "seconds"}
    assert found["warning"] is None


# ---------------------------------------------------------------------------------------------------- hostile names


@functools.cache
def hostile_runs(hostile: str, runs: int) -> Ranking:
    profiles = [handmade.hostile(hostile), faster(), faster(model=hostile, backend=f"{hostile}2")][:runs]
    found = rank(profiles)
    # Nobody's words decide here what is said of them: the names stand in sentences too.
    rows = tuple(
        replace(row, text=hostile, place=row.place and hostile, scopes=(hostile,), advice=hostile,
            notes=(Note(hostile, hostile),),
            ops=tuple(replace(change, name=hostile, type=hostile) for change in row.ops))
        for row in ROWS
    )  # fmt: skip
    told = Account(rows=rows)
    judged = Parity(verdict="not comparable", differences=(replace(REFUSED, text=hostile, a=hostile),))
    pairs = [
        dataclasses.replace(each, account=told, comparison=dataclasses.replace(each.comparison, parity=judged))
        for each in found.pairs
    ]
    return dataclasses.replace(found, pairs=tuple(pairs))


@formats
@pytest.mark.parametrize("hostile", handmade.HOSTILE)
@pytest.mark.parametrize("runs", [2, 3])
def test_hostile_names_stay_text(name: str, hostile: str, runs: int) -> None:
    ranking = hostile_runs(hostile, runs)
    shown = [render(name, ranking)]
    if name == "text":
        shown += [text.render(ranking, view=view) for view in (View(every=True, why=True), View(row=1))]
    for words in shown:
        assert all(c.isprintable() or c == "\n" for c in words)
        CHECKS.get(name, lambda words: None)(words)


def _lines_fit(text: str) -> None:
    assert max(len(line) for line in text.splitlines()) <= 100


def _json_is_ascii(text: str) -> None:
    json.loads(text)
    assert text.isascii()


def _markdown_has_no_markup(text: str) -> None:
    assert "<script" not in text
    body = text.replace("\\\\", "")
    assert not re.search(r"(?<!\\)[`\[]", body)
    assert "://" not in body
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert tables
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1


def _csv_has_no_formula(text: str) -> None:
    rows = list(csv.reader(io.StringIO(text)))
    assert {len(row) for row in rows} == {len(rows[0])}
    for cell in (cell for row in rows for cell in row):
        number = re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", cell)
        assert number or not cell.startswith(("=", "+", "-", "@"))


CHECKS: dict[str, Callable[[str], None]] = {
    "text": _lines_fit,
    "json": _json_is_ascii,
    "markdown": _markdown_has_no_markup,
    "csv": _csv_has_no_formula,
    "latex": set_in_latex.check,
}


@formats
def test_a_device_without_ceilings_and_runs_without_ops(name: str) -> None:
    bare = replace(handmade.device(), ceilings={}, caches=())
    empty = handmade.profile(ops=())
    for profiles in ([handmade.profile(device=bare), faster(device=bare)], [empty, faster()], [empty, empty]):
        assert not re.search(r"\b(nan|None|inf)\b", render(name, rank(profiles)))


@functools.cache
def ten() -> Ranking:
    ceilings = {**handmade.device().ceilings, "dram.read": Ceiling(value=11e9, source="made up")}
    device = replace(handmade.device(), ceilings=ceilings)
    return rank([timed(10 + number) for number in range(9)] + [faster(device=device)])


@formats
def test_ten_runs(name: str) -> None:
    text = render(name, ten())
    CHECKS.get(name, lambda text: None)(text)


def test_a_comparison_is_not_changed_by_being_shown() -> None:
    ranking = two(NAMED)
    before: Comparison = ranking.pairs[0].comparison
    terms = before.work.terms
    for name in FORMATS:
        render(name, ranking)
    assert before.work.terms == terms


def test_a_row_is_headed_by_its_annotation_else_by_its_place_else_by_its_phase() -> None:
    pair = two().pairs[0]
    row = replace(ROWS[1], scopes=(), annotations=())
    assert account_rows.lines(pair, row)[0] == "ops that differ in the forward pass"
    assert account_rows.lines(pair, replace(row, scopes=("head",)))[0] == "ops that differ at head, in the forward pass"
    step = replace(row, scopes=("optimizer",), phase="optimizer")
    assert account_rows.lines(pair, step)[0] == "ops that differ in the optimizer"
    known = account_rows.lines(pair, replace(ROWS[1], scopes=("head",)))
    assert known[0].startswith("A computes a softmax")
    assert ", B with one op, at head, in the forward pass" in known[0]


def test_a_row_says_how_much_of_it_is_dispatching() -> None:
    """1.0 ms in all, of which A dispatches 0.7 ms and B 0.1 ms: 0.4 ms are in ops. Page faults are in neither part."""
    pair = two().pairs[0]
    amounts = replace(ROWS[1].a, dispatch=0.7e-3), replace(ROWS[1].b, dispatch=0.1e-3)
    row = replace(ROWS[1], a=amounts[0], b=amounts[1], notes=())
    assert ": +400 µs in ops, +600 µs dispatching" in account_rows.lines(pair, row)[0]
    moved = replace(row, notes=(Note(MOVED_BY, "1 µs is elsewhere"),))
    assert "dispatching" not in account_rows.lines(pair, moved)[0]


def test_factors_of_several_runs_are_those_of_their_headlines() -> None:
    """Runs that took turns are 1.13 and 1.22 times as long by these, and 1.06 and 1.15 by the medians as recorded."""
    folder = Path(__file__).resolve().parents[3] / "docs" / "measured" / "bert-infer-in-turns"
    ranking = rank([load(folder / f"{backend}.json") for backend in ("torch", "jax", "tensorflow")])
    factors = [pair.headline.factor for pair in ranking.pairs]
    medians = [pair.comparison.a.wall / pair.comparison.b.wall for pair in ranking.pairs]
    assert all(abs(factor / ratio - 1) > 0.05 for factor, ratio in zip(factors, medians, strict=True))
    told = [f"{factor:.2f}" for factor in factors]
    assert [cells[1].removesuffix("x") for cells in ranked.grid(ranking).cells] == ["1", *told]
    assert [row[2].rstrip("*") for row in ranked.matrix(ranking, limit=3)[2:]] == told
