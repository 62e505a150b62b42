"""Claims of a publication, their words from `NAME.toml`, filled with the figures that `NAME.py` computes.

A placeholder of a sentence names a figure and its format: `{least:.1f}`, `{share:.0%}`, `{ratio:times}` (3.03 times),
`{ratio:more}` (+203 %).
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from string import Formatter
from typing import Literal

import hf2019
import ivanov
import keras_benchmark
import msgspec
import simplechains
from msgspec.structs import replace

from roofline import published
from roofline.published.publication import Publication

#: open: the figures that would decide are not published, or nobody read them.
Verdict = Literal["true", "false", "depends", "open"]
#: By claim, its figures by name.
Figures = Mapping[str, Mapping[str, float | str]]

HERE = Path(__file__).resolve().parent
#: In the order of the page: the largest first.
FIGURES: dict[str, Callable[[Publication], Figures]] = {
    "keras-benchmark": keras_benchmark.figures,
    "hf2019": hf2019.figures,
    "simplechains": simplechains.figures,
    "ivanov": ivanov.figures,
}


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One sentence of a publication, in our words.

    where: in the publication, or how we know of it. arithmetic: what the table says of it, in words. why: what explains
    it, as far as the figures or the set-up show it, and what is not known. unread: whether a figure or the sentence
    itself was not read in a source that can be cited. figures: those of the words, by name; ratios, counts, and times
    in the unit of their name.
    """

    id: str
    says: str
    where: str
    arithmetic: str
    verdict: Verdict
    why: str
    unread: bool = False
    figures: dict[str, float | str] = {}


class _Number(float):
    """A figure that also formats as `times` and `more`, and puts a space in front of a percent sign."""

    def __format__(self, form: str) -> str:
        if form == "times":
            return f"{self:.2f} times" if self < 10 else f"{self:.1f} times"
        if form == "more":
            return f"{_Number(self - 1):+.0%}"
        return super().__format__(form).replace("%", " %").replace("-", "−")


def claims(name: str) -> tuple[Claim, ...]:
    """Read the claims of the publication called `name`, in the order of its text, and fill in their figures.

    Raises KeyError for a placeholder without a figure, and ValueError for figures of a claim that is not there.
    """
    figures = FIGURES[name](published.load(name))
    if unused := set(figures) - {claim.id for claim in unfilled(name)}:
        raise ValueError(f"{name} has figures of no claim: {', '.join(sorted(unused))}")
    return tuple(_filled(claim, figures.get(claim.id, {})) for claim in unfilled(name))


def unfilled(name: str) -> tuple[Claim, ...]:
    """Read the words of a publication's claims, with their placeholders."""
    text = (HERE / f"{name.replace('-', '_')}.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text)["claim"], tuple[Claim, ...])


def placeholders(words: str) -> set[str]:
    """Name the figures that a sentence shows."""
    return {name for _, name, _, _ in Formatter().parse(words) if name}


def _filled(claim: Claim, figures: Mapping[str, float | str]) -> Claim:
    numbers = {name: figure if isinstance(figure, str) else _Number(figure) for name, figure in figures.items()}
    arithmetic, why = (words.format_map(numbers) for words in (claim.arithmetic, claim.why))
    return replace(claim, arithmetic=arithmetic, why=why, figures=dict(figures))
