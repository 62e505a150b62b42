"""`roofline.report`: runs as a page for a browser."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path

from roofline.api._given import Run, profile
from roofline.core.files import write_atomically
from roofline.renderers import report as pages


def report(*runs: Run, output: str | PathLike[str] | None = None, allow: bool = False) -> str:
    """Make a page about one or more runs: verdict, tables, roofline, timeline, and why they differ.

    runs: profiles, or paths of saved ones; two are compared as A - B, more with the fastest. output: where the page is
    written, over what is there; None: nowhere. allow: explain the difference of runs that do not do the same work.

    Returns the page, one HTML file that needs no network. Raises InputError for no runs.

    >>> page = roofline.report("torch.json", "jax.json", output="why.html")
    """
    page = pages.report([profile(run) for run in runs], allow=allow)
    if output is not None:
        write_atomically(Path(fspath(output)), page.encode())
    return page
