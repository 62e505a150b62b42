"""Files read and written whole: a read has an end whatever the file is, and a write leaves a whole file or none."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from roofline.errors import InputError

#: Where Linux has the files that a process has open.
_OPEN = "/proc/self/fd"
#: What is read at a time where nobody knows how much there is [byte].
_PIECE = 1 << 20


class _Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


def user_cache(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of the user's caches: $ROOFLINE_CACHE, else $XDG_CACHE_HOME/roofline or ~/.cache/roofline.

    A user without a home, as a container's that is only a number, has "/" for one, where hardly anybody may write.
    """
    if chosen := environment.get("ROOFLINE_CACHE"):
        return Path(chosen)
    if base := environment.get("XDG_CACHE_HOME"):
        return Path(base) / "roofline"
    home = os.path.expanduser("~")  # unchanged where there is none, which Path.home() raises for
    return Path("/" if home == "~" else home) / ".cache" / "roofline"


def read_at_most(stream: _Stream, limit: int, expected: int) -> bytes:
    """Read so many bytes at most, in one piece where there are as many as expected, or fewer.

    `stream.read(limit)` would reserve memory for that many, however few there are.
    """
    pieces = []
    piece = stream.read(min(limit, expected + 1))
    while piece:
        pieces.append(piece)
        limit -= len(piece)
        piece = stream.read(min(limit, _PIECE))
    return b"".join(pieces)


def read(file: Path, limit: int, kind: str) -> bytes:
    """Read a file of at most `limit` bytes; kind: what it is to be, as "a profile".

    A pipe, a device or a file of /proc says no size before it is read, so that bytes are counted as they come. Raises
    InputError where it cannot be read or is larger.
    """
    try:
        with file.open("rb") as stream:
            data = read_at_most(stream, limit + 1, os.fstat(stream.fileno()).st_size)
    except OSError as error:
        raise InputError(f"Cannot read {file}: {error.strerror}; give the path of {kind}.") from None
    except ValueError as error:  # a name with a NUL in it
        raise InputError(f"Cannot read {str(file)!r}: {error}; give the path of {kind}.") from None
    if len(data) > limit:
        raise InputError(f"{file} is larger than {limit >> 20} MiB, so it is not {kind}; give the path of one.")
    return data


def read_standard_input(limit: int, kind: str) -> bytes:
    """Read standard input of at most `limit` bytes; kind: what it is to be, as "a profile".

    Raises InputError where there is none, where it is a terminal, whose reader would wait, or where it is larger.
    """
    stream = sys.stdin
    if stream is None or stream.closed:
        raise InputError(f"There is no standard input to read {kind} from: name a file.")
    if stream.isatty():
        raise InputError(f"Standard input is a terminal: pipe {kind} into it, or name a file.")
    data = read_at_most(stream.buffer, limit + 1, _PIECE)
    if len(data) > limit:
        raise InputError(f"Standard input has more than {limit >> 20} MiB, so it is not {kind}; pipe one into it.")
    return data


def is_same_file(first: Path, second: Path) -> bool:
    """Return whether two paths are one file, through links and other spellings, also where there is none yet.

    "-" is what standard input reads.
    """
    with suppress(OSError, ValueError, AttributeError):
        mine, theirs = (os.fstat(sys.stdin.fileno()) if str(path) == "-" else path.stat() for path in (first, second))
        return os.path.samestat(mine, theirs)
    return os.path.realpath(first) == os.path.realpath(second)


class TakenError(InputError):
    """A file that is there already, and is not to be replaced."""

    def __init__(self, file: Path) -> None:
        super().__init__(f"{file} exists; add --force to replace it, or choose another name.")


def write_atomically(file: Path, data: bytes, *, replace: bool = True) -> None:
    """Write beside `file` and move into place, so that no reader and no crash ever sees half a file.

    replace: an existing file may be replaced; else TakenError is raised, also where it appears at that moment.
    """
    write_together({file: data}, replace=replace)


def _nameless(folder: Path, mode: int) -> int | None:
    """Open a new file in a folder that has no name, so that nothing is left of it if the process is killed.

    None where the system has no such files, or no way to name them.
    """
    if hasattr(os, "O_TMPFILE") and os.path.isdir(_OPEN):
        with suppress(OSError):
            return os.open(folder, os.O_TMPFILE | os.O_WRONLY, mode)
    return None


def _move_to_new(temporary: str, file: Path) -> None:
    """Give a file its name, which must not exist: asking before would not see another process. Raises TakenError.

    Where the file system has no links, an empty file holds the name for a moment: a reader may see it, and a process
    that is killed then leaves it.
    """
    try:
        os.link(temporary, file)
    except FileExistsError:
        raise TakenError(file) from None
    except OSError:  # a file system without links: take the name first
        try:
            os.close(os.open(file, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            raise TakenError(file) from None
        try:
            os.replace(temporary, file)
        except BaseException:
            os.unlink(file)
            raise
    else:
        os.unlink(temporary)


def write_together(contents: Mapping[Path, bytes], *, replace: bool = True) -> None:
    """Write files that belong together: all of them, or, where one cannot be written, none. replace: see above."""
    written: dict[Path, str] = {}
    moved: list[Path] = []
    file = next(iter(contents))
    umask = os.umask(0)
    os.umask(umask)
    try:
        for file, data in contents.items():
            handle = _nameless(file.parent, 0o666 & ~umask)
            if handle is None:
                # Not named after the file: its name may be as long as a name can be.
                handle, written[file] = tempfile.mkstemp(dir=file.parent, prefix=".roofline-")
                os.chmod(written[file], 0o666 & ~umask)
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
                stream.flush()
                if file not in written:
                    name = str(file.parent / f".roofline-{secrets.token_hex(8)}")
                    # What is open is a link there, and only followed where a folder is given besides (linkat).
                    os.link(f"{_OPEN}/{handle}", name, src_dir_fd=handle)
                    written[file] = name
        for file, temporary in written.items():
            if replace:
                os.replace(temporary, file)
            else:
                _move_to_new(temporary, file)
                moved.append(file)
    except BaseException as error:
        for path in (*map(Path, written.values()), *moved):
            path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise InputError(f"Cannot write {file}: {error.strerror}; choose another place.") from None
        raise
