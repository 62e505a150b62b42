"""What a figure is made of, and where its texts overlap something: a renderer that draws nothing and writes down all.

Texts are the rectangles that their letters fill, lines are segments, markers are boxes. Whether they meet is asked of
matplotlib's paths and not of the code that placed the labels.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from math import cos, radians, sin
from typing import Any

import numpy as np
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.path import Path

#: A pixel of 300 to the inch, as letters begin on whole pixels.
ROUNDING = 1.0


class Recorder(RendererBase):
    """What a figure consists of, in pixels from its lower left corner."""

    def __init__(self, width: float, height: float, dpi: float) -> None:
        super().__init__()
        self.width, self.height, self.agg = width, height, RendererAgg(width, height, dpi)
        self.dpi = dpi
        self.texts: list[tuple[str, np.ndarray]] = []
        self.lines: list[np.ndarray] = []
        self.markers: list[np.ndarray] = []

    def get_canvas_width_height(self) -> tuple[float, float]:
        return self.width, self.height

    def points_to_pixels(self, points: Any) -> Any:
        return points * self.dpi / 72

    def get_text_width_height_descent(self, s: str, prop: Any, ismath: Any) -> Any:
        return self.agg.get_text_width_height_descent(s, prop, ismath)

    def draw_text(self, gc: Any, x: float, y: float, s: str, prop: Any, angle: float, *args: Any, **_: Any) -> None:
        if s.strip():
            wide, high, below = self.get_text_width_height_descent(s, prop, False)
            u, v = (
                np.array([cos(radians(angle)), sin(radians(angle))]),
                np.array([-sin(radians(angle)), cos(radians(angle))]),
            )
            corner = np.array([x, self.height - y]) - below * v
            self.texts.append(
                (s, np.array([corner, corner + wide * u, corner + wide * u + high * v, corner + high * v]))
            )

    def draw_path(self, gc: Any, path: Path, transform: Any, rgbFace: Any = None) -> None:
        if rgbFace is None and gc.get_linewidth() > 0:
            for polygon in path.to_polygons(transform, closed_only=False):
                self.lines += [np.array(pair) for pair in pairwise(polygon)]

    def draw_markers(
        self, gc: Any, marker_path: Path, marker_trans: Any, path: Path, trans: Any, rgbFace: Any = None
    ) -> None:
        box = marker_path.get_extents(marker_trans)
        for (x, y), _ in path.iter_segments(trans, simplify=False):
            self._marked(box.x0 + x, box.y0 + y, box.x1 + x, box.y1 + y)

    def draw_path_collection(
        self, gc: Any, master: Any, paths: Any, all_transforms: Any, offsets: Any, offset_trans: Any, *_: Any, **__: Any
    ) -> None:
        from matplotlib.transforms import Affine2D

        for number in range(max(len(paths), len(offsets)) if len(paths) else 0):
            own = Affine2D(all_transforms[number % len(all_transforms)]) if len(all_transforms) else Affine2D()
            box = paths[number % len(paths)].get_extents(own + master)
            x, y = offset_trans.transform(offsets[number % len(offsets)]) if len(offsets) else (0.0, 0.0)
            self._marked(box.x0 + x, box.y0 + y, box.x1 + x, box.y1 + y)

    def _marked(self, left: float, bottom: float, right: float, top: float) -> None:
        self.markers.append(np.array([(left, bottom), (right, bottom), (right, top), (left, top)]))


def recorded(figure: Any) -> Recorder:
    width, height = figure.get_size_inches() * figure.dpi
    recorder = Recorder(width, height, figure.dpi)
    figure.draw(recorder)
    return recorder


def shrunk(corners: np.ndarray) -> np.ndarray:
    """A rectangle less a pixel: what touches does not overlap."""
    middle = corners.mean(axis=0)
    size = np.abs(corners - middle).max()
    return middle + (corners - middle) * max(0.0, 1 - ROUNDING / max(size, ROUNDING))


def meet(one: np.ndarray, other: np.ndarray) -> bool:
    if (one.max(axis=0) < other.min(axis=0)).any() or (one.min(axis=0) > other.max(axis=0)).any():
        return False
    paths = [Path(np.vstack([each, each[:1]])) if len(each) > 2 else Path(each) for each in (one, other)]
    return bool(paths[0].intersects_path(paths[1], filled=True))


def faults(figure: Any) -> list[str]:
    found = recorded(figure)
    assert found.texts
    width, height = figure.get_size_inches() * figure.dpi
    told = []
    boxes = [(text, shrunk(corners)) for text, corners in found.texts]
    for text, box in boxes:
        if (box.min(axis=0) < -ROUNDING).any() or (box.max(axis=0) > (width + ROUNDING, height + ROUNDING)).any():
            told.append(f"{text!r} leaves the figure")
    told += [f"{a!r} overlaps {b!r}" for (a, one), (b, other) in combinations(boxes, 2) if meet(one, other)]
    told += [f"a line crosses {text!r}" for text, box in boxes if any(meet(line, box) for line in found.lines)]
    told += [f"a marker lies on {text!r}" for text, box in boxes if any(meet(mark, box) for mark in found.markers)]
    return told
