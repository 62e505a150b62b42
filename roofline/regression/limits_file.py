"""A file of limits for `roofline check`, kept beside what it judges."""

from __future__ import annotations

from pathlib import Path

from roofline.core import files, sound
from roofline.errors import InputError
from roofline.regression.limits import PARSERS, Limits, parsed, quoted

_LARGEST = 1 << 20


def read(path: Path) -> Limits:
    """The limits in a TOML, by their names in `Limits`; those that it leaves out are the usual ones.

    Raises InputError for a file that cannot be read, a name that is no limit, and a value that is none.
    """
    # Numbers stay as they are written, as those of the command line are.
    found = files.read_toml(path, _LARGEST, "a file of limits", 'write lines like time = "5%"', parse_float=str)
    for name, value in found.items():
        if name not in PARSERS:
            raise InputError(f"{path} sets {quoted(name)}, which is no limit; there are: {', '.join(PARSERS)}.")
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise InputError(f'{path}: {name} is no limit: give a percentage like "5%", or a share like 0.05.')
    given = {name: value if isinstance(value, str) else sound.told(value) for name, value in found.items()}
    return parsed(given, Limits(), f"{path}: ")
