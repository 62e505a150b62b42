"""Load profiles from files and standard input, and check output paths before anything is measured or drawn."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from roofline.core import shipped
from roofline.core.files import TakenError, is_same_file
from roofline.errors import InputError

if TYPE_CHECKING:
    from roofline.core.schema import Profile

#: The path that means standard input.
STDIN = Path("-")


def load(path: str | Path) -> Profile:
    """Load a profile from a file, by the short name of one that ships, or from standard input.

    Raises InputError where it cannot be read.
    """
    from roofline.core import schema

    if Path(path) != STDIN:
        return schema.load(path)
    from roofline.core.files import read_standard_input

    return schema.decode(read_standard_input(schema.MAX_BYTES, "a profile"), "Standard input")


def path_name(path: Path) -> str:
    """Name a profile's path in a sentence."""
    from roofline.units import printable

    return "standard input" if path == STDIN else printable(path)


def check_once(paths: Sequence[Path]) -> None:
    """Refuse standard input for two profiles: it can be read once."""
    if paths.count(STDIN) > 1:
        raise InputError("Standard input can be read only once: give - for one profile and files for the others.")


def check_output(
    path: str | Path, force: bool, suffixes: Sequence[str] = (), inputs: Sequence[str | Path | None] = ()
) -> Path:
    """Check that a file can be written to `path`, and return it. Raises InputError with the cure.

    force: an existing file may be replaced. suffixes: allowed endings of the name; empty: any. inputs: the files that
    the command reads, which it may not replace under any name; None is skipped.
    """
    file = Path(path)
    for source in inputs:
        if source is not None and is_same_file(file, shipped.locate(source) or Path(source)):
            raise InputError(f"Cannot write {file}: it is also the input, {source}; choose another name with -o.")
    if suffixes and file.suffix not in suffixes:
        raise InputError(f"Cannot write {file}: the name must end in {' or '.join(suffixes)}.")
    if not file.parent.is_dir():
        raise InputError(
            f"Cannot write {file}: there is no folder {file.parent}; make it, or choose another place with -o."
        )
    if file.is_dir():
        raise InputError(f"Cannot write {file}: it is a folder; give the name of a file in it.")
    if os.path.lexists(file) and not force:  # a link to nothing would be replaced as well
        raise TakenError(file)
    return file


def save_measured(profile: Profile, output: Path | None, force: bool) -> Path:
    """Save a profile and return its path, of which `check_output` was asked before; None: one of its own name.

    It took time to measure: where somebody else wrote such a file meanwhile, this takes another name, and says so.
    """
    from roofline.cli.options.words import say
    from roofline.core.schema import save
    from roofline.measuring.session import default_name
    from roofline.units import printable

    path, number = output or default_name(profile, Path.cwd()), 1
    while True:
        try:
            save(profile, path, replace=force and output is not None)
        except TakenError:
            if output is None:
                path = default_name(profile, Path.cwd())
            else:
                number += 1
                path = output.with_stem(f"{output.stem}-{number}")
            continue
        if number > 1:
            say(f"Not replaced, as it appeared meanwhile: {printable(output)}")
        return path


def check_writable(folder: Path) -> None:
    """Check that a folder takes files, before anything is measured. Leaves nothing in it. Raises InputError."""
    import tempfile

    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"Cannot write in {folder}: {error.strerror}; choose another place with -o.") from None
