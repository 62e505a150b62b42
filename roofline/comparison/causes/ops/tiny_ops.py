"""The same result in many small ops. The rules in fusion.py and more_work.py claim for it."""

from __future__ import annotations

from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.phrases import host_and_after, listed, opening, ops
from roofline.core.switch import COMPILED_AWAY, LAUNCHED_AWAY


def sentence(facts: Facts) -> str:
    """Launches of both runs, and what they are called in the one."""
    other = f"against {ops(facts.does_less)} for the same result" if facts.does_less.ops else "that the other run lacks"
    text = f"{opening(facts, 'small ops')}: {ops(facts.does_more)} {other} ({listed(facts.does_more.names)})"
    return f"{text}{host_and_after(facts)}."


CAUSE = Cause(
    name="tiny-ops",
    sentence=sentence,
    advice="write them as fewer, larger ops, or compile the step",
    label=lambda facts: f"small ops ({ops(facts.does_more)} against {ops(facts.does_less)})",
    two_signs=True,
    compilable=True,
    proved_by=(COMPILED_AWAY, LAUNCHED_AWAY),
)
