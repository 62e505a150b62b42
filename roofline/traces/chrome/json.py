"""The JSON of a Chrome trace: its events as structs, where one ends and the next begins, and what damage leaves.

Nothing here holds state; `reader.Reader` puts it together.
"""

from __future__ import annotations

import functools
import json
import operator
import re
from itertools import pairwise
from types import GenericAlias
from typing import Any, ClassVar

import msgspec

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


class Event(msgspec.Struct, gc=False):
    """Hold one entry of traceEvents; times and `args` are left as text. Other fields are not read."""

    ph: str = ""
    cat: str | None = None
    name: str | int | float | None = ""
    pid: str | int | float | None = 0
    tid: str | int | float | None = 0
    ts: msgspec.Raw = msgspec.Raw(b"")
    dur: msgspec.Raw = msgspec.Raw(b"")
    args: msgspec.Raw = msgspec.Raw(b"{}")
    id: str | int | float | None = None


class Complete(msgspec.Struct, gc=False, tag_field="ph", tag="X"):
    """An event with a duration, its times as floats: quicker to decode."""

    cat: str | None = None
    name: str | int | float | None = ""
    pid: str | int | float | None = 0
    tid: str | int | float | None = 0
    ts: float = float("nan")
    dur: float = float("nan")
    args: msgspec.Raw = msgspec.Raw(b"{}")
    id: str | int | float | None = None


class _FlowStart(Complete, tag="s"):
    """Where a flow from event to event begins: at a time of a thread, in an event of another phase."""


class _FlowEnd(Complete, tag="f"):
    """Where such a flow ends."""


class _Other(msgspec.Struct, gc=False, tag_field="ph"):
    """An event of another phase: nothing of it is read."""

    cat: ClassVar[None] = None


# One class for each phase that the format knows: a union is told apart by the tag.
_OTHERS = [msgspec.defstruct(f"_Phase{ord(ph)}", [], bases=(_Other,), tag=ph) for ph in "BEIiCbneSTpFtPNODMVvRca"]
_PHASES = functools.reduce(operator.or_, _OTHERS, Complete | _FlowStart | _FlowEnd)
QUICK: msgspec.json.Decoder[list[Complete | _Other]] = msgspec.json.Decoder(GenericAlias(list, (_PHASES,)))
LIST = msgspec.json.Decoder(list[Event])
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_EVENT = msgspec.json.Decoder(Event)
BROKEN = (msgspec.DecodeError, UnicodeError, RecursionError, ValueError)

_DEEPEST = 1000  # levels of nesting; no event has as many
_PIECES = 200_000  # events salvaged of one text

_BARE = re.compile(rb'("\s*:\s*|[\[,]\s*)[-+]?(?:NaN|nan|Infinity|infinity|Inf|inf|INF)(?=\s*[,}\]])')
_FIRST_KEY = rb'\{\s*"(?:ph|cat|name|ts|pid)"\s*:'
HEAD = re.compile(_FIRST_KEY)
_COMMA = re.compile(rb",\s*(?=" + _FIRST_KEY + rb")")
BARE_LIST = re.compile(rb"\s*\[")
NAMED_LIST = re.compile(rb'"traceEvents"\s*:\s*\[')
# A string, with its end where it has one, or a bracket.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[][{}]', re.DOTALL)


def plain(value: Any) -> str:
    """Text of any value, without the lone surrogates that no encoder takes."""
    return str(value).encode("utf-8", "replace").decode()


def _encodable(value: Any) -> Any:
    """Replace what UTF-8 cannot encode in a value of JSON and in all it holds; RecursionError if it is too deep."""
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def header_of(text: bytes) -> dict[str, Any] | None:
    """The header's fields of an object, None if it is damaged."""
    try:
        top = _OBJECT.decode(text)
        return {key: _encodable(msgspec.json.decode(top[key])) for key in HEADER if key in top}
    except BROKEN:
        return None


def last_comma(text: bytes, least: int) -> int:
    """Find the comma before the last event that begins in the text, -1 for none; sought from `least` on.

    A quote inside a string is escaped, so that no name looks like the beginning of an event.
    """
    size = 1 << 12
    while True:
        begin = max(least, len(text) - size)
        position = -1
        for match in _COMMA.finditer(text, begin):
            position = match.start()
        if position >= 0 or begin == least:
            return position
        size *= 16


def outline(text: bytes) -> tuple[int, bool]:
    """Return where the last whole event of a list ends; or where the bracket is that closes the list, and True."""
    depth = end = 0
    for token in _TOKEN.finditer(text):
        mark = text[token.start() : token.start() + 1]
        if mark in b"{[":
            depth += 1
            if depth > _DEEPEST:
                break
        elif mark in b"}]":
            depth -= 1
            if depth == 0:
                end = token.end()
            elif depth < 0:
                return (token.start(), True) if mark == b"]" else (end, False)
    return end, False


def mended_text(text: bytes) -> tuple[bytes, list[tuple[str, int]]]:
    """The text with null for bare NaN and Infinity and valid UTF-8, and what that took."""
    text, bare = _BARE.subn(rb"\1null", text)
    valid = text.decode("utf-8", "replace").encode()
    repairs = [("bare NaN or Infinity read as missing", bare)]
    if valid != text:
        repairs.append(("invalid UTF-8 characters replaced", valid.count("�".encode())))
    return valid, repairs


def salvage(text: bytes) -> tuple[list[Event], int]:
    """Return the events that are whole, and the number of pieces that are not.

    The text is cut where an event seems to begin. Each piece is read once, and a text of a few MiB has only so many:
    no damage makes this slow.
    """
    heads = [match.start() for match in HEAD.finditer(text)]
    salvaged = [_salvage_event(text[head:end]) for head, end in pairwise([*heads, len(text)][: _PIECES + 1])]
    events = [event for event in salvaged if event is not None]
    return events, len(heads) - len(events)


def _salvage_event(piece: bytes) -> Event | None:
    try:
        return _EVENT.decode(piece.rstrip(b" \t\r\n,"))
    except BROKEN:
        pass
    try:  # the last event of the list, or one whose values have unexpected types
        value, _ = json.JSONDecoder().raw_decode(piece.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(value.get("ph"), str):
        return None
    numbers = {key: msgspec.Raw(json.dumps(value[key]).encode()) for key in ("ts", "dur", "args") if key in value}
    texts = {key: plain(value[key]) for key in ("ph", "cat", "name", "pid", "tid", "id") if key in value}
    return msgspec.structs.replace(Event(), **texts, **numbers)


def salvage_header(text: bytes) -> dict[str, Any]:
    """The header's fields that are still whole, before or after the events."""
    header: dict[str, Any] = {}
    for key in ("deviceProperties", "baseTimeNanoseconds", "record_shapes"):
        match = re.search(rb'"%s"\s*:\s*' % key.encode(), text)
        if match:
            piece = text[match.end() : match.end() + (1 << 16)].decode("utf-8", "replace")
            try:
                value, _ = json.JSONDecoder().raw_decode(piece)
                header[key] = _encodable(value)
            except (ValueError, RecursionError):
                continue
    return header
