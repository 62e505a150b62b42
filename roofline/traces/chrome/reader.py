"""The events of a Chrome trace, however long and however damaged the file.

The text is cut between events into chunks of a few MiB, which are decoded one after another: a file beyond memory
needs no more than a chunk. Of a chunk there are four lanes, each slower than the one before: strict JSON with times
as floats; strict JSON with times as text; JSON after bare NaN/Infinity and invalid UTF-8 are mended; event by event.
Whatever a lane mends or drops is counted in a Repair.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, repeat
from pathlib import Path
from typing import Any

import numpy as np

from roofline.errors import InputError
from roofline.traces.chrome import json, times
from roofline.traces.chrome import text as chrome_text
from roofline.traces.chrome.json import Complete, Event

_CHUNK = 1 << 21  # bytes of text that are decoded together
_LONGEST = 1 << 24  # bytes without an event, and what follows is no trace
_HOPELESS = 200_000  # damaged pieces; a file with more of them than of events is not read to its end
_CARRIED = 4  # chunks that an event may be long and have been cut in the middle
_OVERLAP = 256  # bytes in which an event begins, white space and all
_DROPPED = "damaged pieces of JSON dropped"
_BLANK = b" \t\r\n"
_ENDS = ("s", "f")  # phases of the two ends of a flow

_category, _phase = operator.attrgetter("cat"), operator.attrgetter("ph")
_begin, _length = operator.attrgetter("ts"), operator.attrgetter("dur")


@dataclass(frozen=True, slots=True)
class Repair:
    """Something in a trace that had to be mended or left out, and how often."""

    description: str
    count: int

    def __str__(self) -> str:
        return f"{self.description}: {self.count}"


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Events and ends of flows that follow each other in the file, of the categories asked for; columns of one length.

    `kind`: int8, what the category stands for. `position`: int64, place in the file. `start`, `length`: int64 [ns],
    and `timed`, `measured`: bool, which of them are numbers.
    """

    events: Sequence[Event | Complete]
    kind: np.ndarray
    position: np.ndarray
    start: np.ndarray
    timed: np.ndarray
    length: np.ndarray
    measured: np.ndarray

    def __len__(self) -> int:
        return len(self.events)

    def select(self, rows: np.ndarray) -> Chunk:
        """Return the events that a mask marks, bool[n]."""
        columns = (self.kind, self.position, self.start, self.timed, self.length, self.measured)
        return Chunk(list(compress(self.events, rows.tolist())), *(column[rows] for column in columns))


class Reader:
    """The complete events of one trace, and the ends of flows between them, chunk by chunk.

    `recorded`: number of entries read, of every phase. `header`: the fields named in HEADER, complete after the last
    chunk, as are the `repairs`.
    """

    def __init__(
        self,
        source: str | Path | bytes,
        name: str,
        max_bytes: int,
        kinds: Mapping[str, int],
        flows: Collection[str] = (),
    ) -> None:
        """`kinds`: the categories wanted, and numbers for them, `flows` among them: those of flows, wanted as these.

        `name`: the trace's name in errors.
        """
        self.recorded = 0
        self.header: dict[str, Any] = {}
        self._kinds = kinds
        self._flows = flows
        self._what = name
        self._counts: dict[str, int] = {}
        self._batches = _batches(chrome_text.pieces(source, name, max_bytes, self._count))
        self._floats = True  # until one is found that has lost its nanoseconds
        self._before = b""  # the text before the list
        self._listed = True

    @property
    def repairs(self) -> list[Repair]:
        """List what was mended or left out so far."""
        return [Repair(description, count) for description, count in self._counts.items()]

    def _count(self, description: str, count: int) -> None:
        if count:
            self._counts[description] = self._counts.get(description, 0) + count

    def chunks(self) -> Iterator[Chunk]:
        """The events in the order of the file.

        Raises InputError if the file cannot be read, is larger inflated than allowed, or is no Chrome trace.
        """
        text = self._opening()
        closed = False
        for batch in self._batches:
            searched = len(text)  # of one event, without a comma before another
            text += batch
            cut = json.last_comma(text, max(0, searched - _OVERLAP))
            if cut < 0 and len(text) > _LONGEST:
                self._count("pieces of more than 16 MiB without an event, at which reading ended", 1)
                text = b""
                break
            if cut < 0:
                continue
            chunk, undecoded, closed = self._decoded(text[:cut], last=False)
            yield chunk
            text = (undecoded + text[cut:]).lstrip(_BLANK + b",")
            if closed:
                break
            if self._counts.get(_DROPPED, 0) > max(_HOPELESS, self.recorded):
                text = b""
                break
        while not closed and text:
            chunk, text, closed = self._decoded(text, last=True)
            yield chunk
        if closed:
            self._read_header(text)
        else:
            self._count("lists of events that break off, their last events missing", 1)
            self.header = json.salvage_header(self._before)
        if not self.recorded:
            raise InputError(
                f"{self._what} is not a Chrome trace; give a file that torch.profiler's export_chrome_trace wrote."
            )

    # Where the list of events begins and ends

    def _opening(self) -> bytes:
        """The text behind the bracket that opens the list; all of it where there is none."""
        text = b""
        for batch in self._batches:
            text = text + batch if text else batch.removeprefix(b"\xef\xbb\xbf")
            opening = json.BARE_LIST.match(text) or json.NAMED_LIST.search(text)
            if opening:
                self._before = text[: opening.end() - 1]
                return text[opening.end() :]
            if len(text) > _LONGEST:
                break
        self._listed = False
        if json.header_of(text) is None and json.HEAD.search(text):
            self._before = text
            return text
        self._batches = iter(())
        return b""

    def _read_header(self, tail: bytes) -> None:
        """The header's fields, before and behind the list."""
        tail += b"".join(batch for _, batch in zip(range(_LONGEST // _CHUNK), self._batches, strict=False))
        if not self._before.strip():  # the list is all there is
            if tail.strip(_BLANK) != b"]":
                self._count(_DROPPED, 1)
            return
        text = self._before + b"[" + tail
        header = json.header_of(text)
        if header is None:
            header = json.header_of(json.mended_text(text)[0])
        if header is None:
            self._count("damaged texts around the list of events", 1)
            header = json.salvage_header(text)
        self.header = header

    # One chunk

    def _decoded(self, text: bytes, last: bool) -> tuple[Chunk, bytes, bool]:
        """The events of a text that begins with one, what is left of it, and whether the list ends there.

        A text that cannot be decoded may hold the end of the list, or have been cut inside an event that holds a list
        of objects: then brackets are counted to find where the last whole event ends. Else it is damaged.
        """
        chunk = None if last else self._whole(text)
        if chunk is not None:
            return chunk, b"", False
        end, closed = json.outline(text)
        continues = not last and end < len(text) < end + _CARRIED * _CHUNK  # the text goes on, and may be sound
        if closed or continues or (last and end):
            chunk = self._whole(text[:end])
        if chunk is not None:
            return chunk, text[end:].lstrip(_BLANK + b","), closed
        if closed:
            return self._salvaged(text[:end]), text[end:], True
        return self._salvaged(text), b"", False

    def _whole(self, text: bytes) -> Chunk | None:
        """The events of a text that is sound, or is once its numbers and characters are mended; else None."""
        listed = b"[" + text + b"]"
        if self._floats:
            try:
                chunk = self._of_floats(json.QUICK.decode(listed))
                if chunk is not None:
                    return chunk
            except json.BROKEN:
                pass
        try:
            return self._of_texts(json.LIST.decode(listed))
        except json.BROKEN:
            pass
        mended, repairs = json.mended_text(listed)
        try:
            chunk = self._of_texts(json.LIST.decode(mended))
        except json.BROKEN:
            return None
        for description, count in repairs:
            self._count(description, count)
        return chunk

    def _salvaged(self, text: bytes) -> Chunk:
        mended, repairs = json.mended_text(text)
        events, lost = json.salvage(mended)
        for description, count in repairs:
            self._count(description, count)
        self._count("events salvaged one by one from damaged JSON", len(events))
        self._count(_DROPPED, lost)
        return self._of_texts(events)

    def _of_floats(self, events: list[Any]) -> Chunk | None:
        """None where a time is too large for a float to hold its nanoseconds."""
        kind = self._kind(events)
        wanted = list(compress(events, (kind >= 0).tolist()))
        start = times.from_floats(np.fromiter(map(_begin, wanted), np.float64, len(wanted)))
        length = times.from_floats(np.fromiter(map(_length, wanted), np.float64, len(wanted)))
        if start is None or length is None:
            self._floats = False
            return None
        return self._chunk(wanted, kind, *start, *length)

    def _of_texts(self, events: list[Event]) -> Chunk:
        kind = self._kind(events)
        wanted = list(compress(events, (kind >= 0).tolist()))
        phases = list(map(_phase, wanted))
        if phases.count("X") < len(phases):
            is_flow = [category in self._flows for category in map(_category, wanted)]
            rows = np.flatnonzero(kind >= 0)
            fits = [phase in _ENDS if flow else phase == "X" for phase, flow in zip(phases, is_flow, strict=True)]
            kind[rows[~np.asarray(fits)]] = -1
            wanted = list(compress(events, (kind >= 0).tolist()))
        start = times.from_texts(list(map(_begin, wanted)))
        length = times.from_texts(list(map(_length, wanted)))
        return self._chunk(wanted, kind, *start, *length)

    def _kind(self, events: list[Any]) -> np.ndarray:
        return np.fromiter(map(self._kinds.get, map(_category, events), repeat(-1)), np.int8, len(events))

    def _chunk(self, wanted: list[Any], kind: np.ndarray, *columns: np.ndarray) -> Chunk:
        rows = np.flatnonzero(kind >= 0)
        position = self.recorded + rows
        self.recorded += len(kind)
        return Chunk(wanted, kind[rows], position, *columns)


def head(source: str | Path | bytes) -> dict[str, Any]:
    """The header's fields that stand before the list of events, of which no more than a few MiB are read.

    Empty where the list comes first, or in a file that is damaged there. InputError where it cannot be read.
    """
    name = "the trace" if isinstance(source, bytes) else str(source)
    text = b""
    for piece in chrome_text.pieces(source, name, 1 << 34, lambda description, count: None):
        text += piece
        opening = json.NAMED_LIST.search(text)
        if opening:
            return json.header_of(text[: opening.end()] + b"]}") or {}
        if len(text) > 4 * _CHUNK:
            break
    return {}


def _batches(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces joined to chunks."""
    joined, size = [], 0
    for piece in pieces:
        joined.append(piece)
        size += len(piece)
        if size >= _CHUNK:
            yield b"".join(joined)
            joined, size = [], 0
    yield b"".join(joined)
