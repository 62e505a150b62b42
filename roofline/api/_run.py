"""Load a run: a profile, the path of a saved one, or the short name of one that ships."""

from __future__ import annotations

from os import PathLike
from typing import TypeAlias

from roofline.core.schema import Profile, load
from roofline.errors import InputError

#: A profile, the path of a saved one, or the short name of one that ships.
Run: TypeAlias = "Profile | str | PathLike[str]"


def profile(run: Run) -> Profile:
    """Return the profile of a run, loaded where it is a path. Raises InputError for other objects."""
    if isinstance(run, Profile):
        return run
    if isinstance(run, str | PathLike):
        return load(run)
    raise InputError(f"{type(run).__name__} is no run: give a roofline.Profile or the path of a saved one.")
