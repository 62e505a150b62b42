"""Match the collectives of several ranks, and set their clocks by them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roofline.core.arrays import Array, Bools
from roofline.core.rows import Ints
from roofline.core.schema import Message, Profile
from roofline.ranks.number import number_of
from roofline.units import NANOSECOND

#: A kind of collectives: step, process group, operation. One of them: also the how manieth it is in the step.
_Kind = tuple[int, str, str]
_Key = tuple[int, str, str, int]


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """The collectives that several ranks took part in, in order. Arrays are of shape [ranks, collectives].

    messages: of each collective, as one of its ranks says it. steps: their numbers. took_part: whether a rank did;
    elsewhere all times are 0. start, duration, before, computing: as in `schema.Collectives` [s], start by one clock.
    unmatched: collectives that are not on all ranks of their group, or not as often.
    ends_apart: how far the ends of a collective are apart between its ranks, in the median [s]; None where no two
    ranks share one.
    """

    messages: tuple[Message, ...]
    steps: tuple[int, ...]
    took_part: Bools
    start: Array
    duration: Array
    before: Array
    computing: Array
    unmatched: int
    ends_apart: float | None

    def __len__(self) -> int:
        return len(self.messages)

    @property
    def waiting(self) -> Array:
        """Return how much longer each collective lasts than on the rank where it is shortest [s]."""
        shortest = np.min(np.where(self.took_part, self.duration, np.inf), axis=0, initial=np.inf)
        return np.where(self.took_part, self.duration - shortest, 0.0)

    @property
    def arrives(self) -> Array:
        """Return when the last rank arrives at each collective, from the first arrival of its step on [s]."""
        start = np.where(self.took_part, self.start, np.nan)
        first, last, steps = np.nanmin(start, axis=0), np.nanmax(start, axis=0), np.asarray(self.steps)
        return np.asarray([end - first[steps == step].min() for end, step in zip(last, steps, strict=True)])

    @property
    def last(self) -> Ints:
        """Return the row of the rank that arrives last at each collective: where it is shortest."""
        return np.asarray(np.where(self.took_part, self.duration, np.inf).argmin(0), np.int64)


def match(profiles: Sequence[Profile]) -> Matched:
    """Find the collectives that the ranks share: of a step, a group and an operation the first is one, and so on."""
    rows_of_rank = [_rows(profile) for profile in profiles]
    keys: dict[_Key, int] = {}
    for rows in rows_of_rank:
        for key in rows:
            keys.setdefault(key, len(keys))
    kinds: dict[_Kind, int] = {}
    kind = np.asarray([kinds.setdefault(key[:3], len(kinds)) for key in keys], np.int64)
    took_part, row = np.zeros((len(profiles), len(keys)), bool), np.zeros((len(profiles), len(keys)), np.int64)
    for number, rows in enumerate(rows_of_rank):
        at = np.fromiter(map(keys.__getitem__, rows), np.int64, len(rows))
        took_part[number, at], row[number, at] = True, list(rows.values())
    first = took_part.argmax(0)
    messages = [_message(profiles[rank], row[rank, at]) for at, rank in enumerate(first.tolist())]
    matched = np.flatnonzero(_on_all_members(profiles, took_part, kind, messages)[kind] & (took_part.sum(0) > 1))
    columns = {
        name: np.stack([_column(profile, name, rows) for profile, rows in zip(profiles, row[:, matched], strict=True)])
        for name in ("start", "duration", "before", "computing")
    }
    took_part = took_part[:, matched]
    columns["start"], ends_apart = _by_one_clock(took_part, columns["start"], columns["duration"])
    order = np.argsort(np.min(np.where(took_part, columns["start"], np.inf), axis=0, initial=np.inf), kind="stable")
    steps = [step for step, *_ in keys]
    times = {name: np.where(took_part, column, 0.0)[:, order] for name, column in columns.items()}
    return Matched(
        messages=tuple(messages[at] for at in matched[order].tolist()),
        steps=tuple(steps[at] for at in matched[order].tolist()),
        took_part=took_part[:, order],
        start=times["start"],
        duration=times["duration"],
        before=times["before"],
        computing=times["computing"],
        unmatched=len(keys) - len(matched),
        ends_apart=ends_apart,
    )


def _on_all_members(profiles: Sequence[Profile], took_part: Bools, kind: Ints, messages: Sequence[Message]) -> Bools:
    """Return of which kinds all ranks of their group have as many: bool[kinds]. A group that lists no rank is all."""
    numbers = np.asarray([-1 if rank is None else rank for rank in map(number_of, profiles)])
    kinds = int(kind.max(initial=-1)) + 1
    counts = np.stack([np.bincount(kind[took], minlength=kinds) for took in took_part])
    members: dict[int, tuple[int, ...]] = {}
    for code, message in zip(kind.tolist(), messages, strict=True):
        members.setdefault(code, message.members)
    lists = [np.isin(numbers, members[code]) if members[code] else numbers >= -1 for code in range(kinds)]
    expected = np.asarray(lists, bool).reshape(kinds, len(numbers))  # no rank recorded a collective: of no kind
    counted = np.where(expected.T, counts, counts.max(0))
    return np.asarray((counted == counts.max(0)).all(0), bool)


def _rows(profile: Profile) -> dict[_Key, int]:
    """Name each collective of a rank, with its row."""
    table = profile.collectives
    if table is None:
        return {}
    numbers: Counter[_Kind] = Counter()
    rows: dict[_Key, int] = {}
    for row, (code, step) in enumerate(zip(table.message, table.step, strict=True)):
        message = table.messages[code]
        kind = (step, message.among, message.name)
        rows[*kind, numbers[kind]] = row
        numbers[kind] += 1
    return rows


def _column(profile: Profile, name: str, rows: Ints) -> Array:
    """Return a column at some rows [s]; zeros of a rank without collectives."""
    values = np.asarray(getattr(profile.collectives, name, ()) or (0,), np.float64)
    return values[rows] * NANOSECOND


def _message(profile: Profile, row: int) -> Message:
    """Return the message of a collective of a rank that has some."""
    table = profile.collectives
    assert table is not None
    return table.messages[table.message[row]]


def _by_one_clock(took_part: Bools, start: Array, duration: Array) -> tuple[Array, float | None]:
    """Return starts [s] by the clock of the rank with most collectives, and how far ends are apart then.

    A rank that shares none with it is set by one that is set already; one that shares none at all keeps its clock.
    """
    end, is_set = start + duration, np.zeros(len(start), bool)
    offset = np.zeros(len(start))
    if took_part.any():
        is_set[took_part.sum(1).argmax()] = True
    while True:
        shared = took_part & (took_part & is_set[:, None]).any(0)
        waiting = np.flatnonzero(shared.any(1) & ~is_set)
        if not len(waiting):
            break
        number = int(waiting[shared[waiting].sum(1).argmax()])
        ends = np.where(took_part & is_set[:, None], end - offset[:, None], np.nan)[:, shared[number]]
        offset[number] = np.median(end[number, shared[number]] - np.nanmedian(ends, axis=0))
        is_set[number] = True
    aligned = np.where(took_part, end - offset[:, None], np.nan)
    several = took_part.sum(0) > 1
    spread = np.nanmax(aligned[:, several], axis=0) - np.nanmin(aligned[:, several], axis=0)
    ends_apart = float(np.median(spread)) if several.any() else None
    return np.where(took_part, start - offset[:, None], 0.0), ends_apart
