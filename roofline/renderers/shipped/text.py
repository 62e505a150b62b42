"""Write plain text for a terminal: a table for each folder and device."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from roofline import units
from roofline.analysis.analysis import analyze
from roofline.content.terminal import SHEET, Page, fitted, wrapped
from roofline.content.wording import plain
from roofline.core.schema import Profile

_HEAD = ("name", "model", "mode", "batch", "precision", "backend", "ms")
#: Where there is no room, what every name says goes first, and what the name of a file may not say last.
_RANKS = (0, 5, 3, 4, 1, 2, 0)


def render(profiles: Mapping[str, Profile], page: Page = SHEET) -> str:
    """List the profiles, and how one is shown."""
    lines: list[str] = []
    for (folder, device), group in groupby(profiles.items(), key=_place):
        rows = [_row(name, profile) for name, profile in group]
        title = f"{folder} on {plain(device)}" if folder else plain(device)
        lines += [*wrapped(title, page, "bold"), *fitted([_HEAD, *rows], (0, 1, 2, 4, 5), _RANKS, page, 1), ""]
    lines += wrapped("ms: the median step. Use a name like a file: roofline show NAME, roofline plot NAME ...", page)
    return "\n".join(lines) + "\n"


def _place(named: tuple[str, Profile]) -> tuple[str, str]:
    name, profile = named
    return name.rpartition("/")[0], profile.device.name


def _row(name: str, profile: Profile) -> tuple[str, ...]:
    batch = units.UNKNOWN if profile.batch is None else str(profile.batch)
    wall = analyze(profile).wall
    words = (profile.model, profile.mode, batch, profile.precision, profile.backend)
    return (plain(name), *map(plain, words), units.UNKNOWN if wall is None else units.significant(wall * 1e3))
