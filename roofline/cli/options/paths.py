"""Output paths, checked before anything is measured or drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from roofline.core.files import same
from roofline.errors import InputError


def check_output(
    path: str | Path, force: bool, suffixes: Sequence[str] = (), inputs: Sequence[str | Path | None] = ()
) -> Path:
    """`path` if a file can be written there; InputError with the cure otherwise.

    force: whether a file that exists may be replaced. suffixes: what the name must end in; none: anything. inputs: what
    the command reads, none of which it may replace, whatever it is called; None is skipped.
    """
    file = Path(path)
    for given in inputs:
        if given is not None and same(file, Path(given)):
            raise InputError(f"Cannot write {file}: it is what is read, {given}; choose another name with -o.")
    if suffixes and file.suffix not in suffixes:
        raise InputError(f"Cannot write {file}: the name must end in {' or '.join(suffixes)}.")
    if not file.parent.is_dir():
        raise InputError(f"Cannot write {file}: there is no folder {file.parent}.")
    if file.is_dir():
        raise InputError(f"Cannot write {file}: it is a folder; give the name of a file in it.")
    if file.exists() and not force:
        raise InputError(f"{file} exists; add --force to replace it, or choose another name.")
    return file


def check_writable(folder: Path) -> None:
    """Refuse a folder that takes no file before anything is measured. Nothing is left in it."""
    import tempfile

    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"Cannot write in {folder}: {error.strerror}; choose another place with -o.") from None
