"""Profiles as people give them: a profile, the path of a saved one, or the short name of one that ships."""

from __future__ import annotations

from os import PathLike
from typing import TypeAlias

from roofline.core.schema import Profile, load
from roofline.errors import InputError

#: A profile, where one is saved, or the short name of one that ships.
Run: TypeAlias = "Profile | str | PathLike[str]"


def profile(given: Run) -> Profile:
    """The profile itself, loaded where it is a path. Raises InputError for anything else."""
    if isinstance(given, Profile):
        return given
    if isinstance(given, str | PathLike):
        return load(given)
    raise InputError(f"{type(given).__name__} is no run: give a roofline.Profile or the path of a saved one.")
