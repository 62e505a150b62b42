"""Published benchmarks as data, the work of their steps by shape, and what their numbers imply.

`NAME.csv` holds the figures of one publication with source and status, cell by cell, as they were published, and
`NAME.toml` what surrounds them: set-up, devices, the work of a row, and notes on cells. `implied` holds a figure
against the ceilings of its device.
"""

from __future__ import annotations

from roofline import plugins
from roofline.published.publication import Publication, read


def names() -> tuple[str, ...]:
    """Return the publications, as the user types them."""
    return plugins.names(__name__, ".toml")


def load(name: str) -> Publication:
    """Read the publication called `name`. Raises InputError, naming the alternatives, for any other name."""
    return read(plugins.folder(__name__), name, names())
