"""A claim, what its publication's table says of it, and the words that both are told in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from roofline.published.implied import Implied

#: open: the figures that would decide are not published, or nobody read them.
Verdict = Literal["true", "false", "depends", "open"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One sentence of a publication, in our words.

    where: in the publication, or how we know of it. figures: what the verdict rests on, by name; ratios and counts.
    arithmetic: the same in words. why: what explains it, as far as the figures or the set-up show it, and what is not
    known. unread: whether a figure or the sentence itself was not read in a source that can be cited.
    """

    says: str
    where: str
    arithmetic: str
    verdict: Verdict
    why: str
    figures: Mapping[str, float] = field(default_factory=dict)
    unread: bool = False


def times(ratio: float) -> str:
    """A ratio of times: "3.89 times"."""
    return f"{ratio:.2f} times" if ratio < 10 else f"{ratio:.1f} times"


def more(ratio: float) -> str:
    """How much higher a throughput is, from the ratio of the times: 4.94 is "+394 %"."""
    return f"{100 * (ratio - 1):+.0f} %".replace("-", "−")


def span(ratios: Iterable[float]) -> str:
    """The least and the largest of some ratios: "4.8 to 9.1"."""
    ordered = sorted(ratios)
    return f"{ordered[0]:.1f} to {ordered[-1]:.1f}"


def teraflops(one: Implied) -> str:
    """The rate that a cell implies: "13.4 TFLOP/s (69 % of IEEE FP32)"."""
    names = {"fp32": "IEEE FP32", "tf32": "TF32", "bf16": "BF16", "fp16": "FP16"}
    if one.rate is None or one.share is None:
        raise ValueError(f"{one.cell.task}, {one.cell.column} implies no rate")
    return f"{one.rate / 1e12:.1f} TFLOP/s ({100 * one.share:.0f} % of {names[one.roof]})"
