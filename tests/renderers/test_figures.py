"""Figures: each kind draws what it says, the same bytes again, with a caption that says where it comes from.

That no text overlaps anything is in test_figure_layout.py.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import handmade
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from msgspec.structs import replace

from roofline import devices, plugins, units
from roofline.analysis.analysis import Analysis, analyze, analyze_timed
from roofline.comparison.ranking import rank
from roofline.comparison.terms import compare
from roofline.content import points, roofs, signed, sums, tables, timeline
from roofline.content.comparison import pair_facts, ranked, term_table
from roofline.content.facts.wall import chart
from roofline.core import shipped
from roofline.core.cost import unknown
from roofline.core.schema import Imported, Op, Profile, Waits, Wall, load, save
from roofline.core.vocabulary import GROUPS
from roofline.errors import InputError
from roofline.renderers import _screen, figures
from roofline.renderers.figures import _bars, _frame, _light, _style, breakdown
from roofline.renderers.report import report
from roofline.renderers.report.parts.run import TimedRun
from roofline.renderers.report.where import by_bound, by_group

Drawn = Callable[[str, str], tuple[Path, str]]
SMALLEST = 6.0  # pt
FIGURES = "roofline.renderers.figures"
#: Those that are drawn of profiles; a map of a sweep has tests of its own (test_sweep_map.py).
KINDS = [kind for kind in plugins.names(FIGURES) if "OF_FOLDERS" not in plugins.constants(FIGURES, kind)]
kinds = pytest.mark.parametrize("kind", KINDS)
#: How many profiles a kind takes, where that is not any number.
TAKES = {"waterfall": 2}
#: Kinds that need times of ops, and those that compare them.
TIMED = {"bound", "speedup", "timeline", "waterfall"}
COMPARING = {"speedup", "waterfall"}
#: Kinds with a mark for each of many ops, so that what is drawn of ten runs comes near the limit of a file.
MANY_MARKS = {"roofline", "timeline"}


def test_the_folder_is_the_list() -> None:
    assert set(KINDS) >= {"bound", "breakdown", "devices", "roofline", "timeline"}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in MANY_MARKS])
def test_a_figure_is_light(kind: str, tmp_path: Path) -> None:
    """Of steps with every bound and every group, at most 100 kB: 547 ops of a training step on an H100."""
    names = ("bert-torch-train-b32-bf16", "bert-torch-compile-default-train-b32-bf16")
    profiles = [load(shipped.paths()[f"h100/{name}"]) for name in names]
    figures.draw(kind, [analyze(profile) for profile in profiles][: TAKES.get(kind, 2)], tmp_path / "x.svg", 7.0)
    assert (tmp_path / "x.svg").stat().st_size <= 100_000


@cache
def plain_run() -> Analysis:
    return analyze_timed(handmade.profile())


@cache
def ten_runs(device: str) -> list[Analysis]:
    """Ten backends on a CPU, each with hundreds of ops and idle stretches; ten training steps on an H100."""
    folder = Path(__file__).parents[2] / "docs" / "measured" / "bert-infer-1-thread"
    training = [path for name, path in sorted(shipped.paths().items()) if name.startswith("h100/") and "train" in name]
    paths = sorted(folder.glob("*.json")) if device == "cpu" else training[:10]
    return [analyze_timed(load(path)) for path in paths]


@pytest.mark.parametrize(
    ("device", "kind"),
    [
        pytest.param(device, kind, marks=() if device == "h100" and kind in MANY_MARKS else pytest.mark.thorough)
        for device in ("cpu", "h100")
        for kind in KINDS
    ],
)
def test_a_figure_of_ten_runs_is_light(kind: str, device: str) -> None:
    """`make test` draws the two that come nearest to it."""
    runs = ten_runs(device)
    assert len(runs) == 10
    drawing, _ = figures.render(kind, runs[: TAKES.get(kind, 10)], ".svg", 7.0)
    assert len(drawing) <= 100_000


def test_a_lighter_path_goes_to_the_same_places() -> None:
    """Steps between places that were rounded, not rounded steps: after 200 of 0.006 it is at 10 + 1.20."""
    places = " ".join(f"L {10 + 0.006 * number:.6f} {number % 2}" for number in range(1, 201))
    path = f'<path d="M 10 0 {places} "/>'
    (written,) = re.findall(r'd="([^"]*)"', _light.lighten(f"<svg>{path}</svg>"))
    steps = re.findall(r"([hvl])(-?[.\d]+)(?: ?(-?[.\d]+))?", written.removeprefix("M10 0"))
    assert sum(float(x) for command, x, _ in steps if command in "hl") == pytest.approx(1.2)
    corner = '<path d="M 1.5 2.25 L 3.5 2.25 L 3.5 1.25 L 0 0 z M 5 5 C 5 6 6 6 6 5.126 "/>'
    assert 'd="M1.5 2.25h2v-1l-3.5-1.25zm3.5 2.75c0 1 1 1 1 .12"' in _light.lighten(f"<svg>{corner}</svg>")


def test_no_colour_stands_for_a_bound_and_a_group() -> None:
    """Nor for anything else: of pieces that are equal in grey the hatch or the marker tells."""
    from roofline.content import palette

    # The optimizer's state has the colour of the optimizer.
    storages = {kind: pair for kind, pair in palette.STORAGES.items() if kind != "optimizer"}
    for theme in (0, 1):
        colours = [
            pair[theme]
            for table in (palette.BOUNDS, palette.GROUPS, palette.SIDES, storages)
            for pair in table.values()
        ]
        assert len(set(colours) - {palette.GROUPS["other"][theme], palette.SIDES["saves"][theme]}) >= len(colours) - 2
    assert len({(marker, hatch) for _, marker, hatch in _style.GROUP.values()}) == len(_style.GROUP)
    with _style.applied():
        wall = figures.render("wall", [plain_run()], ".svg", 7.0)[0].decode()
        bound = figures.render("bound", [plain_run()], ".svg", 7.0)[0].decode()
    (matmul, _), (compute, _) = palette.GROUPS["matmul"], palette.BOUNDS["compute"]
    assert (matmul in wall, compute in wall, matmul in bound, compute in bound) == (True, False, False, True)


@kinds
@pytest.mark.parametrize(
    ("width", "number"),
    [
        pytest.param(width, number, marks=() if (width, number) in ((3.3, 1), (7.0, 5)) else pytest.mark.thorough)
        for width, number in product((3.3, 7.0), (1, 2, 4, 5, 10))  # of five on, each has a panel of a roofline
    ],
)
def test_text_is_legible_and_the_figure_fits_a_page(kind: str, width: float, number: int) -> None:
    from matplotlib.text import Text

    with _style.applied():
        figure, _ = figures.build(kind, [plain_run()] * TAKES.get(kind, number), width)
        texts = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip()]
        assert texts
        assert min(t.get_fontsize() for t in texts) >= SMALLEST
        assert not any("$" in t.get_text() for t in texts)  # exponents would be set smaller than that
        wide, high = figure.get_size_inches()
        assert wide == width
        assert high <= 9.0  # a page


def slower() -> Profile:
    """The same step, twice as slow: of two equal runs there would be no difference to draw."""
    profile = handmade.profile()
    return replace(profile, wall=replace(profile.wall, steps=tuple(2 * seconds for seconds in profile.wall.steps)))


#: Each kind as an SVG, and one with markers and one with hatches in the formats whose writers know no kinds.
FILES = [*((kind, ".svg") for kind in KINDS), ("devices", ".pdf"), ("breakdown", ".png")]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    """Draws one profile, each kind and format once and in a folder of its own: the figure's path and its caption."""

    @cache
    def draw(kind: str, suffix: str) -> tuple[Path, str]:
        path = tmp_path_factory.mktemp("drawn") / f"x{suffix}"
        items = [plain_run(), analyze(slower())][: TAKES.get(kind, 1)]
        return path, figures.draw(kind, items, path, long_caption=True)

    return draw


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "suffix"), FILES)
def test_file_and_caption(drawn: Drawn, kind: str, suffix: str) -> None:
    path, told = drawn(kind, suffix)
    assert path.stat().st_size > 1000
    assert "Round Device" in told
    if kind != "devices":
        assert "torch 2.13.0" in told
        assert "n = 10 steps back to back, median 12.5 ms, p10–p90 12.4–12.6 ms" in told
    # Nothing beside it: the same figure in another format finds its place free.
    assert [file.name for file in path.parent.iterdir()] == [f"x{suffix}"]


@pytest.mark.slow
@kinds
def test_a_caption_is_short_unless_it_is_asked_for(drawn: Drawn, kind: str, tmp_path: Path) -> None:
    items = [plain_run(), analyze(slower())][: TAKES.get(kind, 1)]
    with _style.applied():
        caption = figures.build(kind, items)[1]
    assert drawn(kind, ".svg")[1] == caption.text(long=True)
    short = caption.text(long=False)
    assert len(short) < len(caption.text(long=True))
    assert "Round Device" in short
    assert "n = 10 steps" not in short
    if kind == "bound":
        assert figures.draw(kind, items, tmp_path / "x.svg") == short


SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.slow
@kinds
def test_an_svg_has_text_and_says_what_it_is(drawn: Drawn, kind: str) -> None:
    path, told = drawn(kind, ".svg")
    root = ElementTree.fromstring(path.read_bytes())
    assert root.find(f"{SVG}desc").text == told
    assert told.startswith(root.find(f"{SVG}title").text)
    assert root.get("aria-labelledby").split() == [root.find(f"{SVG}{name}").get("id") for name in ("title", "desc")]
    texts = list(root.iter(f"{SVG}text"))
    assert any("FLOP" in text.text or "step" in text.text for text in texts)
    # Readers without our font get one of the same widths.
    assert all("'DejaVu Sans', Verdana, sans-serif" in text.get("style") for text in texts)


@pytest.mark.slow
def test_a_pdf_embeds_its_fonts(drawn: Drawn) -> None:
    data = drawn("devices", ".pdf")[0].read_bytes()
    assert b"/FontFile2" in data  # a TrueType font, which is what Type 42 is in a PDF
    assert b"/Type3" not in data
    assert b"/Title" in data


_DRAW = """
import sys
from pathlib import Path
from roofline.analysis.analysis import Analysis, analyze, analyze_timed
from roofline.core.schema import load
from roofline.renderers import figures
first, second = (analyze(load(path)) for path in sys.argv[1:3])
for name in sys.argv[4:]:
    file = Path(sys.argv[3]) / name
    items = [first, second] if file.stem == "waterfall" else [first]
    figures.draw(file.stem, items, file, long_caption=True)
"""


@pytest.mark.slow
def test_the_same_bytes_in_another_process(drawn: Drawn, tmp_path: Path) -> None:
    """One that hashes otherwise, and has drawn other figures before each: this one has drawn what other tests ask."""
    save(handmade.profile(), tmp_path / "profile.json")
    folder = tmp_path / "there"
    folder.mkdir()
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    save(slower(), tmp_path / "second.json")
    command = [
        sys.executable,
        "-c",
        _DRAW,
        *(str(tmp_path / f"{name}.json") for name in ("profile", "second")),
        str(folder),
        *(kind + suffix for kind, suffix in FILES),
    ]
    subprocess.run(command, check=True, env=environment)
    here = {kind + suffix: sha256(drawn(kind, suffix)[0]) for kind, suffix in FILES}
    assert {file.name: sha256(file) for file in folder.iterdir()} == here


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.mark.slow
@kinds
@pytest.mark.parametrize(
    "first", [0, *(pytest.param(n, marks=pytest.mark.thorough) for n in range(3, len(handmade.HOSTILE), 3))]
)
def test_hostile_names(kind: str, first: int, tmp_path: Path) -> None:
    """The first two are what the assertions look for: elements, and letters that are not printed."""
    names = handmade.HOSTILE[first : first + TAKES.get(kind, 3)]
    given = [analyze(handmade.hostile(name)) for name in names]
    told = figures.draw(kind, given, tmp_path / "x.svg", long_caption=True)
    data = (tmp_path / "x.svg").read_bytes()
    assert b"<script" not in data
    ElementTree.fromstring(data)
    assert all(c.isprintable() for c in told)


@kinds
def test_odd_profiles(kind: str, tmp_path: Path) -> None:
    bare = replace(handmade.device(), ceilings={}, caches=())
    refused = {
        "breakdown": "has no op",
        "roofline": "nothing to put under",
        "timeline": "no op was recorded",
        "devices": "No peak",
        "memory": "neither storages nor buffers",
    }
    odd = [handmade.profile(ops=()), handmade.profile(device=bare)]
    if kind not in TIMED:
        odd.append(handmade.profile(ops=(), profiled=None))
    for number, profile in enumerate(odd):
        try:
            figures.draw(kind, [analyze(profile)] * TAKES.get(kind, 1), tmp_path / f"{number}.svg")
        except InputError as error:
            assert re.search(refused[kind], str(error))  # noqa: PT017 - what draws is fine as well
            assert not (tmp_path / f"{number}.svg").exists()


def test_bars_close_to_the_wall() -> None:
    # The second: floors above own time. Of a trace without buffers floors are ranges.
    profiles = handmade.profile(), handmade.profile(imported=Imported(files=("t.json",)))
    devices = handmade.device(), handmade.device(dram_copy=1e9)
    for profile, device in product(profiles, devices):
        analysis = analyze(profile, device)
        found = _bars.segments(analysis)
        assert min(piece.seconds for piece in found) >= 0
        assert sum(piece.seconds for piece in found) == pytest.approx(analysis.wall, rel=1e-12)
        assert {piece.label for piece in found} <= set(_bars.ORDER)


@cache
def run(milliseconds: float, backend: str, **changes: object) -> object:
    steps = tuple(milliseconds * 1e-3 * (1 + n / 1000) for n in (-1, 0, 1))
    return analyze(handmade.profile(backend=backend, wall=Wall(steps=steps), **changes))


def written(figure: Any) -> list[str]:
    """All texts of a figure, in the order in which they were written."""
    from matplotlib.text import Text

    return [text.get_text() for text in figure.findobj(Text) if text.get_text().strip()]


def test_the_run_with_least_time_is_on_top_and_the_others_say_what_the_headline_does() -> None:
    with _style.applied():
        figure, caption = figures.build("speedup", [run(20, "slow"), run(12.5, "fast"), run(15, "middle")], 7.0)
    rows = [text for text in written(figure) if text.startswith(("fast", "middle", "slow"))]
    # 15 / 12.5 = 1.2 and 20 / 12.5 = 1.6; steps 0.1 % apart, and processes of one step by 10 %.
    assert rows[0] == "fast: 12.5 ms, least time"
    assert re.fullmatch(r"middle: 15\.0 ms, took 1\.20x longer \(95 % interval 1\.0\d–1\.3\d\)", rows[1])
    assert re.fullmatch(r"slow: 20\.0 ms, took 1\.60x longer \(95 % interval 1\.[34]\d–1\.8\d\)", rows[2])
    assert "middle took 1.20x longer than fast in these two runs" in caption.long
    assert "n = 3 steps" in caption.long


def test_of_a_run_that_the_headline_does_not_call_slower_the_time_stands_alone() -> None:
    with _style.applied():
        figure, caption = figures.build(
            "speedup", [run(12.5, "fast"), run(13.1, "near"), run(50, "busy", flags=("contended",))], 7.0
        )
    assert {"near: 13.1 ms", "busy: 50.0 ms"} <= set(written(figure))
    assert "one process each, but other programs ran beside busy, which may be why they differ" in caption.long


def test_a_run_of_too_few_steps_has_no_interval_and_one_that_is_as_fast_is_not_called_slower() -> None:
    two = analyze(handmade.profile(backend="two", wall=Wall(steps=(15e-3, 15e-3))))
    noisy = [analyze(handmade.profile(backend=name, wall=Wall(steps=steps))) for name, steps in (
        ("one", (10e-3, 12.5e-3, 15e-3, 11e-3)), ("other", (11e-3, 12.6e-3, 15e-3, 10e-3)))]  # fmt: skip
    with _style.applied():
        figure, _ = figures.build("speedup", [run(12.5, "fast"), two], 7.0)
        assert "two: 15.0 ms, took 1.20x longer" in written(figure)
        figure, _ = figures.build("speedup", noisy, 7.0)
    assert not any("slower" in text or "longer" in text for text in written(figure))


def test_a_run_that_is_not_comparable_has_a_mark() -> None:
    with _style.applied():
        figure, caption = figures.build("speedup", [run(12.5, "fast"), run(15, "other", precision="bf16")], 3.3)
    assert any(" longer " in text and text.endswith("†") for text in written(figure))
    assert "† Not comparable with fast: other (precision)." in caption.short
    assert "† other is not comparable with fast:" in caption.long


@pytest.mark.parametrize("width", [3.3, 7.0])
def test_a_waterfall_of_runs_that_are_not_comparable_says_so_in_the_image(width: float) -> None:
    def title(**changes: object) -> str:
        with _style.applied():
            figure, _ = figures.build("waterfall", [run(12.5, "a"), run(15, "b", **changes)], width)
        return next((text for text in written(figure) if text.startswith("NOT COMPARABLE")), "")

    assert title(batch=8).startswith("NOT COMPARABLE: batch")
    assert title() == ""
    # Nor is one of them called slower above such a picture.
    with _style.applied():
        caption = figures.build("waterfall", [run(12.5, "a"), run(15, "b", batch=8)], width)[1]
    assert caption.title.startswith("A step takes 12.5 ms in a to 15.0 ms in b")


def test_the_title_of_a_waterfall_says_what_its_times_are_of_where_the_bars_have_others() -> None:
    """The headline has means of processes, 16.9 and 12.5 ms, and bars the profiled process, 15 and 12.5 ms."""
    slow = handmade.profile(backend="slow", wall=Wall(steps=(15e-3,) * 20, processes=((18e-3,) * 20,) * 2))
    fast = handmade.profile(backend="fast", wall=Wall(steps=(12.5e-3,) * 20, processes=((12.5e-3,) * 20,) * 2))
    words = "Bars are of the profiled process, the sentence above of all processes"
    with _style.applied():
        texts = written(figures.build("waterfall", [analyze(slow), analyze(fast)], 7.0)[0])
        assert words in texts
        assert "15.0 ms" in texts
        near = figures.build("waterfall", [run(12.5, "a"), run(12.6, "b")], 7.0)
    assert words not in written(near[0])
    assert ": these runs do not say which is faster" in near[1].title


def test_captions_call_runs_of_one_backend_by_their_names() -> None:
    for kind in COMPARING:
        with _style.applied():
            told = figures.build(kind, [run(12.5, "torch"), run(15, "torch", batch=8)])[1].long
        assert "4 in torch (b4) and 8 in torch (b8)" in told or "8 in torch (b8) and 4 in torch (b4)" in told
        assert "the first run" not in told


def test_a_title_keeps_the_names_of_its_runs_whole() -> None:
    """Runs of one backend are told apart in brackets, and a backend from a trace may have any name. 20 / 12.5 = 1.6."""
    backend = "v1. 2 (x): y"
    names = f"{backend} (fp32)", f"{backend} (bf16)"
    items = [run(20, backend, precision="fp32"), run(12.5, backend, precision="bf16")]
    for kind in COMPARING:
        with _style.applied():
            title = figures.build(kind, items, 20.0)[1].title
        assert title.endswith(f": {names[0]} took 1.60x longer than {names[1]} in these two runs")
    for kind in ("bound", "roofline"):
        with _style.applied():
            title = figures.build(kind, items, 20.0)[1].title
        assert title.endswith(f": a step takes 12.5 ms in {names[1]} to 20.0 ms in {names[0]}")


def test_a_gap_that_scaled_ops_hide_is_not_known_and_not_0() -> None:
    """Ops of a profiled step on an H100 took longer than a plain step: what was left between them is not known."""
    analysis = analyze(load(shipped.paths()["h100/bert-jax-buffers-on-infer-b32-tf32"]))
    assert analysis.fills_by_scale
    assert units.seconds(analysis.wall) == "4.71 ms"
    with _style.applied():
        caption = figures.build("timeline", [analysis], 7.0)[1]
    assert caption.title.endswith(": a plain step takes 4.71 ms")
    assert timeline.sentences(analysis, timeline.timeline(analysis))[0].endswith("GPU idle not known")
    assert "GPU idle 0" not in caption.long
    assert analysis.gap_told is None
    gap = tables.rows(analysis, "group")[-2]
    assert (gap.label, gap.seconds, gap.time) == ("GPU idle", None, None)
    assert {piece.label for piece in _bars.segments(analysis)}.isdisjoint(("GPU idle", "host time"))
    assert [bar.name for bar in _screen.bars(analysis) if bar.bound is None] == []
    timed = TimedRun(0, "", analysis, "")
    assert [(line.label, line.seconds, line.parts) for line in (by_bound(timed)[-1], by_group(timed)[-1])] == [
        ("GPU idle", None, ())
    ] * 2
    other = analyze(load(shipped.paths()["h100/bert-torch-infer-b32-tf32"]))
    ranking = rank([analysis.profile, other.profile], as_given=True)
    assert [cells[3] for cells in ranked.grid(ranking).cells] == [
        units.UNKNOWN,
        units.percent(other.gap / other.wall, 0),
    ]
    facts = dict(pair_facts.runs(ranking.pairs[0]))
    assert "GPU idle not known" in facts["A"]
    assert "A − B" not in facts  # how much of it is idle time is as little known
    with _style.applied():
        figure, _ = figures.build("breakdown", [analysis], 3.3)
    assert [text.get_text() for text in figure.axes[0].texts][-1] == "unknown"


def test_pictures_have_a_minus_as_long_as_their_plus_and_names_keep_their_hyphens() -> None:
    assert signed.printed("-467 µs to -1.2 ms in torch-compile, 3-4") == "−467 µs to −1.2 ms in torch-compile, 3-4"
    with _style.applied():
        figure, _ = figures.build("waterfall", [run(12.5, "a"), run(15, "b")], 7.0)
    assert not any(re.match(r"-\d", text) for text in written(figure))


def test_a_waterfall_leads_from_wall_to_wall() -> None:
    # B is A with the softmax twice as fast: 2000 - 1000 µs of op time and of wall.
    plain = handmade.profile()
    ops = [replace(op, own_ns=tuple(own // 2 for own in op.own_ns)) if op.signature == 3 else op for op in plain.ops]
    wall = Wall(steps=tuple(step - 1e-3 for step in plain.wall.steps))
    profiled = replace(plain.profiled, corrected=tuple(each - 1e-3 for each in plain.profiled.corrected))
    b = analyze(handmade.profile(backend="jax", ops=tuple(ops), wall=wall, profiled=profiled))
    with _style.applied():
        figure, caption = figures.build("waterfall", [analyze(plain), b], 7.0)
        (axes,) = figure.axes
        # The walls, and the step between them: the softmax. All else is the same in both, and no row.
        first, step, last = axes.patches
        assert first.get_x() + first.get_width() == pytest.approx(11.5)
        assert last.get_x() + last.get_width() == pytest.approx(12.5)
        assert step.get_x() == pytest.approx(11.5)
        assert step.get_width() == pytest.approx(1.0)
    # Nothing would be seen of it on an axis from 0; walls and axis have a mark.
    assert "time of one step [ms], not from 0" in written(figure)
    assert len(figure.artists) + len(figure.patches) + len(figure.lines) >= 3
    assert caption.title.endswith("torch took 12.5 ms a step and jax 11.5 ms, one process each")
    assert "From the step of jax to that of torch" in caption.short
    assert "torch took 12.5 ms a step and jax 11.5 ms, one process each. torch − jax is 1.00 ms" in caption.short


@pytest.mark.parametrize(("factor", "blocks"), [(1 - 2e-16, True), (1, True), (1 + 3e-16, False)])
def test_of_two_equal_runs_rounding_decides_nothing(blocks: bool, factor: float) -> None:
    """Neither run spends more where they differ in the last bit, one way or the other, or not at all."""
    plain = handmade.profile() if blocks else handmade.profile(blocks=("",) * len(handmade.profile().blocks))
    wall = replace(plain.wall, steps=tuple(step * factor for step in plain.wall.steps))
    idle = tuple(each * factor for each in plain.profiled.idle)
    other = replace(plain, wall=wall, profiled=replace(plain.profiled, idle=idle))
    for pair in ((plain, other), (other, plain)):
        image, _ = figures.render("waterfall", [analyze(each) for each in pair], ".svg", 3.3)
        assert b"spends more" not in image
        assert image.count(b">0 s<") == 1
        assert b"no row differs" in image
        rows = term_table.table(compare(*pair)).rows
        assert {row.seconds for row in rows} == {0.0}
        # Their order is that of the profile, and no number's.
        assert [row.label for row in rows] == [row.label for row in term_table.table(compare(plain, plain)).rows]


def test_what_is_below_a_hundredth_of_the_axis_is_in_one_row() -> None:
    """Softmax takes 1 ms less, adamw 10 µs, and the embedding 5 µs."""
    less = {3: 1_000_000, 6: 10_000, 0: 5_000}
    plain = handmade.profile()
    ops = [
        replace(op, own_ns=tuple(own - less.get(op.signature, 0) for own in op.own_ns)) if op.signature in less else op
        for op in plain.ops
    ]
    with _style.applied():
        figure, _ = figures.build("waterfall", [analyze(plain), analyze(replace(plain, ops=tuple(ops)))], 7.0)
        (axes,) = figure.axes
        names = [label.get_text() for label in axes.get_yticklabels()]
    assert any(name.endswith("smaller rows together") for name in names)


def test_what_cannot_be_compared_in_a_figure() -> None:
    one = run(12.5, "a")
    for number in (1, 3):
        with pytest.raises(InputError, match=f"needs two profiles, and {number} are given"):
            figures.build("waterfall", [one] * number)
    with pytest.raises(InputError, match="31 runs do not fit"):
        figures.build("speedup", [one] * 31)
    for kind in COMPARING:
        with pytest.raises(InputError, match=r"Profile 2, b, was counted and not timed: measure it again without"):
            figures.build(kind, [one, run(1, "b", profiled=None)])


def test_points_merge_ops_of_one_signature() -> None:
    found = points.points(plain_run())
    bubbles = found.placed
    # Both addmm: 2 * (200e6 + 1e5) FLOP in 5 ms; 200.1e6 FLOP / 4.804 MB.
    assert bubbles[0].own == pytest.approx(5e-3)
    assert bubbles[0].rate == pytest.approx(2 * 200.1e6 / 5e-3)
    assert bubbles[0].intensity[points.ALL] == pytest.approx(200.1 / 4.804)
    assert bubbles[0].number == 2
    assert [bubble.group for bubble in bubbles] == [
        "matmul", "optimizer", "normalisation", "pointwise", "normalisation",
    ]  # fmt: skip
    # embedding does no FLOP: 4 MB in 400 µs. mystery is unknown, 317 µs of its own.
    (stream,) = found.flopless
    assert (stream.name, stream.group) == ("aten::embedding", "pointwise")
    assert stream.traffic == pytest.approx(4e6 / 400e-6)
    assert found.unknown == pytest.approx(317e-6)


def test_a_point_counts_the_turns_of_a_loop() -> None:
    """Of two products one runs in 8 turns of a loop: 9 of a step."""
    ops = [replace(op, times=8) if row == 1 else op for row, op in enumerate(handmade.profile().ops)]
    profile = handmade.profile(ops=tuple(ops), device=replace(handmade.device(), kind="cuda"))
    assert [profile.signatures[op.signature].name for op in ops[1:3]] == ["aten::addmm", "aten::gelu"]
    placed = points.points(analyze(profile)).placed
    assert {point.name: point.number for point in placed}["aten::addmm"] == 9
    with _style.applied():
        figure, _ = figures.build("roofline", [analyze(profile)], 7.0)
    assert any(text.startswith("1: 9 x addmm (") for text in written(figure))


def test_a_point_has_the_blocks_of_all_its_ops() -> None:
    """Of two equal products the first, in the embedding, takes 2500 µs, and the second 5000 µs; and the other way."""
    plain = handmade.profile()
    first, second = (row for row, op in enumerate(plain.ops) if plain.signatures[op.signature].name == "aten::addmm")
    for longer, blocks in ((second, ("FFN", "embedding")), (first, ("embedding", "FFN"))):
        ops = list(plain.ops)
        ops[first] = replace(ops[first], block=plain.blocks.index("embedding"))
        ops[longer] = replace(ops[longer], own_ns=tuple(2 * own for own in ops[longer].own_ns))
        analysis = analyze(handmade.profile(ops=tuple(ops)))
        assert points.points(analysis).placed[0].blocks == blocks
        with _style.applied():
            figure, _ = figures.build("roofline", [analysis], 7.0)
        assert any(text.startswith(f"1: 2 x addmm ({', '.join(blocks)}), ") for text in written(figure))


def test_work_without_a_ceiling_has_no_roof() -> None:
    """Nothing says how fast a device that was measured in fp32 adds integers: its ops have no minimum, and no line."""
    device = handmade.device()
    known = roofs.roofs(device, [("vector", "fp32")])
    assert [(peak.name, peak.rate) for peak in known.peaks] == [("vector", device.rate("vector.fp32"))]
    assert roofs.roofs(device, [("vector", "fp32"), ("vector", "int64")]) == known
    assert roofs.roofs(device, [("vector", "int64")]).peaks == ()


def test_the_ceiling_of_ops_is_that_of_most_of_their_time() -> None:
    """3 µs under DRAM in one op, 2 + 2 µs under the cache in two."""
    analysis = plain_run()
    names, times = (
        ((*head, *[rest] * (len(analysis.profile.ops) - 3)))
        for head, rest in ((("dram.copy", "cache.llc", "cache.llc"), ""), ((3e-6, 2e-6, 2e-6), 0.0))
    )
    table = dataclasses.replace(analysis.table, ceiling=names, share=np.asarray(times))
    under = dataclasses.replace(analysis, table=table)
    code = np.asarray([0, 0, 0, *[1] * (len(times) - 3)])
    assert sums.ceilings(under, code, np.asarray([0, 3])) == ["cache.llc", ""]


def marks(axes: Any) -> np.ndarray:
    """The places of all markers on some axes [data], ridge points too."""
    return np.concatenate([np.asarray(each.get_offsets()) for each in axes.collections])


@pytest.mark.parametrize(("number", "frames"), [(1, 1), (4, 1), (5, 5)])
def test_no_op_lies_outside_of_a_roofline(number: int, frames: int) -> None:
    """Of a device without ceilings, too. Four runs have one frame; more have one each, and all share their axes."""
    bare = replace(handmade.device(), name="Bare Device", ceilings={}, caches=())
    given = [analyze(handmade.profile(backend=f"b{n}"), None if n % 2 else bare) for n in range(number)]
    with _style.applied():
        figure, _ = figures.build("roofline", given, 3.3)
    assert len(figure.axes) == 2 * frames  # beside each the ops without FLOP
    for side in (figure.axes[::2], figure.axes[1::2]):
        assert len({(axes.get_xlim(), axes.get_ylim()) for axes in side}) == 1
    for axes in figure.axes:
        (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
        places = marks(axes)
        assert len(places)
        assert ((places > (left, low)) & (places < (right, high))).all()
    assert any(text.startswith("area: 5 ms") for text in written(figure))
    assert any("No ceilings are known of Bare Device" in text for text in written(figure))


def test_the_largest_ops_are_named_with_the_roof_that_binds_them() -> None:
    """Both addmm: 5 of 12.5 ms, 400.2 MFLOP at 100 GFLOP/s are 4 ms and a little: 80 % of the peak."""
    with _style.applied():
        figure, _ = figures.build("roofline", [plain_run()], 7.0)
    texts = written(figure)
    assert any(re.fullmatch(r"1: 2 x addmm.*, 40\.0 % of the step, at 80 % of FP32 peak", text) for text in texts)
    assert "1" in texts
    (plane, _) = figure.axes
    leads = [line.get_data() for line in plane.lines if line.get_marker() == "_"]
    (xs, ys), *others = leads  # from where it is up to its roof
    assert xs[0] == xs[1] == pytest.approx(200.1 / 4.804)
    assert ys[0] == pytest.approx(2 * 200.1e6 / 5e-3)
    assert ys[1] == pytest.approx(100e9, rel=0.01)
    # AdamW does 13 FLOP in 28 bytes and softmax 4 in 8, under 10 GB/s; a cache may have held some of these, so that
    # the least of their minima is at a higher rate. So does gelu, under 40 GB/s. A layer norm takes 8 us for 8 kFLOP,
    # where a launch takes 5.
    tops = sorted((xs[0], ys[1]) for xs, ys in others)
    assert np.allclose(tops, [(13 / 28, 130e9 / 28), (4 / 8, 5e9), (4 / 8, 20e9), (1.0, 8e3 / 5e-6)])


@pytest.mark.parametrize(("width", "number"), [(7.0, 1), (7.0, 2), (3.3, 4)])
def test_a_line_leads_from_each_number_to_its_marker(width: float, number: int) -> None:
    """As many ops are named as there are numbers; of each the notes have its name and its block in full."""
    items = [run(12.5 + place, f"b{place}") for place in range(number)]
    with _style.applied():
        figure, _ = figures.build("roofline", items, width)
        ends = {tuple(np.round(line.get_xydata()[-1], 3)) for line in figure.artists if line.get_marker() == "."}
        named = points.points(items[0]).placed[: 6 // number]
        middles = {
            tuple(
                np.round(figure.axes[0].transData.transform((point.intensity[points.ALL], point.rate)) / figure.dpi, 3)
            )
            for point in named
        }
    assert ends == middles
    lines = " ".join(written(figure))
    numbered = re.findall(r"\b(\d): ", lines)
    assert numbered == [str(place + 1) for place in range(len(numbered))]
    assert len(numbered) >= number
    assert "2 x addmm (FFN), 40.0 % of the step" in lines if number == 1 else "2 x addmm (FFN)" in lines
    assert all(text in written(figure) for text in numbered)


def test_no_marker_hides_a_smaller_one_of_another_run() -> None:
    """Areas fall in the order of drawing, whichever run they are of; a hollow marker has nothing in it."""
    with _style.applied():
        figure, _ = figures.build("roofline", [run(12.5, "a"), run(15, "b")], 7.0)
    for axes in figure.axes:
        marks = [mark for mark in axes.collections if tuple(mark.get_edgecolor()[0][:3]) != (0, 0, 0)]
        areas = [mark.get_sizes()[0] for mark in marks]
        assert areas == sorted(areas, reverse=True)
        assert {mark.get_facecolor()[0][3] for mark in marks} == {0.0, 0.75}


def test_a_name_that_tells_threads_is_followed_by_the_device_alone() -> None:
    one = replace(handmade.device(), conditions={"threads": "1"})
    runs = [
        analyze(handmade.profile(device=device, environment={"threads": device.conditions["threads"]}))
        for device in (one, handmade.device())
    ]
    heading = _frame.heading(runs, ("torch (1 thread)", "torch (2 threads)"), 7.0, "")
    assert heading.rows == ("torch (1 thread)", "torch (2 threads)")
    assert heading.lines == ("Round Device",)


def test_runs_in_one_frame_are_told_apart_by_how_full_their_markers_are() -> None:
    items = [run(12.5, "a"), run(15, "b")]
    with _style.applied():
        figure, _ = figures.build("roofline", items, 7.0)
    assert len(figure.axes) == 2
    faces: dict[tuple[float, ...], set[tuple[float, ...]]] = {}
    for drawn_marks in figure.axes[0].collections:
        edge, face = (tuple(np.round(of()[0], 3)) for of in (drawn_marks.get_edgecolor, drawn_marks.get_facecolor))
        faces.setdefault(edge, set()).add(face)
    ridges = faces.pop((0.0, 0.0, 0.0, 1.0))
    assert len(ridges) == 1
    # Four groups do FLOP; of each there are a filled marker and a hollow one.
    assert [len(looks) for looks in faces.values()] == [2] * 4
    assert {"a", "b"} <= set(written(figure))


def test_runs_of_other_numbers_of_threads_stand_under_roofs_of_their_own() -> None:
    """60 GFLOP/s with one thread, 100 with two. 400.2 MFLOP in 5 ms are 80 GFLOP/s, 80 % of the second roof."""
    one = replace(handmade.device(matrix_fp32=60e9), conditions={"threads": "1"})
    runs = [
        analyze(handmade.profile(device=device, environment={"threads": device.conditions["threads"], "cpus": "2"}))
        for device in (one, handmade.device())
    ]
    with _style.applied():
        figure, _ = figures.build("roofline", runs, 7.0)
    ceilings = [line for line in figure.axes[0].lines if line.get_color() == _style.BLACK]
    tops = {line.get_linestyle(): np.nanmax(line.get_ydata()) for line in ceilings if line.get_linewidth() > 1}
    assert tops == {"-": 60e9, "--": 100e9}
    assert {"Round Device, 1 thread", "Round Device, 2 threads"} <= set(written(figure))


@pytest.mark.parametrize("by", ["class", "op", "scope", "block"])
def test_a_breakdown_has_the_rows_of_its_key(by: str) -> None:
    from roofline.content import tables

    analysis = plain_run()
    with _style.applied():
        figure, caption = figures.build("breakdown", [analysis], 7.0, by)
    labels = [label.get_text() for axes in figure.axes for label in axes.get_yticklabels()]
    assert len(figure.axes) == 1
    *rows, gap, _ = tables.rows(analysis, by)
    largest = [*sorted(rows, key=lambda row: -row.seconds)[: len(labels) - 1], gap]
    assert len(labels) == min(8, len(rows) + 1)
    assert all(row.label.startswith(label.rstrip("…")) for row, label in zip(largest, labels, strict=True))
    assert f"by {by}." in caption.short


def test_a_key_is_refused_of_a_kind_without_rows_and_an_unknown_one_of_all() -> None:
    items = [plain_run()]
    with pytest.raises(InputError, match="--kind bound has no rows by op: leave --by out, or draw --kind breakdown"):
        figures.build("bound", items, 7.0, "op")
    with pytest.raises(InputError, match="no breakdown by 'pie'; there are: "):
        figures.build("breakdown", items, 7.0, "pie")


def test_a_step_of_unknown_work_is_no_empty_roofline() -> None:
    mystery = tuple(replace(signature, cost=unknown("not seen")) for signature in handmade.SIGNATURES)
    profile = handmade.profile(signatures=mystery, flags=("replays-unattributed",))
    with pytest.raises(InputError, match="nothing to put under a roof: import it with --capture"):
        figures.build("roofline", [analyze(profile)])


def test_bars_too_thin_to_see_have_no_entry_in_the_key() -> None:
    # 0.5 µs under the launch floor in 12.5 ms are 0.1 thousandths of an inch.
    ops = [replace(op, own_ns=(500,) * 3, overlap_ns=0) if op.signature == 5 else op for op in handmade.OPS]
    pieces = _bars.segments(analyze(handmade.profile(ops=tuple(ops))))
    labels = [key.label for key in _bars.keys([pieces], 3.0 / 12.5e-3)]
    assert "overhead, minimum" in {piece.label for piece in pieces}
    assert "overhead, minimum" not in labels
    assert "memory, minimum" in labels


def test_a_key_has_what_is_drawn_and_nothing_else() -> None:
    """Intervals where there are any; in a breakdown no part of 0.5 µs, in a wall chart no group without ops."""
    whisker = "95 % interval"
    with _style.applied():
        assert whisker in written(figures.build("speedup", [run(12.5, "a"), run(15, "b")], 7.0)[0])
        assert whisker not in written(figures.build("bound", [run(12.5, "a"), run(15, "b")], 7.0)[0])
        assert whisker in written(figures.build("waterfall", [run(12.5, "a"), analyze(slower())], 7.0)[0])
        assert "most in use" in written(figures.build("memory", [run(12.5, "a")], 7.0)[0])
        short = [replace(op, own_ns=(500,) * 3, overlap_ns=0) if op.signature == 5 else op for op in handmade.OPS]
        texts = written(figures.build("breakdown", [analyze(handmade.profile(ops=tuple(short)))], 7.0, "op")[0])
        assert "time: memory, minimum" in texts
        assert not any(text.startswith("time: overhead") for text in texts)
        matmuls = [op for op in handmade.OPS if op.signature == 1]
        texts = written(figures.build("wall", [analyze(handmade.profile(ops=tuple(matmuls)))], 7.0)[0])
        assert "matmul" in texts
        assert not any(text.startswith(("normalisation", "pointwise")) for text in texts)


def test_rows_of_a_breakdown_stand_in_one_order_for_all_runs_and_have_numbers_where_a_page_has_room() -> None:
    """In the first run the softmax takes 2 ms and AdamW 3; in the other 9 and 1: 11 against 4 of both."""
    times = {3: 9_000_000, 6: 1_000_000}
    ops = [replace(op, own_ns=(times.get(op.signature, op.own_ns[1]),) * 3, overlap_ns=0) for op in handmade.OPS]
    wall = Wall(steps=(20e-3,) * 3)
    items = [analyze(handmade.profile(wall=wall)), analyze(handmade.profile(wall=wall, ops=tuple(ops)))] * 2
    with _style.applied():
        figure, _ = figures.build("breakdown", items, 7.0, "op")
    rows = [[label.get_text() for label in axes.get_yticklabels()] for axes in figure.axes]
    assert rows == [rows[0]] * 4
    softmax, adamw = (
        next(place for place, label in enumerate(rows[0]) if name in label) for name in ("_softmax", "_fused")
    )
    assert softmax < adamw
    # Each row of an op has three numbers, and the gap one.
    assert {len(axes.texts) for axes in figure.axes} == {3 * (len(rows[0]) - 1) + 1}
    with _style.applied():
        figure, caption = figures.build("breakdown", items * 2, 3.3)
    assert "?: FLOP or bytes are not known." in caption.short
    assert {len(axes.texts) for axes in figure.axes} == {len(figure.axes[0].get_yticklabels())}


def test_bars_by_bound_are_sorted_by_time_with_time_and_factor_beside_them() -> None:
    with _style.applied():
        figure, _ = figures.build("bound", [run(25, "b"), run(12.5, "a"), run(15, "c")], 7.0)
    texts = written(figure)
    assert [text for text in texts if text in ("a", "b", "c")] == ["a", "c", "b"]
    assert [text for text in texts if text.endswith("x")] == ["1.20x", "2.00x"]
    assert [text for text in texts if re.fullmatch(r"[\d.]+ ms", text)] == ["12.5 ms", "15.0 ms", "25.0 ms"]
    # One scale of percent, of each step: all numbers in a bar are that.
    assert not any("share of" in text for text in texts)


@pytest.mark.parametrize(("op_class", "name"), [("transfer", "transfer"), ("communication", "communication")])
def test_pictures_and_pages_call_copies_to_a_device_no_communication(op_class: str, name: str) -> None:
    """As tables do; the group of both is communication, by which data and looks are chosen."""
    copies = tuple(replace(s, op_class=op_class) if s.name == "aten::gelu" else s for s in handmade.SIGNATURES)
    profile = handmade.profile(signatures=copies)
    drawn_texts = [report([profile])]
    drawn_texts.append(plugins.load("roofline.renderers.wall", "text", "format").render(chart([analyze(profile)])))
    for kind in ("roofline", "timeline", "breakdown"):
        with _style.applied():
            figure, _ = figures.build(kind, [analyze(profile)], 7.0)
        drawn_texts.append("\n".join(written(figure)))
    for text in drawn_texts:
        words = re.sub(r"(?s)<(style|script).*?</\1>|<[^>]*>", " ", text)  # of a page
        assert {"transfer", "communication"} & {*re.findall(r"\w+", words)} == {name}


def test_all_figures_have_the_factor_of_the_headline() -> None:
    """The profiled process took 15 ms a step and two others 18: (15 * 18 * 18)^(1/3) = 16.94, over 12.5 it is 1.355."""
    slow = handmade.profile(backend="slow", wall=Wall(steps=(15e-3,) * 20, processes=((18e-3,) * 20,) * 2))
    fast = handmade.profile(backend="fast", wall=Wall(steps=(12.5e-3,) * 20, processes=((12.5e-3,) * 20,) * 2))
    pair = rank([slow, fast], as_given=True).pairs[0]
    assert pair.headline.factor == pytest.approx((15 * 18 * 18) ** (1 / 3) / 12.5)
    for kind in ("bound", "speedup"):
        with _style.applied():
            figure, _ = figures.build(kind, [analyze(slow), analyze(fast)], 7.0)
        assert any(re.search(r"\b1\.36x", text) for text in written(figure)), written(figure)
        assert not any("1.20x" in text for text in written(figure))
        # The bars are those of the profiled process.
        assert "Times are of the profiled process, factors of all processes" in written(figure)
        with _style.applied():
            figure, _ = figures.build(kind, [run(15, "slow"), run(12.5, "fast")], 7.0)
        assert not any("processes" in text for text in written(figure))


def test_there_is_no_factor_where_runs_do_not_decide_it_or_do_other_work() -> None:
    """Other batches are other work; of another precision a mark says that the runs are not comparable."""
    runs = [run(12.5, "fast"), run(13.1, "near"), run(20, "larger", batch=8), run(25, "half", precision="bf16")]
    with _style.applied():
        texts = written(figures.build("bound", runs, 7.0)[0])
    assert [text for text in texts if "†" in text and len(text) < 9] == ["†", "2.00x †"]
    with _style.applied():
        figure, caption = figures.build("speedup", runs, 7.0)
    assert "larger, " not in caption.short
    assert any(text.endswith("near: 13.1 ms") for text in written(figure))
    assert any(re.search(r"larger.*: 20\.0 ms †$", text) for text in written(figure))
    assert any(re.search(r"half.*: 25\.0 ms, took 2\.00x longer .* †$", text) for text in written(figure))
    # Where no run has a factor there is no column for it.
    with _style.applied():
        assert "factor" not in written(figures.build("bound", runs[:2], 7.0)[0])


def test_a_key_tells_floors_beside_unknown_time_from_it() -> None:
    # The floors of what is known beside mystery, in a row most of whose time is mystery's.
    other = tuple(replace(s, op_class="other") if s.name == "aten::gelu" else s for s in handmade.SIGNATURES)
    with _style.applied():
        figure, _ = figures.build("breakdown", [analyze(handmade.profile(signatures=other))], 7.0)
    assert {"time: unknown", "time: minimum of the known part"} <= set(written(figure))
    assert "torch on Round Device, 2 threads" in written(figure)
    assert any(text.startswith("toy tiny training, batch 4 x 25 tokens: ") for text in written(figure))


def test_unknown_work_is_marked_in_a_breakdown_of_many_runs_too() -> None:
    """The work of mystery, alone in its class, is not known; none of the embedding, 0 FLOP, has no mark."""
    analysis = plain_run()
    known, mystery = (tables.rows(analysis, "class")[place] for place in (0, -3))
    assert (known.flops is None, mystery.flops, mystery.bytes) == (False, None, None)
    for number in (1, 8):
        with _style.applied():
            figure, _ = figures.build("breakdown", [analysis] * number, 7.0, "class")
        texts = [text.get_text() for text in figure.axes[0].texts]
        share = tables.percent(mystery.time)
        marks = [text for text in texts if "unknown" in text or "?" in text]
        assert marks == (["unknown", "unknown"] if number == 1 else [f"{share} ?"])
    work = analyze(replace(handmade.profile(), profiled=None))
    assert not isinstance(work, Analysis)
    with _style.applied():
        figure, _ = figures.build("breakdown", [work] * 12, 7.0, "class")
    assert [text.get_text() for text in figure.axes[0].texts] == ["?"]


def test_a_timeline_is_the_first_kept_step() -> None:
    def op(signature: int, start: int, own: int, **changes: Any) -> Op:  # [µs]; the other steps took twice as long
        op = next(one for one in handmade.OPS if one.signature == signature)
        return replace(op, start_ns=start * 1000, own_ns=(own * 1000, own * 2000), overlap_ns=0, **changes)

    ops = (
        op(1, 500, 1000, host_ns=(400_000, 100_000)),
        op(2, 1400, 300, host_ns=(0, 0)),  # begins while the first one runs, and ends at 1700
        op(3, 2000, 1000, host_ns=(0, 300_000)),
        op(0, 4000, 500, host_ns=(0, 1_000_000), host_reads=1),
        op(6, 5000, 500),
    )
    profiled = replace(handmade.profile().profiled, walls=(6e-3, 12e-3), corrected=(6e-3, 12e-3), idle=(2.8e-3, 1e-3))
    found = timeline.timeline(analyze(handmade.profile(ops=ops, profiled=profiled)))
    assert found.wall == 6e-3
    groups = [GROUPS[code] for code in found.group]
    assert groups == ["matmul", "pointwise", "normalisation", "pointwise", "optimizer"]
    idle = [
        (round(start * 1e6), round(end * 1e6), timeline.CAUSES[cause])
        for start, end, cause in zip(found.idle.start, found.idle.end, found.idle.cause, strict=True)
    ]
    assert idle == [
        (0, 500, "host in the framework"),
        (1700, 2000, "host in Python"),
        (3000, 4000, "host reads a result"),
        (4500, 5000, "cause of the stretch not recorded"),
        (5500, 6000, "after the last op"),
    ]
    # 1000 + 300 - 100 beside each other + 1000 + 500 + 500 busy, the rest of 6000 idle
    assert found.idle.seconds == pytest.approx((6000 - 3200) * 1e-6)
    assert found.idle.by_cause()["host in Python"] == pytest.approx(300e-6)


def test_two_loops_in_a_row_are_two() -> None:
    """Ops of 100 µs: two of four turns from 0 and 100 on, one of three turns from 1000 on, then one that runs once."""
    begins, turns = (0, 100, 1000, 2000), (4, 4, 3, 1)
    ops = tuple(
        replace(op, start_ns=begin * 1000, own_ns=(100_000 * number,) * 3, overlap_ns=0, times=number)
        for op, begin, number in zip(handmade.OPS, begins, turns, strict=False)
    )
    profiled = replace(handmade.profile().profiled, walls=(3e-3,) * 3, corrected=(3e-3,) * 3, idle=())
    found = timeline.timeline(analyze(handmade.profile(ops=ops, profiled=profiled)))
    # Of the first 200 + 6 * 100 = 800 µs, of the second 1100 + 2 * 100 = 1300.
    assert [(loop.first, loop.last) for loop in found.loops] == [(0, 2), (2, 3)]
    assert [end for loop in found.loops for end in (loop.begin, loop.end)] == pytest.approx(
        [200e-6, 800e-6, 1100e-6, 1300e-6]
    )


def test_of_an_op_in_a_loop_the_first_turn_is_drawn_and_where_the_others_ran() -> None:
    """Ops of 1000 and 200 µs run four times from 500 and 1500 µs on, as in [500, 1700], and 3600 µs more: to 5300.

    The next op begins at 6000 µs; where it begins at 5000, the loop has ended by then.
    """
    add, gelu, last = (next(op for op in handmade.OPS if op.signature == number) for number in (1, 2, 6))
    for begin, end in ((6000, 5300), (5000, 5000)):
        ops = (
            replace(add, start_ns=500_000, own_ns=(4_000_000,) * 3, overlap_ns=0, times=4),
            replace(gelu, start_ns=1_500_000, own_ns=(800_000,) * 3, overlap_ns=0, times=4),
            replace(last, start_ns=begin * 1000, own_ns=(500_000,) * 3, overlap_ns=0),
        )
        profiled = replace(handmade.profile().profiled, walls=(7e-3,) * 3, corrected=(7e-3,) * 3, idle=())
        analysis = analyze(handmade.profile(ops=ops, profiled=profiled))
        found = timeline.timeline(analysis)
        assert found.end.tolist() == pytest.approx([1.5e-3, 1.7e-3, begin * 1e-6 + 0.5e-3])
        (loop,) = found.loops
        assert (loop.first, loop.last, loop.begin, loop.end) == pytest.approx((0, 2, 1.7e-3, end * 1e-6))
        assert found.beginning(1).loops == ()
        assert len(found.beginning(2).loops) == 1
        with _style.applied():
            figure, _ = figures.build("timeline", [analysis], 7.0)
        strokes = {
            (lane, colour): [tuple(ends) for ends in patch.get_path().vertices[:, 0].reshape(-1, 2).round(3).tolist()]
            for patch in figure.axes[0].patches
            for colour in [patch.get_edgecolor()[:3]]
            for lane, group in enumerate(("matmul", "pointwise"))
            if colour in (to_rgb(_style.GROUP[group][0]), _style.pale(_style.GROUP[group][0]))
        }
        assert sorted(strokes.values()) == sorted([[(0.5, 1.5)], [(1.5, 1.7)], *[[(1.7, end / 1000)]] * 2])
        assert "pale: further turns of a loop" in written(figure)


def test_a_title_says_of_which_steps_its_share_is() -> None:
    """The picture shows a profiled step, and the title the gap of plain ones, where there are any."""
    for source, step in (("plain", "a plain step"), ("profiled", "the median step")):
        analysis = analyze(handmade.profile(wall=replace(handmade.profile().wall, source=source)))
        share = units.percent(analysis.gap / analysis.wall, 0)
        with _style.applied():
            assert figures.build("timeline", [analysis], 7.0)[1].title.endswith(f": host time for {share} of {step}")


def test_the_host_did_nothing_where_a_device_took_its_time_between_queued_kernels() -> None:
    # What the device waited for is the cause where it took longer than the host.
    event = Waits(("waiting for an event",), (), op=(0,), cause=(0,), of=(-1,), ns=(2,))
    for host_ns, waits, cause in (
        ((0, 0), None, "cause of the stretch not recorded"),
        ((1, 0), None, "host in the framework"),
        ((1, 0), event, "waiting for an event"),
        ((1, 1), event, "host in the framework"),
    ):
        profile = handmade.profile(ops=(replace(handmade.OPS[0], host_ns=host_ns), *handmade.OPS[1:]), waits=waits)
        assert timeline.CAUSES[timeline._cause(profile, 0)] == cause


def test_ops_whose_pieces_are_not_kept_have_no_timeline() -> None:
    # The step was seen to be idle for 0.1 ms and the profiler cost 1.3 ms of it; 13.7 - 10.6 ms lie between the ops.
    pieces = replace(handmade.profile().profiled, idle=(0.1e-3,) * 3)
    with pytest.raises(InputError, match="ops ran in several pieces whose times are not kept"):
        figures.build("timeline", [analyze(handmade.profile(profiled=pieces))])


def test_a_profile_without_starts_has_no_timeline() -> None:
    still = handmade.profile(ops=tuple(replace(op, start_ns=0) for op in handmade.OPS))
    with pytest.raises(InputError, match="does not say when its ops began"):
        figures.build("timeline", [analyze(still)])


@pytest.mark.parametrize("profile", [handmade.profile(profiled=None), handmade.without_steps()])
@kinds
def test_a_profile_without_times_is_refused_or_drawn_by_its_work(kind: str, profile: Profile) -> None:
    items = [analyze(profile), plain_run()]
    if kind in TIMED:
        cure = "or draw --kind breakdown .* or --kind roofline .* instead of --kind"
        with pytest.raises(InputError, match=cure):
            figures.build(kind, items)
        return
    with _style.applied():
        for number in (1, 2):
            figure, caption = figures.build(kind, items[:number])
            assert not re.search(r"nan|per step", " ".join([*written(figure), caption.text(True)])) or number == 2


def test_shares_of_a_counted_step_are_those_of_its_work() -> None:
    from roofline.content import tables

    # Of the hand-made step: 400 MFLOP of matmuls and 17.6 MFLOP of vector work; the total is all of it.
    rows = {row.label: row for row in tables.work_rows(analyze(handmade.profile(profiled=None)), "group")}
    timed = {row.label: row for row in tables.rows(plain_run(), "group")}
    for label, row in rows.items():
        if row.flops is not None:
            assert (row.flops, row.bytes) == (timed[label].flops, timed[label].bytes)
    assert rows["total"].executed == 400e6
    with _style.applied():
        figure, _ = figures.build("breakdown", [analyze(handmade.profile(profiled=None))])
        texts = written(figure)
    assert "host time" not in texts
    assert not [text for text in texts if text.startswith("time")]


def test_an_op_without_a_time_stands_at_its_intensity_alone() -> None:
    from roofline.content.points import points

    timed, counted = (points(analyze(handmade.profile(**more))) for more in ({}, {"profiled": None}))
    assert not counted.all
    assert {tick.intensity for tick in counted.ticks} == {point.intensity["dram"] for point in timed.placed}
    for point in timed.placed:  # FLOP/s times own time is the work
        assert point.rate * point.own in [pytest.approx(tick.work) for tick in counted.ticks]


def test_devices_by_datasheet() -> None:
    given = [plain_run(), devices.load("h100-sxm"), devices.load("a100-sxm")]
    with _style.applied():
        told = figures.build("devices", given, 7.0)[1].long
    assert "ridge points fp32 10.0 FLOP/B" in told  # 100 GFLOP/s / 10 GB/s
    assert "NVIDIA H100 SXM" in told


def test_a_cpu_has_a_roofline_for_each_number_of_threads() -> None:
    """Of two runs with two threads the best ceilings that either has seen."""
    slow = replace(handmade.device(matrix_fp32=60e9), conditions={"threads": "1"})
    runs = [
        analyze(handmade.profile(device=device, environment={"threads": device.conditions["threads"]}))
        for device in (slow, handmade.device(), handmade.device(matrix_fp32=90e9))
    ]
    with _style.applied():
        texts = written(figures.build("devices", runs, 7.0)[0])
    assert "Round Device, 1 thread: fp32 60.0 GFLOP/s, 10.0 GB/s" in texts
    assert "Round Device, 2 threads: fp32 100 GFLOP/s, 10.0 GB/s" in texts


def test_what_cannot_be_drawn(tmp_path: Path) -> None:
    analysis = plain_run()
    with pytest.raises(InputError, match=r"no kind of figure called 'pie'; there are: bound"):
        figures.draw("pie", [analysis], tmp_path / "x.svg")
    with pytest.raises(InputError, match=r"ends in \.svg, \.pdf, \.png"):
        figures.draw("bound", [analysis], tmp_path / "x.jpg")
    with pytest.raises(InputError, match="at least one profile"):
        figures.draw("bound", [], tmp_path / "x.svg")
    assert not list(tmp_path.iterdir())


def test_the_users_settings_come_back() -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    with _style.applied():
        assert matplotlib.rcParams["svg.hashsalt"] == "roofline"
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("key", ["op", "scope", "kernel", "group"])
def test_rows_of_a_breakdown_hold_the_whole_step(key: str) -> None:
    """What has no row of its own is in one more, with its work, and is no idle time."""
    analysis = analyze(load(shipped.paths()["h100/bert-torch-infer-b1-bf16"]))
    assert isinstance(analysis, Analysis)
    rows = breakdown._rows(analysis, key)
    assert len(rows) <= breakdown.MOST
    assert sum(row.time for row in rows) == pytest.approx(1)
    assert sum(row.flops or 0.0 for row in rows) == pytest.approx(1)
    with _style.applied():
        _, caption = figures.build("breakdown", [analysis], 7.0, key)
    assert "more)" not in caption.title
