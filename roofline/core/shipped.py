"""Profiles that come with roofline, by short names: `h100/bert-torch-infer-b32-tf32` is a file of `profiles/h100/`.

A short name is looked up among the files that lie there and is never joined to a path, so that none leads elsewhere.
"""

from __future__ import annotations

import os
from pathlib import Path

from roofline import plugins

_SUFFIX = ".json"
#: Short names that an error offers, and the share of letters that must agree (`difflib`).
_OFFERED, _ALIKE = 3, 0.75
#: Letters of a wrong name that are compared: what is longer than any short name is none of them.
_LONGEST = 200


def paths() -> dict[str, Path]:
    """Map each short name to its file, in alphabetical order. A link that leads out of the folder has no name."""
    folder = plugins.folder("roofline.profiles").resolve()
    files = [*folder.glob(f"*{_SUFFIX}"), *folder.glob(f"*/*{_SUFFIX}")]
    named = {
        file.relative_to(folder).as_posix().removesuffix(_SUFFIX): file
        for file in files
        if file.resolve().is_relative_to(folder)
    }
    return dict(sorted(named.items()))


def locate(name: str | os.PathLike[str]) -> Path | None:
    """Find the file of a profile: what is on disk under this name, else what ships under it; None for neither."""
    path = Path(name)
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return paths().get(str(path))
    except (OSError, ValueError):  # the name is too long, or has a NUL: reading it says so
        pass
    return path


def alike(name: str | os.PathLike[str]) -> list[str]:
    """Find the short names that are nearly this one, the closest first."""
    from difflib import get_close_matches  # not above: names that are right need none of it

    text = str(Path(name))
    return get_close_matches(text, paths(), _OFFERED, _ALIKE) if len(text) <= _LONGEST else []


def missing(name: str | os.PathLike[str]) -> str:
    """Say that a name is neither a file nor a profile that ships, with close short names where there are any.

    Empty for a .json that is like no short name: such a path was meant as one.
    """
    text = str(Path(name))
    if names := alike(name):
        *before, last = names
        cure = f"did you mean {', '.join(before)} or {last}?" if before else f"did you mean {last}?"
    elif text.endswith(_SUFFIX):
        return ""
    else:
        cure = "`roofline show` lists those that ship."
    return f"There is no file {text}, and no profile that ships has this name: {cure}"
