"""Write runs as a page for a browser: `roofline.report`."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path

from roofline.api._run import Run, profile
from roofline.core.files import write_atomically
from roofline.renderers import report as pages
from roofline.sweeping import folder, grid


class Page(str):
    """Hold a page for a browser as text, which a notebook shows by its size and not by its letters."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<a page for a browser, {len(self.encode()) / 1e3:.0f} kB: write it to a file and open that>"


def report(*runs: Run, output: str | PathLike[str] | None = None, allow: bool = False) -> Page:
    """Make a page about one or more runs: verdict, tables, roofline, timeline, and why they differ.

    runs: profiles, or paths of saved ones; two are compared as A - B, more with the fastest; or the folder of a sweep,
    of which the page has the map. output: the path of the
    page, which replaces an existing file; None: no file. allow: explain the difference of runs that do not do the same
    work.

    Returns the page, the text of one HTML file that needs no network. Raises InputError for no runs.

    >>> page = roofline.report("torch.json", "jax.json", output="why.html")
    """
    if len(runs) == 1 and isinstance(runs[0], str | PathLike) and folder.is_folder(Path(runs[0])):
        page = Page(pages.report_sweep(grid.read(Path(runs[0]))))
    else:
        page = Page(pages.report([profile(run) for run in runs], allow=allow))
    if output is not None:
        write_atomically(Path(fspath(output)), page.encode())
    return page
