"""The folder of a sweep: its plan, and of each point a profile, or why there is none.

    plan.jsonl                 a point a line, with its key
    points/KEY.json            the profile of a point
    points/KEY.failed.json     {"kind": "out of memory", "text": "...", "attempts": 1}

A point that was being measured when the run was killed has neither, and is measured again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from roofline.core import files
from roofline.core.schema import Profile, load, save
from roofline.errors import InputError
from roofline.sweeping.plan import Point, decode, encode

PLAN, _POINTS = "plan.jsonl", "points"
#: Bytes of a plan and of the record of a failure, at most.
_MOST_PLAN, _MOST_FAILURE = 1 << 26, 1 << 20
#: Letters of the reason that is kept.
_LETTERS = 1000

#: refused: it cannot be asked for, as a length that a model has no positions for. missing: a framework or a device.
Kind = Literal["refused", "missing", "out of memory", "failed"]


class Failure(msgspec.Struct, frozen=True):
    """Why a point has no profile, and how often it was tried."""

    kind: Kind
    text: str
    attempts: int = 1


def is_folder(path: Path) -> bool:
    """Return whether a path is the folder of a sweep."""
    return (path / PLAN).is_file()


def write_plan(folder: Path, points: Sequence[Point]) -> list[Point]:
    """Add points to the plan of a folder, which may not be there yet; return the whole plan."""
    every = list(dict.fromkeys([*(read_plan(folder) if is_folder(folder) else []), *points]))
    (folder / _POINTS).mkdir(parents=True, exist_ok=True)
    files.write_atomically(folder / PLAN, encode(every))
    return every


def read_plan(folder: Path) -> list[Point]:
    """Read the plan of a folder. Raises InputError where it cannot be read."""
    file = folder / PLAN
    return decode(files.read(file, _MOST_PLAN, "the plan of a sweep"), str(file))


def profile_path(folder: Path, point: Point) -> Path:
    """Return where the profile of a point lies."""
    return folder / _POINTS / f"{point.key}.json"


def _failure_path(folder: Path, point: Point) -> Path:
    return folder / _POINTS / f"{point.key}.failed.json"


def is_done(folder: Path, point: Point) -> bool:
    """Return whether a point has a profile, or a record of why it has none."""
    return profile_path(folder, point).exists() or _failure_path(folder, point).exists()


def keep(folder: Path, point: Point, profile: Profile) -> None:
    """Save the profile of a point."""
    save(profile, profile_path(folder, point))
    _failure_path(folder, point).unlink(missing_ok=True)


def fail(folder: Path, point: Point, kind: Kind, text: str) -> None:
    """Record why a point has no profile."""
    before = failure(folder, point)
    record = Failure(kind, text[:_LETTERS], 1 + (before.attempts if before else 0))
    files.write_atomically(_failure_path(folder, point), msgspec.json.encode(record) + b"\n")


def failure(folder: Path, point: Point) -> Failure | None:
    """Return why a point has no profile; None where nothing says so. Raises InputError for a damaged record."""
    file = _failure_path(folder, point)
    if not file.exists():
        return None
    try:
        return msgspec.json.decode(files.read(file, _MOST_FAILURE, "the record of a failure"), type=Failure)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{file} is no record of a failure ({error}): remove it to measure the point again.") from None


def profile(folder: Path, point: Point) -> Profile | None:
    """Load the profile of a point; None where it has none. Raises InputError for a damaged one."""
    file = profile_path(folder, point)
    return load(file) if file.exists() else None
