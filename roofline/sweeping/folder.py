"""The folder of a sweep: its plan, and of each point a profile, or why there is none.

    plan.jsonl                 a point a line, with its key
    points/KEY.json            the profile of a point
    points/KEY.failed.json     {"kind": "out of memory", "text": "...", "attempts": 1}
    attempts.jsonl             a line for each attempt that ended on a node of a cluster (nodes.py)

A point that was being measured when the run was killed has neither, and is measured again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from roofline.core import files
from roofline.core.decoding import UndecodableError, from_json
from roofline.core.schema import Profile, load, save
from roofline.errors import InputError
from roofline.sweeping.plan import Point, decode, encode

PLAN, _POINTS, _ATTEMPTS = "plan.jsonl", "points", "attempts.jsonl"
#: Bytes of a plan, of the record of a failure and of that of all attempts, at most.
_MOST_PLAN, _MOST_FAILURE, _MOST_ATTEMPTS = 1 << 26, 1 << 20, 1 << 30
#: Letters of the reason that is kept.
_LETTERS = 1000

#: refused: it cannot be asked for, as a length that a model has no positions for. missing: a framework or a device.
Kind = Literal["refused", "missing", "out of memory", "failed"]


class Failure(msgspec.Struct, frozen=True):
    """Why a point has no profile, and how often it was tried."""

    kind: Kind
    text: str
    attempts: int = 1


class Attempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How an attempt to measure a point ended on a node of a cluster.

    point: its key. number: from 1. end: "measured", a `Kind`, or "lost" with its process or its node, why in `text`.
    node: its name. device, versions: of the node, as it told before the first point.
    """

    point: str
    number: int
    end: str
    node: str
    date: str
    device: str
    versions: Mapping[str, str]
    text: str = ""


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


def fail(folder: Path, point: Point, kind: Kind, text: str, attempts: int = 1) -> None:
    """Record why a point has no profile. attempts: how often it was tried, beside those already recorded."""
    before = failure(folder, point)
    record = Failure(kind, text[:_LETTERS], attempts + (before.attempts if before else 0))
    files.write_atomically(_failure_path(folder, point), msgspec.json.encode(record) + b"\n")


def add_attempt(folder: Path, attempt: Attempt) -> None:
    """Add a line to the record of attempts, behind one that may have been cut off."""
    attempt = msgspec.structs.replace(attempt, text=attempt.text[:_LETTERS])
    with (folder / _ATTEMPTS).open("ab+") as stream:
        if stream.tell():
            stream.seek(-1, os.SEEK_END)
        cut_off = stream.read(1) not in (b"", b"\n")
        stream.write(b"\n" * cut_off + msgspec.json.encode(attempt) + b"\n")


def attempts(folder: Path) -> list[Attempt]:
    """Read the record of attempts. A line that was cut off when the run was killed is left out."""
    file = folder / _ATTEMPTS
    if not file.exists():
        return []
    read = []
    for line in files.read(file, _MOST_ATTEMPTS, "the record of attempts").splitlines():
        with suppress(UndecodableError):
            read.append(from_json(line, Attempt))
    return read


def failure(folder: Path, point: Point) -> Failure | None:
    """Return why a point has no profile; None where nothing says so. Raises InputError for a damaged record."""
    file = _failure_path(folder, point)
    if not file.exists():
        return None
    try:
        return from_json(files.read(file, _MOST_FAILURE, "the record of a failure"), Failure)
    except UndecodableError as error:
        raise InputError(f"{file} is no record of a failure ({error}): remove it to measure the point again.") from None


def profile(folder: Path, point: Point) -> Profile | None:
    """Load the profile of a point; None where it has none. Raises InputError for a damaged one."""
    file = profile_path(folder, point)
    return load(file) if file.exists() else None
