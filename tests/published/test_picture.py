"""The picture of a published table: every mark is at the ratio of the two times that were printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from roofline import published
from roofline.published.means import rows_over
from roofline.renderers import figures
from roofline.renderers.figures import _published, _style

KERAS = published.load("keras-benchmark")
#: ms per step: Keras 2, then Keras 3 on TensorFlow, JAX and PyTorch.
TABLE = {
    "SAM fit": (386.93, 355.25, 361.69, 1388.87),
    "SAM predict": (1859.27, 438.50, 376.34, 1720.96),
    "SD fit": (1023.21, 392.24, 391.21, 823.44),
    "SD predict": (649.71, 616.04, 627.27, 1337.17),
    "BERT fit": (486.00, 214.49, 222.37, 808.68),
    "BERT predict": (470.12, 466.01, 418.72, 1865.98),
}


def drawn(name: str, width: float = 3.3) -> Any:
    with _style.applied():
        return _published.figure(published.load(name), width)


def marks(axes: Any) -> list[tuple[float, float]]:
    """Where the lines from 1 on end, from the top to the bottom, and at which height."""
    lines = [line for line in axes.lines if len(line.get_xdata()) == 2 and line.get_marker() != "None"]
    assert all(line.get_xdata()[0] == 1 for line in lines)
    return [(float(line.get_xdata()[1]), float(line.get_ydata()[1])) for line in lines]


def test_the_speed_up_of_keras_3_over_keras_2() -> None:
    """1859.27 / 376.34 ms: JAX is 4.94 times as fast in SAM predict."""
    figure, caption = drawn("keras-benchmark")
    over_keras2 = figure.axes[0]
    assert [text.get_text() for text in over_keras2.texts] == list(TABLE)
    found = marks(over_keras2)
    assert [ratio for ratio, _ in found] == pytest.approx(
        [keras2 / time for keras2, *times in TABLE.values() for time in times]
    )
    assert [height for _, height in found] == sorted({height for _, height in found}), "no mark hides another one"
    assert "Over Keras 2 (TF), 6 rows: at most Keras 3 (JAX) in SAM predict, 4.94 times as fast." in caption.short
    assert "not measured here" in caption.short
    assert over_keras2.get_xlim() == figure.axes[1].get_xlim()
    assert len(marks(figure.axes[1])) == 12 * 5 - 6, "six rows have no Keras 2"


def test_of_several_runs_the_fastest_is_drawn() -> None:
    """SimpleChains on the i9: 0.412371 s of three runs, one of which compiles, and 0.410168 of three more."""
    (row,) = (
        row for row in rows_over(published.load("simplechains"), "PyTorch")
        if (row.task, row.hardware) == ("MLP, 10,000 epochs", "i9-10980XE")
    )  # fmt: skip
    assert row.ratios["SimpleChains"] == pytest.approx(15.22 / 0.410168)


@pytest.mark.parametrize("name", published.names())
@pytest.mark.parametrize("width", [3.3, 7.0])
def test_every_publication_has_a_picture_that_fits(name: str, width: float, tmp_path: Path) -> None:
    file = tmp_path / "x.svg"
    caption = figures.draw_published(published.load(name), file, width)
    assert caption.startswith(f"{published.load(name).title}. ")
    assert file.stat().st_size < 100e3
    figure, _ = drawn(name, width)
    figure.canvas.draw()
    wide, high = figure.get_size_inches() * figure.dpi
    for text in (text for axes in figure.axes for text in (*axes.texts, *axes.get_xticklabels())):
        box = text.get_window_extent()
        assert text.get_fontsize() >= 6
        assert -1 <= box.x0 <= box.x1 <= wide + 1, text.get_text()
        assert -1 <= box.y0 <= box.y1 <= high + 1, text.get_text()


def test_columns_that_nobody_read_are_marked() -> None:
    figure, caption = drawn("ivanov")
    labels = {text.get_text() for text in figure.texts}
    assert {"cuDNN ?", "Substation (paper) ?", "DeepSpeed"} <= labels
    assert caption.short.endswith("? marks columns with figures that nobody read in a source that can be cited.")
    assert "?" not in drawn("keras-benchmark")[1].short
    assert KERAS.pictures[0].over == "Keras 2 (TF)"
