"""Decode JSON and TOML from elsewhere: whatever is wrong with them is one error."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from roofline.core import files
from roofline.errors import InputError

T = TypeVar("T")


class UndecodableError(ValueError):
    """Report data that are not of their format or of the type asked for; the text says why."""


@contextmanager
def undecodable() -> Iterator[None]:
    """Raise UndecodableError for whatever msgspec and tomllib raise while the context is active.

    That is damage, another type, bytes that are not UTF-8, values nested deeper than Python's stack, and numbers of
    more digits than Python or a float64 holds.
    """
    try:
        yield
    # SystemError: what msgspec before 0.22 makes of an integer that no float64 holds.
    except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError, SystemError) as error:
        raise UndecodableError(str(error)) from None


def from_json(data: bytes | str, kind: type[T]) -> T:
    """Decode JSON as a value of a type. Raises UndecodableError."""
    with undecodable():
        return msgspec.json.decode(data, type=kind)


def from_toml(data: bytes, kind: type[T], parse_float: Callable[[str], Any] = float) -> T:
    """Decode TOML as a value of a type. Raises UndecodableError."""
    with undecodable():
        return msgspec.convert(tomllib.loads(data.decode("utf-8"), parse_float=parse_float), kind)


def read_toml(
    file: Path, limit: int, description: str, cure: str, kind: type[T], parse_float: Callable[[str], Any] = float
) -> T:
    """Read a TOML of at most `limit` bytes as a value of a type. Raises InputError where it is none.

    description: of the file, as "a device file"; cure: the end of the error's sentence.
    """
    try:
        return from_toml(files.read(file, limit, description), kind, parse_float)
    except UndecodableError as error:
        raise InputError(f"{file} is not {description} ({error}); {cure}.") from None
