"""Sweeps of the hand-made step, whose times are given by a rule, so that the map can be derived on paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import handmade
from msgspec.structs import replace

from roofline.core.schema import Profile
from roofline.sweeping import folder, grid
from roofline.sweeping.grid import Grid
from roofline.sweeping.plan import Point
from roofline.sweeping.run import run

#: The step of the hand-made profile [s].
STEP = 12.5e-3


def measured(point: Point, factor: float = 1.0, first: float | None = None, **changes: object) -> Profile:
    """The hand-made step, `factor` times as long, as if it had been measured at a point. first: its first step [s]."""
    plain = handmade.profile()
    wall = replace(plain.wall, steps=tuple(step * factor for step in plain.wall.steps), first=first)
    about = {
        "model": point.model, "backend": point.backend, "framework": point.backend.partition(":")[0],
        "mode": point.mode, "batch": point.batch, "seq": point.seq, "precision": point.precision,
    }  # fmt: skip
    return handmade.profile(wall=wall, **{**about, **changes})


def sweep(at: Path, points: Sequence[Point], measure: Callable[[Point], Profile]) -> Grid:
    """Measure points into a folder, and read its grid."""
    run(at, folder.write_plan(at, points), measure, lambda line: None)
    return grid.read(at)


def jax_up_to(tokens: int) -> Callable[[Point], Profile]:
    """jax takes half of torch's step up to batch x length of some tokens, and twice it beyond."""

    def measure(point: Point) -> Profile:
        is_short = (point.batch or 1) * (point.seq or 1) <= tokens
        return measured(point, {True: 0.5, False: 2.0}[is_short] if point.backend == "jax" else 1.0)

    return measure
