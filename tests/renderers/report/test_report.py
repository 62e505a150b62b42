"""The page without a browser: what is in it, that it says what the text says, and what it does with the unknown."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from pathlib import Path

import handmade
import numpy as np
import pytest
import synthetic
from msgspec.structs import replace
from report_page import Page

from roofline import units
from roofline.analysis.analysis import KEYS, analyze
from roofline.analysis.flags import CURES, FLAGS
from roofline.comparison.ranking import rank
from roofline.content import tables, wording
from roofline.content.comparison import account_rows, comparing, pair_facts, parity_words, term_table
from roofline.content.comparison.waterfall import Waterfall, axis, waterfall
from roofline.content.facts import evidence, host, measured
from roofline.content.points import ALL, COLD, COLD_HIGH, points
from roofline.content.roofs import roofs
from roofline.content.timeline import absent, timeline
from roofline.core.cost import unknown
from roofline.core.schema import Imported, Profile, Wall, load
from roofline.errors import InputError
from roofline.renderers.report import report
from roofline.renderers.report.modules import tree
from roofline.renderers.report.ops import rows
from roofline.renderers.report.parts import svg
from roofline.renderers.report.roofs import plane

US, MB = 1e-6, 1e6
#: Pairs that were measured, for the docs.
MEASURED = Path(__file__).resolve().parents[3] / "docs" / "measured"


def page(*profiles: Profile, allow: bool = False) -> Page:
    return Page(report(profiles, allow=allow))


def said(words: str, found: Page) -> bool:
    return " ".join(words.split()) in found.text


@pytest.fixture(scope="module")
def one() -> Page:
    return page(handmade.profile())


@pytest.fixture(scope="module")
def pair() -> tuple[Profile, Profile]:
    """A step, and the same one whose norms are written out: that one is the slower, by a finding."""
    written_out = synthetic.instead(synthetic.LAYER * 4, "aten::native_layer_norm", synthetic.UNFUSED_NORM)
    return synthetic.step(written_out), synthetic.step(backend="jax")


@pytest.fixture(scope="module")
def two(pair: tuple[Profile, Profile]) -> Page:
    return page(*pair)


# ------------------------------------------------------------------------------------------------ the whole page


def test_the_order_of_the_page(one: Page, two: Page) -> None:
    order = ["verdict", "where", "tables", "roofline", "ops", "modules", "timeline", "memory", "measured"]
    assert [each for each in one.ids if each in order] == order
    order.insert(1, "comparison")
    # The steps of `synthetic` have one scope without a name, so no modules.
    order.remove("modules")
    assert [each for each in two.ids if each in order] == order


def test_what_to_do_about_doubtful_numbers_stands_at_the_top() -> None:
    """Of a page of one run and of two: the reason and what helps, before any section but the verdict."""
    bare = handmade.profile(flags=("no-ceilings",))
    for profiles in ([bare], [bare, handmade.profile()]):
        top = Page(report(profiles).partition("</section>")[0]).text
        assert FLAGS["no-ceilings"].split(".")[0] in top
        assert CURES["no-ceilings"][1:] in top


def test_it_forbids_itself_all_but_its_own_style_and_script() -> None:
    text = report([handmade.profile()])
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    rules = dict(rule.split(" ", 1) for rule in policy[1].replace("&#x27;", "'").split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data: blob:"
    for element, rule in (("style", "style-src"), ("script", "script-src")):
        inline = re.findall(rf"<{element}>(.*?)</{element}>", text, flags=re.DOTALL)
        digests = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in inline]
        assert rules[rule] == " ".join(f"'sha256-{digest}'" for digest in digests)
    # What the policy would stop is not there, nor what would be fetched without it.
    assert not re.search(r'\s(style|on\w+|src|srcset|action)="', text.partition("<script type")[0])
    assert set(re.findall(r'href="([^"]*)"', text)) <= {f"#{each}" for each in (*SECTIONS, "main")}
    assert not re.search(r"https?:(?!//www\.w3\.org/2000/svg)", text)


SECTIONS = (
    *(
        "verdict",
        "where",
        "wall",
        "tables",
        "roofline",
        "ops",
        "modules",
        "timeline",
        "memory",
        "comparison",
        "measured",
    ),
)


def test_the_same_profiles_give_the_same_page(pair: tuple[Profile, Profile]) -> None:
    assert report(pair) == report(pair)


def test_no_profile_is_refused() -> None:
    with pytest.raises(InputError, match="nothing to report"):
        report([])


# --------------------------------------------------------------------------------------- it says what the text says


def test_the_sentences_are_those_of_the_text(one: Page) -> None:
    analysis = analyze(handmade.profile())
    assert said(wording.verdict(analysis, host.most(analysis)), one)
    for _, words in (*measured.facts(analysis), *evidence.facts(analysis)):
        assert said(words, one), words
    # floors 7725 µs; 2708 µs more: matmul 1000, softmax 1300 + layer norm 3, embedding 100 + gelu 5, adamw 300. If all
    # that is written reaches memory, embedding has 100 µs more, gelu 5, softmax 100 and adamw 100: 8030 µs
    words = (
        "The least times of its ops of known work add up to 7.72–8.03 ms on this device; they take at most 2.71 ms "
        "longer, 48 % of it in normalisation."
    )
    assert said(words, one)


@pytest.mark.parametrize("key", KEYS)
def test_the_tables_are_those_of_the_text(one: Page, key: str) -> None:
    profile = handmade.lined() if key == "source" else handmade.profile()
    analysis = analyze(profile)
    wanted = tables.rows(analysis, key)
    assert "By source" not in one.tables  # no line is known
    head, *found = (page(profile) if key == "source" else one).tables[f"By {key}" if key != "group" else "By group"]
    assert head[0] == key
    assert len(found) == len(wanted)
    for cells, row in zip(found, wanted, strict=True):
        assert cells[0] == row.label
        numbers = cells[2:] if key in tables.LONG else cells[1:]
        assert numbers == [column.cell(row) for column in tables.COLUMNS]


def test_where_the_time_went_adds_up_to_the_step(one: Page) -> None:
    # memory 5375 µs (embedding 400, gelu 25, softmax 1950, adamw 3000), compute 5000, gap 1800, unknown 317, overhead 8
    table = one.tables["By bound: solid is the minimum time of the ops, pale what they take above it"]
    assert [row[:3] for row in table[1:]] == [
        ["memory", "5.37 ms", "43.0"],
        ["compute", "5.00 ms", "40.0"],
        ["overhead", "8.00 µs", "0.1"],
        ["unknown", "317 µs", "2.5"],
        ["host time", "1.80 ms", "14.4"],
        # The gap in proportion to the causes of idle time: 1.2 and 0.6 of 1.8 ms.
        ["host dispatch", "1.20 ms", "9.6"],
        ["waiting for input", "600 µs", "4.8"],
    ]
    assert [row[3] for row in table[1:]][3] == units.UNKNOWN


def test_names_and_shares_stand_above_the_parts_that_have_room(one: Page) -> None:
    # memory 43.0 %, compute 40.0 and host time 14.4 of the step; unknown (2.5) and overhead (0.1) have no room.
    above = [words for words in one.words if words.strip() in ("43.0 %", "40.0 %", "14.4 %", "2.5 %", "0.1 %")]
    assert above[:3] == ["43.0 %", "40.0 %", "14.4 %"]
    assert not {"2.5 %", "0.1 %"} & {*above}
    # 7 px a letter, of a bar as wide as the page: 1000 px on a screen, 330 px on a telephone. Both are 112 px, the
    # number alone is 42.
    shown = [svg.above(0, share, 0, "pointwise", "12.0 %") for share in (0.35, 0.12, 0.1, 0.04)]
    assert [bool(words) and Page(words).text for words in shown] == ["pointwise 12.0 %"] * 2 + ["12.0 %", False]
    # On a telephone: both of 115 px, the number alone of 40 px neither, nor of 33.
    assert [words.count("wide") for words in shown if words] == [0, 2, 1]


def test_conditions_are_in_their_units() -> None:
    conditions = {"asleep_seconds_per_step": 3.35e-6, "cpu_share": 0.966, "sm_clock": 1.98e9, "load": 0.798}
    found = page(handmade.profile(conditions=conditions))
    assert said("asleep per step 3.35 µs, cpu share 96.6 %, sm clock 1.98 GHz, load 0.798", found)


def test_floors_of_a_trace_stand_between_their_two_ends() -> None:
    # Of the ops below memory, without and with what the cache may have held (1 MB of reads and of writes each):
    # inputs are all larger than it, so that their reads are not: floors 300 + 20 + 700 + 2700 = 3720 to
    # 400 + 25 + 800 + 2800 = 4025 us of a step of 12 500, in 5375 us.
    found = page(handmade.profile(imported=Imported(files=("trace.json",))))
    memory = next(
        row
        for row in found.tables["By bound: solid is the minimum time of the ops, pale what they take above it"]
        if row[0] == "memory"
    )
    assert memory[1:5] == ["5.37 ms", "43.0", "29–32", "11–14"]


def test_every_op_is_a_row_with_the_words_of_the_text() -> None:
    analysis = analyze(handmade.profile())
    found = rows(analysis)
    told = [found["time"]["texts"][number] for number in found["time"]["rows"]]
    assert told == [units.seconds(time) for time in sorted(analysis.table.share.tolist(), reverse=True)]
    assert found["by"]["time"] == sorted(found["by"]["time"], reverse=True)
    names = [found["op"]["texts"][number] for number in found["op"]["rows"]]
    mystery, product = names.index("mylib::mystery"), names.index("aten::addmm")
    assert [found[key]["texts"][found[key]["rows"][mystery]] for key in ("work", "traffic", "rate", "attained")] == [
        "–"
    ] * 4
    assert [found["by"][key][mystery] for key in ("work", "traffic", "rate", "attained")] == [None] * 4
    # 200 MFLOP of products and 0.1 MFLOP of the bias in 2500 µs: 80.04 GFLOP/s, at 2000 / 2500 of its roof
    assert found["rate"]["texts"][found["rate"]["rows"][product]] == "80.0 GFLOP/s"
    assert found["attained"]["texts"][found["attained"]["rows"][product]] == "80.0"


def test_equal_ops_are_one_row_with_their_sums() -> None:
    """Two products of 200.1 MFLOP, 4.804 MB and 2500 µs, each at 2000 / 2500 of its roof, of a step of 12,500 µs."""
    found = rows(analyze(handmade.profile()), equal=True)

    def cell(key: str, row: int) -> str:
        return found[key]["texts"][found[key]["rows"][row]]

    product = ("op", "times", "time", "share", "work", "traffic", "rate", "attained", "roof", "scope")
    assert [cell(key, 0) for key in product] == [
        *("aten::addmm", "2", "5.00 ms", "40.0", "400 MFLOP", "9.61 MB", "80.0 GFLOP/s", "80.0", "compute"),
        "toy/layer.*/ffn",
    ]
    assert found["rows"] == 7
    assert [cell("times", row) for row in range(1, 7)] == ["1"] * 6
    mystery = next(row for row in range(7) if cell("op", row) == "mylib::mystery")
    assert found["by"]["work"][mystery] is None


# --------------------------------------------------------------------------------------------------- the roofline


def test_points_stand_where_their_work_puts_them() -> None:
    some = points(analyze(handmade.profile()))
    product = next(point for point in some.placed if point.name == "aten::addmm")
    # two of 200.1 MFLOP and 4.804 MB each, in 5 ms
    assert product.rate == pytest.approx(400.2e6 / 5e-3)
    assert product.traffic == pytest.approx(9.608e6 / 5e-3)
    assert product.intensity[ALL] == pytest.approx(400.2 / 9.608)
    # Of the 0.4 + 4.004 MB that each reads what a cache of 1 MB may hold is not cold.
    assert product.intensity[COLD] is not None
    assert product.intensity[COLD] > product.intensity[ALL]
    # What it writes, 0.4 MB, may be written over before the cache evicts it.
    assert product.intensity[COLD_HIGH] == pytest.approx(1 / (1 / product.intensity[COLD] + 0.8 / 400.2))
    copy = next(point for point in some.flopless if point.name == "aten::embedding")
    assert copy.rate == 0
    assert copy.traffic == pytest.approx(4 * MB / 400e-6)
    # The op of unknown work is neither; its share of the time is told.
    assert some.unknown == pytest.approx(317 * US)
    assert sum(point.seconds for point in some.all) + some.unknown == pytest.approx(10_700 * US)


def test_axes_hold_every_point_and_a_point_at_its_roof_lies_on_the_line() -> None:
    analysis = analyze(handmade.profile())
    some = points(analysis)
    axes = plane([roofs(analysis.device, some.used)], [some])
    for point in some.placed:
        assert 0 < axes.y.share(point.rate) < 1
        for intensity in filter(None, point.intensity.values()):
            assert 0 < axes.x.share(intensity) < 1
    assert axes.y.share(100e9) < 1  # the highest ceiling
    for value in (0.1, 3.0, 200.0):
        assert axes.x.value(axes.x.share(value)) == pytest.approx(value)
    # Ten times as much is as far everywhere: the axis is logarithmic.
    assert axes.x.share(10.0) - axes.x.share(1.0) == pytest.approx(axes.x.share(100.0) - axes.x.share(10.0))


# ------------------------------------------------------------------------------------------- modules and timeline


def test_a_module_is_the_sum_of_what_is_below_it() -> None:
    analysis = analyze(handmade.profile())
    top, sums = tree(analysis)
    toy = top.below["toy"]
    assert list(top.below) == ["toy", "AdamW"]
    assert list(toy.below) == ["embedding", "layer.0", "layer.1", "attention", "norm"]
    seconds = {name: float(sums.seconds[module.row]) / US for name, module in toy.below.items()}
    assert seconds == pytest.approx({"embedding": 400, "layer.0": 2525, "layer.1": 2500, "attention": 2267, "norm": 8})
    assert float(sums.seconds[toy.row]) / US == pytest.approx(sum(seconds.values()))
    # two products of 200.1 MFLOP, gelu 0.4, softmax 4, layer norm 0.008: what of them is known
    assert sums.flops(toy.row) == pytest.approx(400.2e6 + 0.4e6 + 4e6 + 8e3)
    assert sums.unknown[toy.row] == pytest.approx(367 * US)
    assert sums.flops(toy.below["norm"].row) == 8e3
    by_scope = analysis.by("scope")
    assert by_scope["toy/layer.0/ffn"].seconds == pytest.approx(float(sums.seconds[toy.below["layer.0"].row]))


def test_a_path_of_many_parts_has_an_end() -> None:
    deep = "/".join(f"part{number}" for number in range(5000))
    profile = handmade.profile(scopes=(deep, *handmade.SCOPES[1:]))
    top, sums = tree(analyze(profile))
    at, levels = top, 0
    while at.below:
        at, levels = next(iter(at.below.values())), levels + 1
    # A hundred levels, the last of which is the rest of the path.
    assert (levels, at.name.partition("/")[0]) == (100, "part99")
    assert at.name.endswith("/part4999")
    assert float(sums.seconds[at.row]) == pytest.approx(400e-6)
    assert "part98" in report([profile])


def test_a_module_of_unknown_work_has_none() -> None:
    signatures = tuple(replace(each, cost=unknown("no formula")) for each in handmade.SIGNATURES)
    _, sums = tree(analyze(handmade.profile(signatures=signatures)))
    assert [sums.flops(row) for row in range(1, len(sums.own))] == [None] * (len(sums.own) - 1)


def test_the_timeline_is_idle_where_no_op_runs() -> None:
    # The first kept step: own times are 0.99 of those above. Softmax ends at 6100 + 1980 = 8080, after mystery began at
    # 8000, which ends at 8000 + 363.33; the step of 13.7 ms ends 1.73 ms after adamw, at 9000 + 2970.
    found = timeline(analyze(handmade.profile()))
    assert np.stack([found.idle.start, found.idle.end], axis=1) / US == pytest.approx(
        np.asarray(
            [
                (0, 200),
                (596, 700),
                (3175, 3400),
                (3424.75, 3500),
                (5975, 6100),
                (8363.33, 8500),
                (8507.92, 9000),
                (11970, 13700),
            ]
        )
    )
    assert found.idle.before.tolist() == [0, 1, 2, 3, 4, 6, 7, -1]
    assert found.wall == pytest.approx(13.7e-3)


@pytest.mark.parametrize(
    ("profile", "why"),
    [
        (handmade.profile(profiled=None), "counted and not timed"),
        (handmade.without_steps(), "no profiled step was kept"),
        (handmade.profile(ops=()), "no op was recorded"),
        (handmade.profile(ops=tuple(replace(op, start_ns=0) for op in handmade.OPS)), "does not say when"),
    ],
)
def test_why_there_is_no_timeline(profile: Profile, why: str) -> None:
    assert why in absent(analyze(profile))
    assert why in page(profile).text


def test_what_the_host_did_before_an_op_is_told_where_it_is_recorded() -> None:
    rows = [replace_row(row) for row in synthetic.LAYER]
    text = page(synthetic.step(rows)).text
    assert "7.00 µs in the framework, 3.00 µs in Python" in text
    assert "The profile does not say which stretch has which cause" not in text
    assert "The profile does not say which stretch has which cause" in page(synthetic.step()).text


def test_idle_time_that_is_recorded_is_told_and_not_what_lies_between_ops() -> None:
    """An op of several kernels ends later than it is drawn: the gap behind it is no idle time, but for 10 µs."""
    ops = [replace_row(synthetic.ADD), replace_row(synthetic.ADD)]
    plain = synthetic.step(ops)
    later = replace(plain, ops=(plain.ops[0], replace(plain.ops[1], start_ns=plain.ops[1].start_ns + 90_000)))
    found = timeline(analyze(later))
    assert found.idle.recorded
    # 10 µs before each op; both take 19.8 µs in the first step, and the second one begins at 10 + 20 + 10 + 90 µs.
    assert ((found.idle.end - found.idle.start) / US)[:2] == pytest.approx([10, 10])
    assert (found.idle.start / US)[:2] == pytest.approx([0, 120])


def replace_row(row: synthetic.Row) -> synthetic.Row:
    return synthetic.change(row, host=(7.0, 3.0))


# ------------------------------------------------------------------------------------------------------ two and more


def test_two_runs_are_compared_in_the_words_of_the_text(pair: tuple[Profile, Profile], two: Page) -> None:
    ranking = rank(pair, as_given=True)
    found = ranking.pairs[0]
    assert found.account.rows
    assert two.text.count(comparing.verdict(found)) == 1
    for words in (
        parity_words.same_work(found),
        *parity_words.work(found),
        *parity_words.settings(found),
        *parity_words.doubts(found),
    ):
        assert said(words, two)
    for row in account_rows.rows(found):
        assert all(said(words, two) for words in account_rows.lines(found, row))
    for _, words in (*pair_facts.runs(found), *pair_facts.table(found), *pair_facts.doubts(found)):
        assert said(words, two)
    made = term_table.table(found.comparison)
    assert [row[0] for row in two.tables["The sum of the difference, A − B"][1:]] == [
        *(row.label for row in made.rows),
        "total",
    ]
    for run in ranking.runs:
        step = f"{wording.subject(run)} on {wording.device(run)}: "
        verdict = wording.verdict(run, host.most(run))
        assert verdict.startswith(step)  # which the head of the page says of both
        assert said(verdict.removeprefix(step), two)


def test_the_waterfall_leads_from_one_wall_to_the_other(pair: tuple[Profile, Profile], two: Page) -> None:
    found = rank(pair, as_given=True).pairs[0]
    (rows,) = (table for caption, table in two.tables.items() if caption.startswith("Orange (+)"))
    # Signed as the account: A - B, so it leads from B to A.
    assert account_rows.difference(found) == rows[0][2] == "A − B"
    assert rows[1][2] == units.seconds(found.comparison.b.wall)
    assert rows[-1][2] == units.seconds(found.comparison.a.wall)
    changes = [row[2] for row in rows[2:-1]]
    added = [part.end - part.begin for part in waterfall(found).parts[1:-1]]
    assert [change.lstrip("+-") for change in changes] == [units.seconds(abs(seconds)) for seconds in added]
    assert sum(added) == pytest.approx(found.comparison.difference)
    assert all((seconds < 0) == change.startswith("-") for change, seconds in zip(changes, added, strict=True))


@pytest.mark.parametrize("slower", [0, 1])
def test_the_waterfall_and_the_account_give_a_row_one_sign(slower: int) -> None:
    """Of two measured runs, torch takes longer: given first its rows are A - B, given second B - A; + either way."""
    runs = [load(MEASURED / "bert-infer-1-thread" / f"{backend}.json") for backend in ("torch", "tensorflow")]
    found = rank(runs if slower == 0 else runs[::-1], as_given=True).pairs[0]
    assert found.headline.slower == slower
    chart, rows = waterfall(found), account_rows.rows(found)
    assert chart.sides == (1 - slower, slower)
    assert [part.label for part in (chart.parts[0], chart.parts[-1])] == ["tensorflow", "torch"]
    for part, row in zip(chart.parts[1:4], rows, strict=False):
        assert part.text == account_rows.written(found, account_rows.seconds(row))
        if row.ci95 is not None:
            low, high = part.ci95
            assert low <= part.end <= high
            width = row.ci95[1] - row.ci95[0]
            assert high - low == pytest.approx(width)
    (largest, *_) = chart.parts[1:]
    assert largest.text.startswith("+")


@pytest.mark.parametrize(("longest", "is_shorter"), [(12.4e-3, True), (12.6e-3, False)])
def test_synchronised_steps_that_are_all_shorter_than_plain_ones_are_pointed_out(
    longest: float, is_shorter: bool
) -> None:
    """Plain steps take 12.5 ms in the median: three with a synchronisation after each are shorter, or not all."""
    profile = handmade.profile()
    text = page(replace(profile, wall=replace(profile.wall, single=(11e-3, 11.5e-3, longest)))).text
    assert f"3 steps with a synchronisation after each, {units.seconds_between(11e-3, longest)}" in text
    assert ("why was not recorded" in text) == is_shorter


def test_an_axis_that_does_not_begin_at_zero_is_broken_and_says_so() -> None:
    assert axis(10.0, 4.0, [(4.0, 10.0)])[0] == 0
    near = Waterfall((1, 0), (), (), *axis(10.0, 9.5, [(9.5, 10.0)]))
    assert near.is_broken
    assert near.low == pytest.approx(9.5 - 0.25 * 0.5)
    assert near.share(10.0) == 1
    slower = synthetic.step(synthetic.LAYER * 4, extra_gap=100)
    text = page(slower, synthetic.step()).text
    assert "the bars of the walls are broken" in text


def test_runs_that_are_not_comparable_are_not_explained() -> None:
    half = synthetic.step(synthetic.LAYER * 2)
    runs = (synthetic.step(), half)
    found = page(*runs)
    assert "not comparable with" in found.text
    assert "so no cause is named" in found.text
    assert "add --allow" in found.text
    assert not any(caption.startswith("Orange (+)") for caption in found.tables)
    assert 'class="findings"' not in report(runs)
    allowed = page(*runs, allow=True)
    assert "NOT COMPARABLE, compared anyway" in allowed.text
    assert any(caption.startswith("Orange (+)") for caption in allowed.tables)


def test_several_runs_are_ranked() -> None:
    runs = [synthetic.step(backend=name, host=host) for name, host in (("torch", 40), ("jax", 10), ("keras-jax", 80))]
    found = page(*runs)
    (table,) = (rows for caption, rows in found.tables.items() if caption == "The runs, the fastest first")
    assert [row[0] for row in table[1:]] == ["1 jax", "2 torch", "3 keras-jax"]
    (matrix,) = (rows for caption, rows in found.tables.items() if caption.startswith("Factors: time of the row"))
    assert [row[0] for row in matrix[1:]] == ["1 jax", "2 torch", "3 keras-jax"]
    assert len(json.loads(found.data)["runs"]) == 3
    # Of each pair one is A: no run of the page is.
    assert found.words.count("A ") == found.words.count("B ") == 0
    # The slowest and the fastest are compared in the first sentence, the other pair below its names.
    for compared in rank(runs, as_given=True).pairs:
        assert found.text.count(comparing.verdict(compared)) == 1


def test_compared_runs_are_under_one_set_of_ceilings_in_every_section() -> None:
    """The other run saw twice the bandwidth: under that the first one's memory-limited ops are half as close to it."""
    fast = handmade.device(dram_copy=20e9)
    runs = [handmade.profile(), handmade.profile(backend="jax", device=fast)]
    common, own = rank(runs, as_given=True).runs[0], analyze(runs[0])
    assert wording.attained(common.total) != wording.attained(own.total)
    found = page(*runs)
    step = f"{wording.subject(own)} on {wording.device(own)}: "
    assert said(wording.verdict(common, host.most(common)).removeprefix(step), found)
    assert not said(wording.verdict(own, host.most(own)).removeprefix(step), found)


def test_of_several_runs_those_that_are_not_comparable_are_folded() -> None:
    """Of the slowest, which does twice the work, the line says why; the other pair is open, below its verdict."""
    half = synthetic.LAYER * 2
    runs = [
        synthetic.step(),
        *(synthetic.step(half, backend=name, host=host) for name, host in (("jax", 9), ("keras-jax", 20))),
    ]
    comparable, refused = rank(runs, as_given=True).pairs
    folds = re.findall(
        r'<details class="pair"( open)?><summary>(.*?)</summary>(.*?)</details>', report(runs), re.DOTALL
    )
    assert [bool(is_open) for is_open, *_ in folds] == [True, False]
    assert comparing.refusal(refused) in Page(folds[1][1]).text
    assert page(*runs).text.count(comparing.verdict(comparable)) == 1


def test_the_rows_that_share_a_bar_of_the_waterfall_are_folded_with_its_number_and_sum() -> None:
    runs = [load(MEASURED / "bert-infer-1-thread" / f"{backend}.json") for backend in ("torch", "jax")]
    compared = rank(runs, as_given=True).pairs[0]
    chart, rows = waterfall(compared), account_rows.rows(compared)
    assert sum(map(account_rows.seconds, rows)) == pytest.approx(compared.comparison.difference)
    smaller = chart.parts[-2]
    assert smaller.label.startswith(f"{len(rows) - len(chart.rows)} smaller rows")
    found = page(*runs)
    assert said(f"{smaller.label}: {smaller.text},", found)
    assert "docs/annotations" not in found.text  # who gets the page has no such file
    assert all(said(words, found) for row in rows for words in account_rows.lines(compared, row))


def test_a_run_that_was_only_counted_is_shown_and_not_compared() -> None:
    found = page(handmade.profile(profiled=None), handmade.profile())
    assert "was counted and not timed" in found.text
    assert "The runs are not compared" in found.text


# ----------------------------------------------------------------------------------------------- what is not known


@pytest.mark.parametrize(
    "profile",
    [
        handmade.profile(ops=(), profiled=None),
        handmade.profile(ops=()),
        handmade.profile(profiled=None),
        handmade.without_steps(),
        handmade.filled(),
        handmade.profile(
            device=replace(handmade.device(), ceilings={}, caches=(), kind="cuda"),
            wall=Wall(steps=(0.0125,), source="profiled"),
            batch=None,
            seq=None,
            samples=None,
            tokens=None,
            versions={},
            date="",
        ),
        handmade.profile(signatures=tuple(replace(each, cost=unknown("")) for each in handmade.SIGNATURES)),
        handmade.profile(scopes=("",) * len(handmade.SCOPES)),
    ],
)
def test_what_is_not_known_is_a_dash_and_no_error(profile: Profile) -> None:
    found = page(profile)
    assert not re.search(r"\b(nan|None|inf|-0)\b", found.text)
    json.loads(found.data)


def test_a_step_that_was_only_counted_has_its_work() -> None:
    found = page(handmade.profile(profiled=None))
    assert "counted and not timed" in found.text
    table = found.tables["By group"]
    work = ["model FLOP", "executed FLOP", "vector FLOP", "FLOP %", "read", "written", "bytes %"]
    assert table[0] == ["group", "ops", *work]
    assert table[1][:4] == ["matmul", "2", "400 MFLOP", "400 MFLOP"]
    assert "per step" not in found.text
    assert "where" not in found.ids


def test_ops_without_times_are_ticks_at_their_intensity() -> None:
    """Products of 200.1 MFLOP and 4.804 MB; alone, without ceilings, and beside a timed run."""
    counted = handmade.profile(profiled=None)
    some = points(analyze(counted))
    assert (some.all, {precision for _, precision in some.used}) == ((), {"fp32"})
    assert some.ticks[0].intensity == pytest.approx(200.1 / 4.804)
    axes = plane([roofs(counted.device, some.used)], [some])
    assert all(0 < axes.x.share(tick.intensity) < 1 for tick in some.ticks)
    bare = replace(counted, device=replace(counted.device, ceilings={}))
    for profiles, flat, others in (
        ((counted,), False, 0),
        ((bare,), True, 0),
        ((handmade.profile(), counted), False, 1),
    ):
        text = report(profiles)
        found = Page(text)
        assert "roofline" in found.ids
        assert "aten::addmm: 41.7 FLOP/B, 400 MFLOP" in found.words
        assert text.count('<g class="point group-') == len(some.ticks)
        assert ('class="plane flat"' in text) == flat
        assert said("Each tick stands at the FLOP", found)
        assert said("Lines are the ceilings of the device.", found) != flat
        assert "There is no roofline" not in found.text
        # What the script turns is of runs with times alone.
        assert text.count("data-roofline=") == others
    nothing = replace(
        counted, signatures=tuple(replace(each, cost=unknown("no formula")) for each in handmade.SIGNATURES)
    )
    assert "roofline" not in page(nothing).ids
    assert said("There is no roofline: no op is known to do any FLOP.", page(handmade.profile(), nothing))


#: Names that mean nothing in HTML: `make test` has them where text is escaped (test_html.py).
HARMLESS = {name for name in handmade.HOSTILE if name.isprintable() and not set(name) & set('<"')}


@cache
def plain_tags() -> frozenset[str]:
    return frozenset(page(handmade.profile()).tags)


@pytest.mark.parametrize(
    "hostile",
    [
        *(pytest.param(name, marks=pytest.mark.thorough if name in HARMLESS else ()) for name in handmade.HOSTILE),
        "</script><script>alert(1)</script>",
        "x" * 10_000,
    ],
)
def test_hostile_names_stay_text(hostile: str) -> None:
    found = page(handmade.hostile(hostile))
    assert set(found.tags) <= {*plain_tags(), "small"}
    assert found.tags.count("script") == 3
    assert found.text.replace("\n", " ").isprintable()
    assert all(len(text) <= 1000 + 20 for text in strings(json.loads(found.data)))


def test_hostile_names_of_two_runs_stay_text() -> None:
    for hostile in handmade.HOSTILE[:2]:
        found = page(handmade.hostile(hostile), handmade.hostile(hostile + "b"), allow=True)
        assert found.tags.count("script") == 3
        assert found.text.replace("\n", " ").isprintable()


def strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in inside for text in strings(each)]


def test_a_large_step_is_bounded() -> None:
    """Of 12,000 ops the table lists 10,000, the timeline draws the first of them, and the page is below 4 MB."""
    profile = handmade.wide(12_000, 20)
    analysis = analyze(profile)
    assert len(rows(analysis)["op"]["rows"]) == 10_000
    assert len(timeline(analysis).rows) == 12_000
    text = report([profile])
    assert len(text) < 4e6
    assert "Only the first 10,000 of 12,000 ops are drawn." in text
