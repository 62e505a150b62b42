"""What a run's program is, for advice that can be followed there: what it is written with, whose file it is."""

from __future__ import annotations

from collections.abc import Mapping

from roofline.core.framework import written_in
from roofline.core.schema import Profile


def in_words_of(profile: Profile, words: Mapping[str, str], otherwise: str) -> str:
    """What to write there: by the library or framework that the program is written with; else what holds anywhere."""
    return words.get(written_in(profile), otherwise)


def takes_options(profile: Profile) -> bool:
    """Whether `roofline profile` measured one of its own models: these, and no trace, take --precision and the like."""
    return profile.imported is None and not profile.own_step and profile.size != "-"
