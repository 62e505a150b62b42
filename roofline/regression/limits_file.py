"""Read a file of limits for `roofline check`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from roofline.core import validate
from roofline.core.decoding import read_toml
from roofline.errors import InputError
from roofline.regression.limits import PARSERS, Limits, parse_limits
from roofline.units import quote

_LARGEST = 1 << 20


def read(path: Path) -> Limits:
    """Read limits from a TOML, by their names in `Limits`; those that it leaves out have their defaults.

    Raises InputError for a file that cannot be read, an unknown name, and an invalid value.
    """
    # Numbers stay as they are written, as those of the command line are.
    cure = 'write lines like time = "5%"'
    table = read_toml(path, _LARGEST, "a file of limits", cure, dict[str, Any], parse_float=str)
    for name, value in table.items():
        if name not in PARSERS:
            raise InputError(f"{path} sets {quote(name)}, which is no limit; there are: {', '.join(PARSERS)}.")
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise InputError(f'{path}: {name} is no limit: give a percentage like "5%", or a share like 0.05.')
    texts = {name: value if isinstance(value, str) else validate.reported(value) for name, value in table.items()}
    return parse_limits(texts, Limits(), f"{path}: ")
