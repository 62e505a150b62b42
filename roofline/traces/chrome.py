"""The events of a Chrome trace, however damaged the file.

Three lanes, each slower than the one before: strict JSON; JSON after bare NaN/Infinity and invalid UTF-8 are
mended; event by event. Whatever a lane mends or drops is counted in a Repair.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from roofline.errors import InputError

HEADER = (
    "deviceProperties",
    "baseTimeNanoseconds",
    "record_shapes",
    "schemaVersion",
    "cuda_driver_version",
    "cuda_runtime_version",
    "hip_driver_version",
    "hip_runtime_version",
    "distributedInfo",
    "with_stack",
)
_FEED, _BLOCK = 1 << 16, 1 << 20  # bytes of gzip that go in, and of text that come out, at a time


class Event(msgspec.Struct, gc=False):
    """One entry of traceEvents; times and `args` are left as text. Other fields are not read."""

    ph: str = ""
    cat: str | None = None
    name: str | int | float | None = ""
    pid: str | int | float | None = 0
    tid: str | int | float | None = 0
    ts: msgspec.Raw = msgspec.Raw(b"")
    dur: msgspec.Raw = msgspec.Raw(b"")
    args: msgspec.Raw = msgspec.Raw(b"{}")


_LIST = msgspec.json.Decoder(list[Event])
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_EVENT = msgspec.json.Decoder(Event)
_BROKEN = (msgspec.DecodeError, UnicodeError, RecursionError, ValueError)


@dataclass(frozen=True, slots=True)
class Repair:
    """Something in a trace that had to be mended or left out, and how often."""

    what: str
    count: int

    def __str__(self) -> str:
        return f"{self.what}: {self.count}"


def read(source: str | Path | bytes, what: str, max_bytes: int) -> tuple[list[Event], dict[str, Any], list[Repair]]:
    """The events, the header's fields named in HEADER, and the repairs; `what` is the trace's name in errors.

    Raises InputError if the file cannot be read, is larger inflated than `max_bytes`, or is no Chrome trace.
    """
    repairs: list[Repair] = []
    events, header = _parse(_inflate(_load(source, what, max_bytes), what, max_bytes, repairs), repairs)
    if not events:
        raise InputError(f"{what} is not a Chrome trace; give a file that torch.profiler's export_chrome_trace wrote.")
    return events, header, repairs


def plain(value: Any) -> str:
    """Text of any value, without the lone surrogates that no encoder takes."""
    return str(value).encode("utf-8", "replace").decode()


# Bytes -> text


def _load(source: str | Path | bytes, what: str, max_bytes: int) -> bytes:
    if isinstance(source, bytes):
        return source
    path = Path(source)
    try:
        if path.stat().st_size > max_bytes:
            raise _too_large(what, max_bytes)
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {what}: {error.strerror or error}; give the path of a trace.") from error


def _too_large(what: str, max_bytes: int) -> InputError:
    return InputError(
        f"{what} is larger than {max_bytes / 2**20:,.0f} MiB of JSON; record fewer steps, or without stacks."
    )


def _inflate(data: bytes, what: str, max_bytes: int, repairs: list[Repair]) -> bytes:
    """The JSON text; of a damaged gzip file, what lies before the damage."""
    if data[:2] != b"\x1f\x8b":
        if len(data) > max_bytes:
            raise _too_large(what, max_bytes)
        return data.removeprefix(b"\xef\xbb\xbf")
    text = bytearray()
    try:
        for piece in _pieces(data):
            text += piece
            if len(text) > max_bytes:
                raise _too_large(what, max_bytes)
    except EOFError:
        repairs.append(Repair("gzip streams that end early, their last events missing", 1))
    except zlib.error:
        repairs.append(Repair("damaged blocks of gzip, the events after them missing", 1))
    return bytes(text.removeprefix(b"\xef\xbb\xbf"))


def _pieces(data: bytes) -> Iterator[bytes]:
    """What gzip members in a row hold, in bounded pieces; zlib.error or EOFError once all before it was given."""
    member, at = zlib.decompressobj(31), 0
    while at < len(data) and not member.eof:
        fed = data[at : at + _FEED]
        at += len(fed)
        while fed and not member.eof:
            intact = member.copy()
            try:
                yield member.decompress(fed, _BLOCK)
            except zlib.error:
                yield from _bites(intact, fed)
                raise
            fed = member.unconsumed_tail
        if member.eof:
            at -= len(member.unused_data)
            if data[at : at + 2] == b"\x1f\x8b":
                member = zlib.decompressobj(31)
    if not member.eof:
        raise EOFError


def _bites(member: Any, data: bytes) -> Iterator[bytes]:
    """What lies before the damage in `data`: a call that fails keeps what it had, so the calls get smaller."""
    for size in (1 << 14, 1 << 7, 1):
        while True:
            intact = member.copy()
            try:
                piece = member.decompress(data, size)
            except zlib.error:
                member = intact
                break
            if not piece and not member.unconsumed_tail:
                return
            yield piece
            data = member.unconsumed_tail


# Text -> events

_BARE = re.compile(rb'("\s*:\s*|[\[,]\s*)[-+]?(?:NaN|nan|Infinity|infinity|Inf|inf|INF)(?=\s*[,}\]])')
_HEAD = re.compile(rb'\{\s*"(?:ph|cat|name|ts|pid)"\s*:')


def _parse(text: bytes, repairs: list[Repair]) -> tuple[list[Event], dict[str, Any]]:
    """All events that can be read, and the header."""
    try:
        return _strict(text)
    except _BROKEN:
        pass
    text, bare = _BARE.subn(rb"\1null", text)
    valid = text.decode("utf-8", "replace").encode()
    mended = [Repair("bare NaN or Infinity read as missing", bare)] if bare else []
    if valid != text:
        mended.append(Repair("invalid UTF-8 characters replaced", valid.count("�".encode())))
    try:
        events, header = _strict(valid)
        repairs += mended
        return events, header
    except _BROKEN:
        pass
    events, lost = _salvage(valid)
    repairs += mended
    repairs.append(Repair("events salvaged one by one from damaged JSON", len(events)))
    if lost:
        repairs.append(Repair("damaged pieces of JSON dropped", lost))
    return events, _salvage_header(valid)


def _strict(text: bytes) -> tuple[list[Event], dict[str, Any]]:
    if re.match(rb"\s*\[", text):
        return _LIST.decode(text), {}
    top = _OBJECT.decode(text)
    events = _LIST.decode(top["traceEvents"]) if "traceEvents" in top else []
    return events, {key: msgspec.json.decode(top[key]) for key in HEADER if key in top}


def _salvage(text: bytes) -> tuple[list[Event], int]:
    """The events that are whole, and the number of pieces that are not.

    The text is cut where an event seems to begin; a quote inside a string is escaped, so no name looks like
    that. Each piece is read once, so that no damage makes this slower than linear.
    """
    heads = [match.start() for match in _HEAD.finditer(text)]
    found = [_salvage_event(text[head:end]) for head, end in pairwise([*heads, len(text)])]
    events = [event for event in found if event is not None]
    return events, len(found) - len(events)


def _salvage_event(piece: bytes) -> Event | None:
    try:
        return _EVENT.decode(piece.rstrip(b" \t\r\n,"))
    except _BROKEN:
        pass
    try:  # the last event of the list, or one whose values have unexpected types
        value, _ = json.JSONDecoder().raw_decode(piece.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(value.get("ph"), str):
        return None
    numbers = {key: msgspec.Raw(json.dumps(value[key]).encode()) for key in ("ts", "dur", "args") if key in value}
    texts = {key: plain(value[key]) for key in ("ph", "cat", "name", "pid", "tid") if key in value}
    return Event(**texts, **numbers)


def _salvage_header(text: bytes) -> dict[str, Any]:
    """The header's fields that are still whole, before or after the events."""
    header: dict[str, Any] = {}
    for key in ("deviceProperties", "baseTimeNanoseconds", "record_shapes"):
        match = re.search(rb'"%s"\s*:\s*' % key.encode(), text)
        if match:
            piece = text[match.end() : match.end() + (1 << 16)].decode("utf-8", "replace")
            try:
                header[key], _ = json.JSONDecoder().raw_decode(piece)
            except (ValueError, RecursionError):
                continue
    return header
