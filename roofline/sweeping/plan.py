"""The points of a sweep: one line each in its plan, with a key by content, so that none is measured twice."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

import msgspec

from roofline.core.decoding import UndecodableError, from_json
from roofline.errors import InputError

#: More points than these are a slip of the keyboard.
MOST = 100_000
#: Digits of a batch or a length, at most: predictions reckon with both.
_DIGITS = 12
_Coordinate = Annotated[int, msgspec.Meta(ge=1, lt=10**_DIGITS)]


class Point(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step to measure: the options of `roofline profile`. None: the default of the model or of the machine."""

    model: str
    backend: str
    mode: str = "infer"
    precision: str = "default"
    batch: _Coordinate | None = None
    seq: _Coordinate | None = None
    new_tokens: int | None = None
    size: str = "base"
    layers: int | None = None
    device: str = "auto"
    threads: int | None = None
    steps: int | None = None
    rounds: int = 1
    input: str = "device"
    optimizer: bool = True

    @property
    def key(self) -> str:
        """Return what tells this point from all others, whatever plan it is in."""
        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).hexdigest()[:16]

    def place(self, *without: str) -> str:
        """Name the point but for its backend and some coordinates: "bert train, batch 4, 128 tokens, bf16"."""
        size = "" if self.size in ("base", "-") else self.size
        parts = [" ".join(filter(None, (self.model, size, self.mode)))]
        parts += [f"batch {self.batch}"] if self.batch is not None and "batch" not in without else []
        parts += [f"{self.seq} tokens"] if self.seq is not None and "seq" not in without else []
        parts += [self.precision] if self.precision != "default" else []
        return ", ".join(parts)

    def without(self, *names: str) -> Point:
        """Return the point with the defaults of some coordinates: what its neighbours along these share."""
        return msgspec.structs.replace(self, **{name: "" if name == "backend" else None for name in names})


def numbers(text: str, option: str) -> list[int | None]:
    """Read a list of numbers, "1,2,4..64": two dots double from one to the next. Empty: the default alone.

    Raises InputError for anything else.
    """
    read: list[int | None] = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        first, dots, last = part.partition("..")
        if not all(
            number.isdecimal() and 0 < len(number) <= _DIGITS and int(number) for number in (first, last or "1")
        ):
            raise InputError(f"--{option} {text!r} is not possible: give numbers, as in 1,2,4..64.")
        low, high = int(first), int(last) if dots and last else int(first)
        if dots and (not last or high < low):
            raise InputError(f"--{option} {part!r} is not possible: the second number must be at least the first.")
        while low <= high:
            read.append(low)
            low *= 2
    return list(dict.fromkeys(read)) or [None]


def points(
    models: Sequence[str],
    backends: Sequence[str],
    modes: Sequence[str],
    precisions: Sequence[str],
    batches: Sequence[int | None],
    seqs: Sequence[int | None],
    **alike: object,
) -> list[Point]:
    """Return all combinations, those of one cell (all backends) after each other. alike: fields of all points."""
    size = len(models) * len(backends) * len(modes) * len(precisions) * len(batches) * len(seqs)
    if size > MOST:
        raise InputError(f"{size:,} points are too many: give fewer numbers, or several sweeps.")
    cells = itertools.product(models, modes, precisions, batches, seqs, backends)
    names = ("model", "mode", "precision", "batch", "seq", "backend")
    return [msgspec.convert({**dict(zip(names, cell, strict=True)), **alike}, Point) for cell in cells]


def lines(cells: Iterable[Point]) -> Iterator[tuple[str, list[Point]]]:
    """Yield the rows and columns of a plan: the axis along which their cells differ, and these in order."""
    listed = list(cells)
    for axis in ("batch", "seq"):
        by_others: dict[Point, list[Point]] = {}
        for cell in listed:
            if getattr(cell, axis) is not None:
                by_others.setdefault(cell.without(axis), []).append(cell)
        for line in by_others.values():
            yield axis, sorted(line, key=lambda cell: getattr(cell, axis))


def corners(cells: Iterable[Point]) -> list[Point]:
    """Return the cells at the ends of both axes, of each model, mode and precision."""
    parts: dict[Point, list[Point]] = {}
    for cell in cells:
        parts.setdefault(cell.without("batch", "seq"), []).append(cell)
    return [cell for part in parts.values() for cell in _corners(part)]


def _corners(part: Sequence[Point]) -> list[Point]:
    batches, seqs = ([getattr(cell, axis) or 0 for cell in part] for axis in ("batch", "seq"))
    of_batch, of_seq = ({min(values), max(values)} for values in (batches, seqs))
    places = zip(part, batches, seqs, strict=True)
    return [cell for cell, batch, seq in places if batch in of_batch and seq in of_seq]


def coarse_first(every: Sequence[Point]) -> list[Point]:
    """Order points so that those measured so far always span the plan: corners first, then what halves the largest gap.

    All backends of a cell stay together.
    """
    axes = [_halving(sorted({getattr(point, name) or 0 for point in every})) for name in ("batch", "seq")]
    place = {point: number for number, point in enumerate(every)}

    def rank(point: Point) -> tuple[int, int]:
        return max(axis[getattr(point, name) or 0] for axis, name in zip(axes, ("batch", "seq"), strict=True)), place[
            point
        ]

    return sorted(every, key=rank)


def _halving(values: Sequence[int]) -> dict[int, int]:
    """Return the round in which each value of an axis is taken: 0 for both ends, then the middle of each gap."""
    rounds = dict.fromkeys({*values[:1], *values[-1:]}, 0)
    gaps, number = [(0, len(values) - 1)], 1
    while gaps:
        halves = []
        for low, high in gaps:
            middle = (low + high) // 2
            if low < middle < high:
                rounds[values[middle]] = number
                halves += [(low, middle), (middle, high)]
        gaps, number = halves, number + 1
    return rounds


def shard(every: Sequence[Point], text: str) -> list[Point]:
    """Return the I-th of N parts of a plan, "I/N", each cell in one of them. Raises InputError for other text."""
    part, slash, of = text.partition("/")
    if not (slash and part.isdecimal() and of.isdecimal() and len(text) < 14 and 1 <= int(part) <= int(of)):
        raise InputError(f"--shard {text!r} is not possible: give I/N, as in 3/16, with I from 1 to N.")
    numbers = {cell: number for number, cell in enumerate(dict.fromkeys(point.without("backend") for point in every))}
    return [point for point in every if numbers[point.without("backend")] % int(of) == int(part) - 1]


def encode(every: Iterable[Point]) -> bytes:
    """Write a plan: a line of JSON for each point, with its key."""
    lines = [msgspec.json.encode({"key": point.key, **msgspec.to_builtins(point)}) for point in every]
    return b"".join(line + b"\n" for line in lines)


def decode(data: bytes, source: str) -> list[Point]:
    """Read a plan. Raises InputError, naming the line, where it is none."""
    read = []
    for number, line in enumerate(data.splitlines(), 1):
        try:
            read.append(from_json(line, Point))
        except UndecodableError as error:
            raise InputError(f"Line {number} of {source} is no point of a sweep ({error}).") from None
        if len(read) > MOST:
            raise InputError(f"{source} holds more than {MOST:,} points.")
    return read
