"""Figures: each kind draws, the same bytes again, text that can be read, a caption that says where it comes from."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path

import handmade
import pytest
from msgspec.structs import replace

from roofline import devices, plugins
from roofline.analysis.analysis import analyze
from roofline.core.schema import Imported, Wall, save
from roofline.errors import InputError
from roofline.renderers import figures
from roofline.renderers.figures import _style

Drawn = Callable[[str, str], tuple[Path, Path]]
SMALLEST = 6.0  # pt
KINDS = plugins.names("roofline.renderers.figures")
kinds = pytest.mark.parametrize("kind", KINDS)
#: How many profiles a kind takes, where that is not any number.
TAKES = {"waterfall": 2}
#: Kinds that need times of ops.
TIMED = {"speedup", "waterfall"}


def test_the_folder_is_the_list() -> None:
    assert set(KINDS) >= {"bound", "breakdown", "devices", "roofline"}


@kinds
@pytest.mark.parametrize("width", [3.3, 7.0])
@pytest.mark.parametrize("number", [1, 3])
def test_text_is_legible_and_inside_the_figure(kind: str, width: float, number: int) -> None:
    from matplotlib.text import Text

    with _style.applied():
        figure, _ = figures.build(kind, [analyze(handmade.profile())] * TAKES.get(kind, number), width)
        figure.draw_without_rendering()
        texts = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip()]
        assert texts
        assert min(t.get_fontsize() for t in texts) >= SMALLEST
        assert not any("$" in t.get_text() for t in texts)  # exponents would be set smaller than that
        for text in texts:
            text.set_in_layout(True)
        wide, high = figure.get_size_inches()
        box = figure.get_tightbbox()
        assert wide == width
        assert box.x0 > -0.02
        assert box.y0 > -0.02
        assert box.x1 < wide + 0.02
        assert box.y1 < high + 0.02
        assert high <= 9.0  # a page


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    """Draws one profile, each kind and format once and in a folder of its own: the paths of figure and caption."""

    @cache
    def draw(kind: str, suffix: str) -> tuple[Path, Path]:
        folder = tmp_path_factory.mktemp("drawn")
        return figures.draw(kind, [analyze(handmade.profile())] * TAKES.get(kind, 1), folder / f"x{suffix}")

    return draw


@pytest.mark.slow
@kinds
@pytest.mark.parametrize("suffix", figures.SUFFIXES)
def test_file_and_caption(drawn: Drawn, kind: str, suffix: str) -> None:
    path, caption = drawn(kind, suffix)
    assert path.stat().st_size > 1000
    assert caption.name == "x.txt"
    told = " ".join(caption.read_text(encoding="utf-8").split())
    assert "Round Device" in told
    if kind != "devices":
        assert "torch 2.13.0" in told
        assert "n = 10 steps, median 12.5 ms, p10–p90 12.4–12.6 ms" in told
    assert {file.name for file in path.parent.iterdir()} == {f"x{suffix}", "x.txt"}


_DRAW = """
import sys
from pathlib import Path
from roofline.analysis.analysis import analyze
from roofline.core.schema import load
from roofline import plugins
from roofline.renderers import figures
analysis = analyze(load(sys.argv[1]))
for kind in plugins.names("roofline.renderers.figures"):
    for suffix in figures.SUFFIXES:
        items = [analysis] * (2 if kind == "waterfall" else 1)
        figures.draw(kind, items, Path(sys.argv[2]) / f"{kind}{suffix}")
"""


@pytest.mark.slow
def test_the_same_bytes_in_another_process(drawn: Drawn, tmp_path: Path) -> None:
    """One that hashes otherwise, and has drawn other figures before each: this one has drawn what other tests ask."""
    save(handmade.profile(), tmp_path / "profile.json")
    folder = tmp_path / "there"
    folder.mkdir()
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", _DRAW, str(tmp_path / "profile.json"), str(folder)]
    subprocess.run(command, check=True, env=environment)

    here = {}
    for kind in KINDS:
        for suffix in figures.SUFFIXES:
            figure, caption = drawn(kind, suffix)
            here |= {f"{kind}{suffix}": sha256(figure), f"{kind}.txt": sha256(caption)}
    assert {file.name: sha256(file) for file in folder.iterdir()} == here
    # Each kind in three formats; their captions are named alike, FIG.txt.
    assert len(here) == 4 * len(KINDS)


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.mark.slow
@kinds
@pytest.mark.parametrize("first", range(0, len(handmade.HOSTILE), 3))
def test_hostile_names(kind: str, first: int, tmp_path: Path) -> None:
    names = handmade.HOSTILE[first : first + TAKES.get(kind, 3)]
    given = [analyze(handmade.hostile(name)) for name in names]
    path, caption = figures.draw(kind, given, tmp_path / "x.svg")
    assert b"<script" not in path.read_bytes()
    assert all(c.isprintable() or c == "\n" for c in caption.read_text(encoding="utf-8"))


@kinds
def test_odd_profiles(kind: str, tmp_path: Path) -> None:
    bare = replace(handmade.device(), ceilings={}, caches=())
    empty = handmade.profile(ops=()) if kind in TIMED else handmade.profile(ops=(), profiled=None)
    for number, profile in enumerate([empty, handmade.profile(device=bare)]):
        figures.draw(kind, [analyze(profile)] * TAKES.get(kind, 1), tmp_path / f"{number}.svg")


def test_bars_close_to_the_wall() -> None:
    from roofline.renderers.figures import _bars

    # The second: floors above own time. Of a trace without buffers floors are ranges.
    profiles = handmade.profile(), handmade.profile(imported=Imported(files=("t.json",)))
    devices = handmade.device(), handmade.device(dram_copy=1e9)
    for profile, device in product(profiles, devices):
        analysis = analyze(profile, device)
        found = _bars.segments(analysis)
        assert min(piece.seconds for piece in found) >= 0
        assert sum(piece.seconds for piece in found) == pytest.approx(analysis.wall, rel=1e-12)
        assert {piece.label for piece in found} <= set(_bars.ORDER)


def run(milliseconds: float, backend: str, **changes: object) -> object:
    steps = tuple(milliseconds * 1e-3 * (1 + n / 1000) for n in (-1, 0, 1))
    return analyze(handmade.profile(backend=backend, wall=Wall(steps=steps), **changes))


def test_the_fastest_run_is_on_top_and_factors_are_written() -> None:
    from matplotlib.text import Text

    with _style.applied():
        figure, caption = figures.build("speedup", [run(20, "slow"), run(12.5, "fast"), run(15, "middle")], 7.0)
        figure.draw_without_rendering()
        (axes,) = figure.axes
        assert [label.get_text() for label in axes.get_yticklabels()] == ["fast", "middle", "slow"]
        written = {text.get_text() for text in axes.findobj(Text)}
    # 15 / 12.5 = 1.2 and 20 / 12.5 = 1.6
    assert {"12.5 ms", "15.0 ms  1.20x", "20.0 ms  1.60x"} <= written
    assert "n = 3 steps" in caption


def test_a_run_that_is_not_comparable_has_a_mark() -> None:
    with _style.applied():
        figure, caption = figures.build("speedup", [run(12.5, "fast"), run(15, "other", batch=8)], 3.3)
        assert any(text.get_text() == "15.0 ms  1.20x †" for text in figure.axes[0].texts)
    assert "† other is not comparable with fast:" in caption


@pytest.mark.parametrize("width", [3.3, 7.0])
def test_a_waterfall_of_runs_that_are_not_comparable_says_so_in_the_image(width: float) -> None:
    def title(**changes: object) -> str:
        with _style.applied():
            figure, _ = figures.build("waterfall", [run(12.5, "a"), run(15, "b", **changes)], width)
        return figure.get_suptitle()

    assert title(batch=8).startswith("NOT COMPARABLE: batch")
    assert title() == ""


def test_captions_call_runs_of_one_backend_by_their_names() -> None:
    for kind in TIMED:
        _, caption = figures.build(kind, [run(12.5, "torch"), run(15, "torch", batch=8)])
        assert "4 in torch (b4) and 8 in torch (b8)" in caption or "8 in torch (b8) and 4 in torch (b4)" in caption
        assert "the first run" not in caption


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
        # The walls, then the steps between them: the softmax, and all that is the same in both.
        first, last, step, *others = axes.patches
        assert first.get_x() + first.get_width() == pytest.approx(12.5)
        assert last.get_x() + last.get_width() == pytest.approx(11.5)
        assert step.get_x() == pytest.approx(12.5)
        assert step.get_width() == pytest.approx(-1.0)
        assert others[-1].get_x() + others[-1].get_width() == pytest.approx(11.5)
        # Nothing would be seen of it on an axis from 0.
        assert "does not begin at 0" in axes.get_xlabel()
    assert "From the step of torch to that of jax" in caption
    assert "jax is 1.09x faster than torch" in " ".join(caption.split())  # 12.5 / 11.5


def test_what_cannot_be_compared_in_a_figure() -> None:
    one = run(12.5, "a")
    for number in (1, 3):
        with pytest.raises(InputError, match=f"from one profile to another: give two, not {number}"):
            figures.build("waterfall", [one] * number)
    with pytest.raises(InputError, match="31 runs do not fit"):
        figures.build("speedup", [one] * 31)
    for kind in TIMED:
        with pytest.raises(InputError, match=r"Profile 2, b, was counted and not timed: measure it again without"):
            figures.build(kind, [one, run(1, "b", profiled=None)])


def test_bubbles_merge_ops_of_one_signature() -> None:
    from roofline.renderers.figures import roofline

    bubbles, absent = roofline._bubbles(analyze(handmade.profile()))
    # Both addmm: 2 * (200e6 + 1e5) FLOP in 5 ms; 200.1e6 FLOP / 4.804 MB.
    assert bubbles[0].seconds == pytest.approx(5e-3)
    assert bubbles[0].rate == pytest.approx(2 * 200.1e6 / 5e-3)
    assert bubbles[0].intensity == pytest.approx(200.1 / 4.804)
    assert [bubble.group for bubble in bubbles] == [
        "matmul", "optimizer", "normalisation", "pointwise", "normalisation",
    ]  # fmt: skip
    # embedding does no FLOP, mystery is unknown: 400 + 367 of 10 800 µs
    assert absent == pytest.approx(767 / 10800)


def test_devices_by_datasheet(tmp_path: Path) -> None:
    given = [analyze(handmade.profile()), devices.load("h100-sxm"), devices.load("a100-sxm")]
    _, caption = figures.draw("devices", given, tmp_path / "x.pdf", 7.0)
    told = " ".join(caption.read_text(encoding="utf-8").split())
    assert "ridge points fp32 10.0 FLOP/B" in told  # 100 GFLOP/s / 10 GB/s
    assert "NVIDIA H100 SXM" in told


def test_what_cannot_be_drawn(tmp_path: Path) -> None:
    analysis = analyze(handmade.profile())
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
