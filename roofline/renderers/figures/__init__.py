"""Draw the figures of `roofline plot`: one file per kind, for one (3.3 in) or two (7 in) columns of a paper.

A kind is a module with `figure(items, width) -> (Figure, Caption)`; the command line finds it by its name. A kind that
draws profiles without times, too, has a constant WITHOUT_TIMES: what it draws of them, in words ("" for nothing worth
a hint). One whose rows may be sums by any key has a constant BY, the keys, and takes one as `by`. One that draws the
folder of a sweep instead of profiles has a constant OF_FOLDERS.
matplotlib is imported when something is drawn, so that help stays light.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from roofline import plugins
from roofline.errors import InputError
from roofline.renderers.figures._written import SUFFIXES as SUFFIXES
from roofline.renderers.figures._written import Caption, write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from roofline.analysis.analysis import WorkAnalysis
    from roofline.core.device import Device
    from roofline.projection.project import WhatIf
    from roofline.published.publication import Publication
    from roofline.sweeping.grid import Grid

#: What a figure is drawn of: analyses; devices, of the kind that compares them; or a sweep.
Item: TypeAlias = "WorkAnalysis | Device | Grid"
#: One column of a two-column paper [in].
WIDTH = 3.3


def draw(
    kind: str,
    items: Sequence[Item],
    path: Path,
    width: float = WIDTH,
    long_caption: bool = False,
    by: str | None = None,
    *,
    replace: bool = True,
) -> str:
    """Draw a figure of `width` [in]. Returns its caption, which is in the file too.

    Analyses are drawn in the order given; `devices` takes bare devices too. long_caption: with versions, number of
    steps and spread of every run. by: what the rows of a kind are that has some. replace: an existing file. Raises
    InputError for an unknown kind, suffix or key, and where the kind has nothing to draw.
    """
    _check_suffix(path)
    from roofline.core.files import write_atomically

    data, caption = render(kind, items, path.suffix, width, long_caption, by)
    write_atomically(path, data, replace=replace)
    return caption


def _check_suffix(path: Path) -> None:
    if path.suffix not in SUFFIXES:
        raise InputError(f"Cannot draw {path.name}: a figure's name ends in {', '.join(SUFFIXES)}.")


def render(
    kind: str,
    items: Sequence[Item],
    suffix: str,
    width: float = WIDTH,
    long_caption: bool = False,
    by: str | None = None,
) -> tuple[bytes, str]:
    """Return the bytes of a figure of `width` [in] in the format of a suffix (`SUFFIXES`), and its caption."""
    from roofline.renderers.figures import _style

    with _style.applied():
        figure, caption = build(kind, items, width, by)
        caption_text = caption.text(long_caption)
        return write(figure, suffix, caption.title, caption_text), caption_text


def render_projection(whatif: WhatIf, suffix: str, width: float = WIDTH) -> tuple[bytes, str]:
    """Return the bytes of the figure of a step that was projected, of `width` [in], and its caption."""
    from roofline.renderers.figures import _projection, _style

    with _style.applied():
        figure, caption = _projection.figure(whatif, width)
        return write(figure, suffix, caption.title, caption.text(long=False)), caption.text(long=False)


def build(kind: str, items: Sequence[Item], width: float = WIDTH, by: str | None = None) -> tuple[Figure, Caption]:
    """Draw the figure and write its caption. Call it, and save the figure, under `_style.applied()`.

    Raises InputError where there is nothing to draw, as of a profile without times for a kind that needs them.
    """
    if not items:
        raise InputError("There is nothing to draw: give at least one profile.")
    module = plugins.load(__name__, kind, "kind of figure")
    _check_folders(kind, hasattr(module, "OF_FOLDERS"), items)
    if not hasattr(module, "WITHOUT_TIMES") and not hasattr(module, "OF_FOLDERS"):
        _check_timed(kind, items)
    figure, caption = module.figure(items, width) if by is None else _keyed(kind, module, by).figure(items, width, by)
    return figure, caption


def _keyed(kind: str, module: Any, by: str) -> Any:
    """Return the module of a kind that has rows by a key; InputError where it has none."""
    keys = getattr(module, "BY", ())
    if not keys:
        kinds = [
            name for name in plugins.names(__name__) if hasattr(plugins.load(__name__, name, "kind of figure"), "BY")
        ]
        raise InputError(f"--kind {kind} has no rows by {by}: leave --by out, or draw --kind {' or '.join(kinds)}.")
    if by not in keys:
        raise InputError(f"There is no {kind} by {by!r}; there are: {', '.join(keys)}.")
    return module


def _check_folders(kind: str, takes_folders: bool, items: Sequence[Item]) -> None:
    """Refuse a profile where a kind draws the folder of a sweep, and the folder where it draws profiles."""
    from roofline.sweeping.grid import Grid

    if not all(isinstance(item, Grid) is takes_folders for item in items):
        if takes_folders:
            raise InputError(f"--kind {kind} draws the folder of a sweep: give the DIR of `roofline sweep -o DIR`.")
        raise InputError(f"--kind {kind} draws profiles, and a folder of a sweep is given: draw --kind sweep.")


def _check_timed(kind: str, items: Sequence[Item]) -> None:
    """Refuse a profile without times, and say which kinds draw it."""
    from roofline.analysis.analysis import Analysis, WorkAnalysis, why_untimed
    from roofline.content import wording

    for number, item in enumerate(items, 1):
        if isinstance(item, WorkAnalysis) and not isinstance(item, Analysis):
            drawn = {name: plugins.constants(__name__, name).get("WITHOUT_TIMES") for name in plugins.names(__name__)}
            kinds = " or ".join(f"--kind {name} ({words})" for name, words in drawn.items() if words)
            profile = f"Profile {number}, {wording.plain(item.profile.backend, 60)},"
            raise InputError(f"{profile} {why_untimed(item.profile)}, or draw {kinds} instead of --kind {kind}.")


def draw_published(publication: Publication, path: Path, width: float = WIDTH, *, replace: bool = True) -> str:
    """Draw the table of a publication: how many times as fast as one of its columns the others are, row by row.

    replace: an existing file. Returns its caption, which is in the file too. Raises InputError for an unknown suffix,
    and of a publication without pictures.
    """
    _check_suffix(path)
    from roofline.core.files import write_atomically
    from roofline.renderers.figures import _published, _style

    with _style.applied():
        figure, caption = _published.figure(publication, width)
        write_atomically(path, write(figure, path.suffix, caption.title, caption.text(long=False)), replace=replace)
    return caption.text(long=False)
