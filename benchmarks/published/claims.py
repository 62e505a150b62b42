"""What publications say, checked with their own figures: `make claims` writes docs/claims.md.

Nothing is measured. The words of the claims lie beside this file, one TOML per publication, with the figures in them
computed by the module of the same name. A test compares the page with what this writes.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from textwrap import wrap

from claim import FIGURES, Claim, claims

from roofline import published

PAGE = Path(__file__).resolve().parents[2] / "docs" / "claims.md"
WIDTH = 120

HEAD = """\
# What published benchmarks claim

Each claim is checked with the figures that its own publication printed ([published](published.md)). Made by
`make claims`; nothing here was measured by us.

- **true**, **false**: the publication's own figures say so. A true claim may still have another reason than the text
  gives.
- **depends**: true under one reading, or in one part, and not in another.
- **open**: the figures that would decide are not published where we could read them.
- **?**: the claim, or a figure that it rests on, was not read in a source that can be cited, but is told from memory
  or in notes.

*Table* is what the figures of the publication say. *Roof* follows from them, the ceilings of the device and the
benchmark's scripts; a reason that these do not show is called unknown."""


def page() -> str:
    """The whole page, as Markdown."""
    claims_of = {name: claims(name) for name in FIGURES}
    numbers = Counter(claim.verdict for group in claims_of.values() for claim in group)
    verdicts = ", ".join(f"{numbers[verdict]} {verdict}" for verdict in ("true", "false", "depends", "open"))
    parts = [HEAD, f"Of {numbers.total()} claims: {verdicts}."]
    for name, group in claims_of.items():
        publication = published.load(name)
        parts += [f"## {name}", paragraph(f"{publication.title}; {publication.address}.")]
        parts += [section(number, claim) for number, claim in enumerate(group, 1)]
    return "\n\n".join(parts) + "\n"


def verdict(claim: Claim) -> str:
    return f"**{claim.verdict}**{' ?' if claim.unread else ''}"


def section(number: int, claim: Claim) -> str:
    """One claim with its arithmetic and what explains it."""
    mark = f"{number}. "
    below = " " * len(mark)
    return "\n".join(
        [
            *wrapped(f"{mark}{verdict(claim)}: {claim.says} ({claim.where})", below),
            *wrapped(f"{below}- *Table*: {claim.arithmetic}", f"{below}  "),
            *wrapped(f"{below}- *Roof*: {claim.why}", f"{below}  "),
        ]
    )


def paragraph(words: str) -> str:
    return "\n".join(wrapped(words))


def wrapped(words: str, below: str = "") -> Iterable[str]:
    """Lines of at most 120 letters; below: what the later ones begin with."""
    return wrap(words, WIDTH, subsequent_indent=below, break_on_hyphens=False, break_long_words=False)


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    print(f"Wrote {PAGE}", file=sys.stderr)


if __name__ == "__main__":
    main()
