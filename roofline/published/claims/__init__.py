"""What the publications say, checked with their own tables: one file per publication, `claims(publication)`.

Whoever adds a claim gives its arithmetic from the table and what explains it as far as the figures show that; what they
do not show is said to be unknown.
"""

from __future__ import annotations

from roofline import plugins, published
from roofline.published.claims._claim import Claim


def claims(name: str) -> tuple[Claim, ...]:
    """The claims of the publication called `name`, in the order of its text."""
    found: tuple[Claim, ...] = plugins.load(__name__, name, "publication").claims(published.load(name))
    return found
