"""No text of any figure overlaps another, lies on a line or a marker, or leaves the figure, whatever is drawn."""

from __future__ import annotations

from contextlib import nullcontext
from math import radians

import handmade
import numpy as np
import pytest
from figure_faults import faults
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from randomly import profiles

from roofline import plugins
from roofline.analysis.analysis import Analysis, analyze
from roofline.core.schema import Wall
from roofline.errors import InputError
from roofline.renderers import figures
from roofline.renderers.figures import _frame, _labels, _measure, _style

FIGURES = "roofline.renderers.figures"
#: Those that are drawn of profiles; a map of a sweep has tests of its own (test_sweep_map.py).
KINDS = [kind for kind in plugins.names(FIGURES) if "OF_FOLDERS" not in plugins.constants(FIGURES, kind)]


# ------------------------------------------------------------------------------------------------------ any profiles

BACKENDS = st.sampled_from(
    [
        "torch", "jax", "torch-compile", "$x_1$", "a_b_c", "\\input{x}", "keras-tensorflow",
        "a-backend-with-a-name-that-is-longer-than-any-column-of-a-paper-is-wide:and=options,that=matter",
        "a-backend-with-a-name-that-is-longer-than-any-column-of-a-paper-is-wide:and=options,that=differ",
    ]
)  # fmt: skip


@st.composite
def runs(draw: st.DrawFn) -> list[Analysis]:
    """One to ten runs, some of them the same profile with other times."""
    some = draw(st.lists(profiles(), min_size=1, max_size=2))
    number = draw(st.sampled_from([1, 2, 3, 4, 10]))
    found = []
    for place in range(number):
        profile = some[place % len(some)]
        if draw(st.booleans()):
            steps = tuple(step * draw(st.floats(0.5, 2.0)) for step in profile.wall.steps)
            profile = replace(profile, wall=Wall(steps=steps))
        found.append(analyze(replace(profile, backend=draw(BACKENDS))))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@given(given=runs(), width=st.sampled_from([2.5, 3.3, 7.0]))
# Not shrunk: that would draw figures for minutes.
@settings(max_examples=200, phases=(Phase.explicit, Phase.reuse, Phase.generate))
def test_texts_stand_clear(kind: str, given: list[Analysis], width: float) -> None:
    items = (given * 2)[:2] if kind == "waterfall" else given
    with _style.applied():
        try:
            figure, caption = figures.build(kind, items, width)
        except InputError as refused:
            assert "\n" not in str(refused)  # noqa: PT017 - what is drawn is looked at below
            return
        assert faults(figure) == []
    for told in (caption.text(long=False), caption.text(long=True)):
        assert all(letter.isprintable() for letter in told)


# -------------------------------------------------------------------------------------------------------- the engine


def test_the_recorder_sees_what_overlaps() -> None:
    with _style.applied():
        figure = _frame.blank(3.3, 2.0)
        figure.text(0.1, 0.5, "here", size=7)
        assert faults(figure) == []
        figure.text(0.12, 0.5, "here too", size=7)
        figure.text(0.95, 0.1, "beyond the edge", size=7)
        axes = figure.add_axes((0.5, 0.2, 0.4, 0.6))
        axes.set_axis_off()
        axes.text(0.3, 0.5, "struck", size=7)
        axes.plot([0, 1], [0.5, 0.54])
        axes.text(0.3, 0.8, "marked", size=7)
        axes.scatter([0.35], [0.83])
        assert faults(figure) == [
            "'beyond the edge' leaves the figure",
            "'here' overlaps 'here too'",
            "a line crosses 'struck'",
            "a marker lies on 'marked'",
        ]


def test_a_label_takes_the_first_clear_place_beside_its_line() -> None:
    wide, high = _measure.extent("peak")
    board = _labels.Board((0.0, 0.0, 2.0, 1.0))
    board.line((0.0, 0.5), (2.0, 0.5))
    # Above the line, at its end.
    first = board.along("peak", (0.0, 0.5), (2.0, 0.5))
    assert first is not None
    assert first.at[1] > 0.5
    assert first.at[0] + wide == pytest.approx(2.0, abs=0.02)
    # That place is taken: the next one goes below.
    second = board.along("peak", (0.0, 0.5), (2.0, 0.5))
    assert second is not None
    assert second.at[1] + high < 0.5
    # What is wider than its line has no place.
    assert board.along("peak" * 40, (0.0, 0.5), (2.0, 0.5)) is None


def test_a_label_lies_along_a_slope_and_on_neither_line_nor_marker() -> None:
    board = _labels.Board((0.0, 0.0, 2.0, 2.0))
    board.line((0.0, 0.0), (2.0, 2.0))
    board.box(1.2, 1.3, 1.9, 1.9)
    place = board.along("DRAM 10 GB/s", (0.0, 0.0), (2.0, 2.0))
    assert place is not None
    assert place.angle == pytest.approx(radians(45))
    assert board.along("DRAM 10 GB/s", (0.0, 0.0), (0.2, 0.2)) is None


@pytest.mark.parametrize("is_text", [False, True])
def test_a_line_to_a_marker_crosses_other_markers_and_no_text(is_text: bool) -> None:
    """There is room at the right alone, behind a box that begins 0.07 in from the middle of the marker."""
    board = _labels.Board((0.9, 0.9, 2.0, 1.1))
    board.box(1.07, 0.95, 1.19, 1.05)
    board.texts += board.rectangles if is_text else []
    place = board.beside("1", (1.0, 1.0), 0.05)
    assert place is None if is_text else place is not None and place.at[0] > 1.19


def test_turned_rectangles_are_apart_or_not() -> None:
    square = _labels.rectangle((0, 0), 1, 1, 0.0)
    # One that stands on its corner at x = 1.3: its left corner is 0.7 / sqrt(2) = 0.495 to the left of that.
    turned = _labels.rectangle((1.3, 0.01), 0.7, 0.7, radians(45))
    right = np.array([0.3, 0.0])
    others = np.stack([turned, turned - right, turned + right, square + 2])
    found = _labels.apart(np.stack([square, square + 2]), others)
    assert found.tolist() == [[False, False, True, True], [True, True, True, False]]


# --------------------------------------------------------------------------------------------------------------- text


def test_texts_are_cut_to_what_they_measure() -> None:
    name = "a-backend-with-a-long-name"
    assert _measure.fit(name, 5.0) == name
    cut = _measure.fit(name, 0.8)
    assert cut.endswith("…")
    assert _measure.width(cut, _measure.TEXT) <= 0.8 < _measure.width(name, _measure.TEXT)


def test_names_stay_apart_when_they_are_cut() -> None:
    long = "torch-compile:mode=default"
    alike = [f"{long}-overhead", f"{long}-autotune", f"{long}-autotune"]
    cut = _measure.fit_apart(alike, 1.0)
    assert len({*cut}) == 2
    assert cut[1] == cut[2]
    assert _measure.widest(cut) <= 1.0
    # Alike at both ends: a number tells them apart.
    middles = [f"{'a' * 40}{n}{'b' * 40}" for n in (1, 2)]
    assert len(set(_measure.fit_apart(middles, 1.0))) == 2


def test_names_are_cut_where_they_are_alike() -> None:
    """What differs stays: a number in the middle, the ends of scopes, and of kernels what is no plumbing."""
    layers = [f"transformer-encoder-with-a-long-name.layer.{n}.attention.self.query.kernel" for n in (1, 2, 3)]
    for n, cut in enumerate(_measure.fit_apart(layers, 1.0), 1):
        assert str(n) in cut
        assert _measure.width(cut) <= 1.0
    scopes = [f"bert/encoder/layer.0/attention/{part}" for part in ("self/query", "self/value", "output/dense")]
    for scope, cut in zip(scopes, _measure.fit_apart(scopes, 0.8, by="scope"), strict=True):
        assert cut.startswith("…")
        assert scope.endswith(cut[1:])
    kernel = (
        "void at::native::vectorized_elementwise_kernel<4, at::native::{}KernelImpl(at::TensorIteratorBase&), 2>(int)"
    )
    kernels = [kernel.format(name) for name in ("Gelu", "Tanh")]
    assert all("elementwise" in name for name in _measure.fit_apart(kernels, 2.0, by="kernel"))
    assert len(set(_measure.fit_apart(kernels, 0.9, by="kernel"))) == 2


def test_lines_break_at_spaces() -> None:
    lines = _measure.wrap("one two three four five six seven", 0.8, 6.0, 3)
    assert 1 < len(lines) <= 3
    assert _measure.widest(lines, 6.0) <= 0.8


def test_ticks_are_as_fine_as_they_differ() -> None:
    assert _frame.plain_numbers([0.0, 2.5, 5.0]) == ["0", "2.5", "5.0"]
    assert _frame.plain_numbers([0.0, 20.0]) == ["0", "20"]
    assert _frame.plain_numbers([12.25, 12.5, 12.75]) == ["12.25", "12.50", "12.75"]
    assert _frame.plain_numbers([-0.1, 0.0, 0.1]) == ["−0.1", "0", "0.1"]


def test_a_bar_and_what_stands_behind_it_fit() -> None:
    # 3 in for a bar of 10 and a text of its width: 10 / (3 - 0.05 - width) per inch.
    end = _frame.reach(0.0, [10.0], ["12.5 ms"], 3.0)
    assert end == pytest.approx(3.0 * 10 / (3.0 - 0.05 - _measure.width("12.5 ms")))


def test_profiles_of_one_device_are_named_once() -> None:
    runs = [analyze(handmade.profile(backend=name)) for name in ("torch", "jax")]
    heading = _frame.heading(runs, ("torch", "jax"), 7.0, "one sentence")
    assert heading.title == ("toy tiny training, batch 4 x 25 tokens: one sentence",)
    assert heading.lines == ("Round Device, 2 threads",)
    assert heading.rows == ("torch", "jax")
    other = analyze(handmade.profile(device=replace(handmade.device(), name="Other")))
    assert _frame.heading([runs[0], other], ("torch", "jax"), 7.0, "one sentence").rows == (
        "torch, Round Device, 2 threads",
        "jax, Other, 2 threads",
    )


def test_a_text_is_as_wide_whoever_measures_it_first() -> None:
    """Outside of a figure matplotlib would hint it, and what was measured once is kept."""
    text = "encoder.layer.0.attention"
    widths = []
    for setting in (nullcontext, _style.applied):
        _measure.extent.cache_clear()
        _measure._sheet.cache_clear()
        with setting():
            widths.append(_measure.width(text))
    assert widths[0] == widths[1]
