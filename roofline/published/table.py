"""A published table as it is shown: every cell with what it implies, and the means of its columns."""

from __future__ import annotations

from dataclasses import dataclass

from roofline.published.implied import Implied, implied
from roofline.published.means import Mean, speedups
from roofline.published.publication import Publication


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The cells that are shown, in the publication's order, and how the columns compare in the first version."""

    publication: Publication
    cells: tuple[Implied, ...]
    means: tuple[Mean, ...]


def table(publication: Publication, everything: bool = False) -> Table:
    """Return the version of a table that is shown first, or all of them."""
    cells = (c for c in publication.cells if everything or c.version == publication.versions[0])
    return Table(
        publication=publication,
        cells=tuple(implied(publication, cell) for cell in cells),
        means=speedups(publication),
    )
