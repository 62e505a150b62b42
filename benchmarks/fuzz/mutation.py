"""Change inputs and keep their syntax: trees of JSON, TOML and MessagePack, fields of protobuf, cells of tables.

Bytes changed at random seldom pass a parser. What is changed here does, and reaches the code behind it.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

#: Numbers at the edges of what floats, 64 bits and `core/validate.py` hold; "9" * 400 is an integer that no float is.
NUMBERS = (
    *(0, 1, -1, 2, 3, 7, 0.0, -0.0, 0.5, 1.5, 1e-9, 5e-324, 1e-31, 1e-30, 1e29, 1e30, 1e31, 1e300, 1.7e308, -1e300),
    *(2**31, 2**53, 2**53 + 1, 2**62, 2**63 - 1, 2**63, -(2**63), 2**64 - 1, 2**64, int("9" * 400)),
    *(float("nan"), float("inf"), -float("inf")),
)
WHOLE = tuple(number for number in NUMBERS if type(number) is int)
#: Texts that act on a terminal, a table, a page, a path or a number's reader, and halves of characters.
TEXTS = (
    *("", " ", "x", "\x00", "\x1b[31mred\x1b[0m", "\u202e\u2028\x85", "two\nlines\r\n", "漢字 🙂", "\ud800"),
    *("<script>alert(1)</script>", "]]>", "&amp;", "a|b`c`[d](http://e)", r"\input{x} $x_1$ 50% & #1 {~^}", "=cmd()"),
    *('"quoted", comma', "::error::x%0A", "../../etc/passwd", "/", ".", "nan", "1e999", "-1", "{}", "[", "²"),
    *("2026-01-01", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59", "cpu", "cuda", "fp32", "matrix.fp32"),
    *("(" * 200, "9" * 5000, "a" * 3000),
)
#: Nodes of a tree that changes grows no further.
_MOST = 4000

Tree = Any


def odd(draw: Random) -> Tree:
    """Draw a leaf, or a small tree, of any kind."""
    return draw.choice(
        (None, True, False, [], {}, draw.choice(NUMBERS), draw.choice(TEXTS), [draw.choice(NUMBERS)], {"": None})
    )


def alike(leaf: Tree, draw: Random) -> Tree:
    """Draw a leaf of the same kind."""
    if isinstance(leaf, bool):
        return not leaf
    if isinstance(leaf, int):
        return draw.choice(
            (leaf + 1, leaf - 1, -leaf, leaf * 2, *(number for number in NUMBERS if type(number) is int))
        )
    if isinstance(leaf, float):
        return draw.choice((-leaf, leaf * 1e-3, leaf * 1e3, 0.0, 1e-30, 1e29, 1e-9, 1e6, *NUMBERS))
    if isinstance(leaf, str):
        place = draw.randint(0, len(leaf))
        new = draw.choice(TEXTS)
        return draw.choice((new, leaf[:place] + new + leaf[place:], leaf[:place], leaf * 2))
    return odd(draw)


def places(tree: Tree) -> list[tuple[Any, Any]]:
    """List all places of a tree, each as its container and the key in it."""
    found: list[tuple[Any, Any]] = []
    stack = [tree]
    while stack:
        node = stack.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        for key in keys:
            found.append((node, key))
            if isinstance(node[key], dict | list):
                stack.append(node[key])
    return found


def change(tree: Tree, draw: Random) -> Tree:
    """Change a tree in one to four places."""
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        every = places(tree)
        if not every or len(every) > _MOST:
            return odd(draw)
        node, key = draw.choice(every)
        at = node[key]
        match draw.randint(0, 9):
            case 0:
                del node[key]
            case 1:
                other, name = draw.choice(every)
                if name in other if isinstance(other, dict) else name < len(other):
                    node[key] = json.loads(json.dumps(other[name]))
            case 2:
                node[key] = odd(draw)
            case 3 if isinstance(at, list) and at:
                at.insert(draw.randint(0, len(at)), json.loads(json.dumps(draw.choice(at))))
            case 4 if isinstance(at, list | dict):
                at.clear()
            case 5 if isinstance(node, dict):
                node[draw.choice((draw.choice(TEXTS), *map(str, node)))] = node.pop(key)
            case _:
                node[key] = alike(at, draw) if not isinstance(at, dict | list) else at
    return tree


def of_json(data: bytes, draw: Random) -> bytes | None:
    """Change a JSON document."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return json.dumps(change([tree], draw), separators=(",", ":"))[1:-1].encode()


def of_json_lines(data: bytes, draw: Random) -> bytes | None:
    """Change one line of JSON, or the lines as a whole."""
    return _of_lines(data, draw, of_json)


def of_csv(data: bytes, draw: Random) -> bytes | None:
    """Change one cell of a table in quotation marks or without, or its lines as a whole."""
    return _of_lines(data, draw, _of_row)


def _of_row(line: bytes, draw: Random) -> bytes:
    cells = re.findall(rb'"[^"]*"|[^,]+|(?<=,)(?=,)', line) or [b""]
    number = draw.randrange(len(cells))
    text = cells[number].strip(b'"').decode("utf-8", "replace")
    text = str(alike(text, draw) if draw.random() < 0.5 else odd(draw))
    if draw.random() < 0.1:
        del cells[number]
    else:
        cells[number] = b'"' + text.encode("utf-8", "replace").replace(b'"', b'""') + b'"'
    return b",".join(cells)


def _of_lines(data: bytes, draw: Random, mutate: Callable[[bytes, Random], bytes | None]) -> bytes | None:
    lines = data.split(b"\n")
    number = draw.randrange(len(lines))
    match draw.randint(0, 9):
        case 0:
            del lines[number]
        case 1:
            lines.insert(draw.randint(0, len(lines)), lines[number])
        case 2:
            lines[number] = lines[number][: draw.randint(0, len(lines[number]))]
        case _:
            lines[number] = mutate(lines[number], draw) or lines[number]
    return b"\n".join(lines)


def of_toml(data: bytes, draw: Random) -> bytes | None:
    """Change a TOML document; it is written with inline tables."""
    try:
        tree = tomllib.loads(data.decode())
    except (ValueError, RecursionError):
        return None
    changed = change(json.loads(json.dumps(tree, default=str)), draw)
    if not isinstance(changed, dict):
        return None
    return "".join(f"{_toml(key)} = {_toml(leaf)}\n" for key, leaf in changed.items()).encode("utf-8", "replace")


def _toml(tree: Tree) -> str:
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{_toml(str(key))} = {_toml(leaf)}" for key, leaf in tree.items()) + "}"
    if isinstance(tree, list):
        return "[" + ", ".join(map(_toml, tree)) + "]"
    if isinstance(tree, float):
        return repr(tree)
    return '""' if tree is None else json.dumps(tree).replace("\\ud800", "?")


def of_msgpack(data: bytes, draw: Random) -> bytes | None:
    """Change a MessagePack document."""
    try:
        tree = msgspec.msgpack.decode(data)
        return msgspec.msgpack.encode(change([tree], draw)[0])
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError, LookupError):
        return None


_TOKEN = re.compile(rb"[A-Za-z_][A-Za-z_0-9]*|[0-9.]+|[^\sA-Za-z_0-9]+")
_OPERATORS = tuple(b"+ - * ** // % << >> | & < >= if ( ) 0 1.5".split())


def of_source(data: bytes, draw: Random) -> bytes | None:
    """Change one token of a program for another one of it, an operator or a number."""
    tokens = list(_TOKEN.finditer(data))
    if not tokens:
        return None
    token = draw.choice(tokens)
    number = str(draw.choice(NUMBERS)).encode()
    new = draw.choice((draw.choice(tokens)[0], draw.choice(_OPERATORS), number, b"", token[0] + b" " + token[0]))
    return data[: token.start()] + new + data[token.end() :]


# ------------------------------------------------------------------------------------------------- protobuf

_VARINTS = (0, 1, 2, 3, 5, 63, 127, 2**31, 2**32, 2**53, 10**17, 10**18, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
Field = tuple[int, int, "int | bytes"]


def of_protobuf(data: bytes, draw: Random) -> bytes | None:
    """Change one field of an encoded message, or of one inside it, whatever its definition."""
    fields = _fields(data)
    return None if fields is None else _encoded(_changed_fields(fields, draw))


def _changed_fields(fields: list[Field], draw: Random) -> list[Field]:
    if not fields:
        return [(draw.randint(1, 20), 0, draw.choice(_VARINTS))]
    place = draw.randrange(len(fields))
    number, kind, payload = fields[place]
    inner = _fields(payload) if isinstance(payload, bytes) and payload else None
    if inner and draw.random() < 0.85:
        fields[place] = number, kind, _encoded(_changed_fields(inner, draw))
        return fields
    match draw.randint(0, 7):
        case 0:
            del fields[place]
        case 1:
            fields.insert(draw.randint(0, len(fields)), fields[place])
        case 2:
            fields[place] = draw.choice(fields)[0], kind, payload
        case 3:
            fields[place] = number, kind, draw.choice(fields)[2] if kind == 2 else payload
            if not isinstance(fields[place][2], bytes):
                fields[place] = number, 0, fields[place][2]
        case _ if isinstance(payload, int):
            near = payload + 1, max(0, payload - 1), payload * 2
            fields[place] = number, kind, draw.choice((draw.choice(_VARINTS), *near))
        case _:
            text = str(alike(payload.decode("utf-8", "replace"), draw)) if isinstance(payload, bytes) else ""
            fields[place] = number, kind, text.encode("utf-8", "replace") if kind == 2 else payload[::-1]
    return fields


def _fields(data: bytes) -> list[Field] | None:
    """Split a message into (number, wire type, payload); None where it is none."""
    fields: list[Field] = []
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        number, kind = tag >> 3, tag & 7
        if place < 0 or not number or number > 1 << 20:
            return None
        payload: int | bytes
        if kind == 0:
            payload, place = _varint(data, place)
            if place < 0:
                return None
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            payload, place = data[place : place + size], place + size
        elif kind == 2:
            size, place = _varint(data, place)
            payload, place = data[place : place + size], place + size if place >= 0 else -1
        else:
            return None
        if place < 0 or place > len(data):
            return None
        fields.append((number, kind, payload))
    return fields


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """Read a number; the place behind it, -1 where the data end before."""
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            break
        value |= (data[place] & 127) << shift
        place += 1
        if data[place - 1] < 128:
            return value & (2**64 - 1), place
    return 0, -1


def _encoded(fields: list[Field]) -> bytes:
    parts = bytearray()
    for number, kind, payload in fields:
        parts += _as_varint(number << 3 | kind)
        if isinstance(payload, int):
            parts += _as_varint(payload & (2**64 - 1))
        else:
            parts += (_as_varint(len(payload)) if kind == 2 else b"") + payload
    return bytes(parts)


def _as_varint(value: int) -> bytes:
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)
