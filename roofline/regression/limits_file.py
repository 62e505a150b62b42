"""A file of limits for `roofline check`, kept beside what it judges."""

from __future__ import annotations

import tomllib
from pathlib import Path

from roofline.core import files
from roofline.errors import InputError
from roofline.regression.limits import PARSERS, Limits, parsed, quoted

_LARGEST = 1 << 20


def read(path: Path) -> Limits:
    """The limits in a TOML, by their names in `Limits`; those that it leaves out are the usual ones.

    Raises InputError for a file that cannot be read, a name that is no limit, and a value that is none.
    """
    try:
        # Numbers stay as they are written, as those of the command line are.
        found = tomllib.loads(files.read(path, _LARGEST, "a file of limits").decode("utf-8"), parse_float=str)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f'{path} cannot be read as TOML ({error}): write lines like time = "5%".') from None
    for name, value in found.items():
        if name not in PARSERS:
            raise InputError(f"{path} sets {quoted(name)}, which is no limit; there are: {', '.join(PARSERS)}.")
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise InputError(f'{path}: {name} is no limit: give a percentage like "5%", or a share like 0.05.')
    return parsed({name: str(value) for name, value in found.items()}, Limits(), f"{path}: ")
