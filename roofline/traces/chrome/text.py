"""The JSON text of a trace, in bounded pieces, from a plain file, gzip, or a zip archive that holds one.

No more of a file is in memory than a piece, whatever it inflates to. Of a damaged file, what lies before the damage
is given, and the damage is reported.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from roofline.errors import InputError

Report = Callable[[str, int], None]  # what was mended or left out, and how often

_FEED, _BLOCK = 1 << 16, 1 << 20  # bytes of gzip that go in, and of text that come out, at a time
_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"
_FARTHEST = 1 << 62  # that a file can be read at
# What stands before a file in an archive: signature, flags, method, length of its name and of more fields.
_LOCAL = struct.Struct("<4s2xHH16xHH")


def pieces(source: str | Path | bytes, name: str, max_bytes: int, report: Report) -> Iterator[bytes]:
    """Yield the text in pieces of at most 1 MiB; `name` is the trace's name in errors.

    Raises InputError if the file cannot be read, is longer than `max_bytes` or inflates to more, or is an archive
    without exactly one trace.
    """
    total = 0
    try:
        with _open(source, name, max_bytes) as file:
            for piece in _inflated(file, name, report):
                total += len(piece)
                if total > max_bytes:
                    raise _too_large(name, max_bytes)
                yield piece
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror or error}; give the path of a trace.") from error


def _open(source: str | Path | bytes, name: str, max_bytes: int) -> io.BufferedReader:
    if isinstance(source, bytes):
        if len(source) > max_bytes:
            raise _too_large(name, max_bytes)
        return io.BufferedReader(io.BytesIO(source))
    path = Path(source)
    if path.stat().st_size > max_bytes:
        raise _too_large(name, max_bytes)
    return path.open("rb")


def _too_large(name: str, max_bytes: int) -> InputError:
    return InputError(
        f"{name} is larger than {max_bytes / 2**20:,.0f} MiB of JSON; record fewer steps, or without stacks."
    )


def _inflated(file: io.BufferedReader, name: str, report: Report) -> Iterator[bytes]:
    start = file.peek(len(_ZIP))[: len(_ZIP)]  # a pipe cannot be read twice
    feeds = _unzip(file, name, report) if start == _ZIP else _feeds(file)
    first = next(feeds, b"")
    feeds = chain([first], feeds)
    if not first.startswith(_GZIP):
        return feeds
    return _until_damaged(_members(feeds), "gzip", report)


def _feeds(file: BinaryIO, size: int | None = None) -> Iterator[bytes]:
    """Yield the rest of a file, or `size` bytes of it."""
    while fed := file.read(_FEED if size is None else min(_FEED, size)):
        size = None if size is None else size - len(fed)
        yield fed


def _until_damaged(stream: Iterator[bytes], compression: str, report: Report) -> Iterator[bytes]:
    try:
        yield from stream
    except EOFError:
        report(f"{compression} streams that end early, their last events missing", 1)
    except zlib.error:
        report(f"damaged blocks of {compression}, the events after them missing", 1)


class _Feeds(Iterator[bytes]):
    """Feeds, of which the last one can be given back."""

    def __init__(self, feeds: Iterator[bytes]) -> None:
        self._feeds, self._back = feeds, b""

    def __next__(self) -> bytes:
        fed, self._back = self._back, b""
        return fed or next(self._feeds)

    def give_back(self, fed: bytes) -> None:
        """Set the bytes that the next call returns."""
        self._back = fed


def _members(compressed: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the contents of gzip members in a row; zlib.error or EOFError after all before the damage."""
    feeds = _Feeds(compressed)  # and no chain of chains, which as many members as fit a file would make too deep
    while True:
        following = yield from _member(feeds, 31)
        if len(following) < len(_GZIP):
            following += next(feeds, b"")
        if not following.startswith(_GZIP):  # the end, or padding behind it
            return
        feeds.give_back(following)


def _member(feeds: Iterator[bytes], wrapping: int) -> Generator[bytes, None, bytes]:
    """Yield the contents of one stream in zlib's `wrapping`; return what follows it in the last feed."""
    member = zlib.decompressobj(wrapping)
    for feed in feeds:
        unread = feed
        while unread:
            intact = member.copy()
            try:
                yield member.decompress(unread, _BLOCK)
            except zlib.error:
                yield from _bites(intact, unread)
                raise
            if member.eof:
                return member.unused_data
            unread = member.unconsumed_tail
    while piece := member.decompress(b"", _BLOCK):  # what the last call had no room for
        yield piece
    if not member.eof:
        raise EOFError
    return b""


def _bites(member: Any, data: bytes) -> Iterator[bytes]:
    """Yield the contents before the damage in `data`: a call that fails keeps what it had, so the calls get smaller."""
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


def _unzip(file: BinaryIO, name: str, report: Report) -> Iterator[bytes]:
    """Yield the one trace of an archive; names serve to find it, and are used for nothing else."""
    try:
        with zipfile.ZipFile(file) as archive:
            member = _only(archive, name)
            offset, size, expected = member.header_offset, member.compress_size, member.CRC
            if not 0 <= offset < _FARTHEST:
                raise zipfile.BadZipFile("its only file lies outside of it")
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error):
        # The list of files stands at the end, and is lost first; the first file may still be there.
        report("zip archives that are damaged, their first file read", 1)
        offset, size, expected = 0, None, None
    file.seek(offset)
    header = file.read(_LOCAL.size)
    if len(header) < _LOCAL.size or not header.startswith(_ZIP):
        raise InputError(f"{name} is a damaged zip archive; copy it again, or give the trace that it held.")
    _, flags, method, name_length, extra_length = _LOCAL.unpack(header)
    if flags & 1 or method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InputError(f"{name} is a zip archive that is encrypted or packed in an unusual way; unpack it first.")
    file.seek(name_length + extra_length, io.SEEK_CUR)
    stream = _feeds(file, size)
    if method == zipfile.ZIP_DEFLATED:
        stream = _until_damaged(_member(stream, -15), "zip", report)
    checksum = 0
    for piece in stream:
        checksum = zlib.crc32(piece, checksum)
        yield piece
    if expected not in (None, checksum):
        report("zip archives with a wrong checksum, their events perhaps damaged", 1)


def _only(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    # Not `is_dir`, which raises of a file without a name.
    members = (info for info in archive.infolist() if not info.filename.startswith("__MACOSX/"))
    files = [info for info in members if not info.filename.endswith("/")]
    traces = [info for info in files if info.filename.lower().endswith((".json", ".json.gz"))]
    candidates = traces or files
    if len(candidates) != 1:
        raise InputError(f"{name} is a zip archive with {len(candidates)} traces; unpack it and give one trace.")
    return candidates[0]
