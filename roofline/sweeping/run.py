"""Measure the points of a sweep that have no result yet, one at a time. What fails is recorded, and the rest go on."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from roofline import units
from roofline.core.schema import Profile
from roofline.errors import InputError, MissingError, RooflineError
from roofline.sweeping import folder as results
from roofline.sweeping.lock import alone
from roofline.sweeping.plan import Point

#: How a measuring process says that memory ran out (recording/child.py).
_OUT_OF_MEMORY = "out of memory"


def run(
    folder: Path,
    points: Sequence[Point],
    measure: Callable[[Point], Profile],
    say: Callable[[str], None],
    *,
    retry: bool = False,
) -> Counter[str]:
    """Measure points that are not done, in order; return how many ended how: "measured", or a kind of failure.

    measure: makes the profile of a point, or raises a RooflineError. retry: measure those again that failed.
    """
    ended: Counter[str] = Counter()
    missing = [point for point in points if not has_result(folder, point, retry)]
    begin = time.monotonic()
    for number, point in enumerate(missing):
        line = f"{number + 1}/{len(missing)} {point.backend}: {point.place()}"
        line += time_left(ended["measured"], len(missing) - number, time.monotonic() - begin)
        end = attempt(folder, point, measure, say, line, retry=retry)
        ended.update([end] if end else [])
    return ended


def time_left(measured: int, left: int, seconds: float) -> str:
    """Tell how long the points that are left take, if they take as long as those measured in so many seconds.

    Those that were refused say nothing of it: they end at once.
    """
    if not measured:
        return ""
    return f" ({units.seconds(left * seconds / measured)} left, if all take as long as those measured so far)"


def attempt(
    folder: Path,
    point: Point,
    measure: Callable[[Point], Profile],
    say: Callable[[str], None],
    line: str,
    *,
    retry: bool = False,
) -> str | None:
    """Say a line, measure a point and save what comes of it; return how it ended, None where it had ended before.

    Waits while another sweep measures on the device.
    """
    with alone(point.device, say):
        if has_result(folder, point, retry):
            return None
        say(line)
        return _end(folder, point, measure, say)


def has_result(folder: Path, point: Point, retry: bool) -> bool:
    """Return whether a point needs no measurement. retry: one that failed does."""
    return results.profile_path(folder, point).exists() if retry else results.is_done(folder, point)


def _end(folder: Path, point: Point, measure: Callable[[Point], Profile], say: Callable[[str], None]) -> str:
    """Measure a point, save what comes of it, and say how it ended.

    Raises InputError where that cannot be saved, as on a full disk: the point has no result then.
    """
    try:
        profile = measure(point)
    except RooflineError as error:
        kind = _kind(error)
        results.fail(folder, point, kind, str(error))
        say(f"  {kind}: {units.cut(str(error), 200)}")
        return kind
    results.keep(folder, point, profile)
    return "measured"


def _kind(error: RooflineError) -> results.Kind:
    if isinstance(error, InputError):
        return "refused"
    if isinstance(error, MissingError):
        return "missing"
    return "out of memory" if _OUT_OF_MEMORY in str(error).lower() else "failed"
