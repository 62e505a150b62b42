"""Graph breaks: a compiled step that is left and entered again, and fuses nothing across a break."""

from __future__ import annotations

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.compiled import mostly_eager
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.phrases import host_and_after, listed


def prevails(slower: Analysis, other: Analysis) -> bool:
    """Whether graph breaks make the slower run, which is mostly compiled, enter more compiled graphs."""
    one, less = slower.profile.compilation, other.profile.compilation
    if one is None or less is None or not less.graphs or mostly_eager(slower):
        return False
    return one.graphs > less.graphs and sum(one.breaks.values()) > sum(less.breaks.values())


def sentence(facts: Facts) -> str:
    """How many graphs either run enters, and what breaks them."""
    one, other = facts.run_more.profile.compilation, facts.run_less.profile.compilation
    graphs, fewer = one.graphs if one else 0, other.graphs if other else 0
    text = (
        f"{facts.more} leaves and enters compiled code more often, which costs {units.seconds(facts.seconds)}: "
        f"{graphs} compiled graphs per step against {fewer}{host_and_after(facts)}"
    )
    return f"{text}; broken by {listed(tuple(one.breaks))}." if one and one.breaks else f"{text}."


CAUSE = Cause(
    name="graph-breaks",
    after=("compiled-not-used",),
    before=("host-bound",),
    sentence=sentence,
    advice="take out of the step what breaks its graph (print, .item(), untraceable calls; roofline show)",
    label="graph breaks",
    two_signs=True,
    stands_behind="compilable",
    prevails=prevails,
)
