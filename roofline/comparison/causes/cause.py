"""A cause of a difference: what it claims, what is said of it, and how it stands to the other causes.

Each file in ops/ and time/ is one cause, `CAUSE`, or `CAUSES` where one rule yields several names; `order` finds them.
Nothing outside of its file names a cause, but for other causes: those whose rules yield claims of its name, and those
that stand beside it in the order or behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from roofline.analysis.analysis import Analysis
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.claim import Claim
from roofline.comparison.causes.facts import Facts
from roofline.comparison.machine_speed import Speed
from roofline.core.schema import Profile
from roofline.core.switch import Setting

#: Text, or how it is made of the facts of a finding.
Words = str | Callable[[Facts], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What claims parts of a difference, for the cause of its name or for others.

    A rule looks at what was recorded (which ops, how many, how many bytes, which precision, which switches) to say
    *that* a cause is there; the time of what it claims says how much it matters, and which run it slows down. What one
    rule claims no later one sees: `after` names those that come first, `before` those that come later.
    """

    name: str
    claim: Callable[[Attribution], Iterator[Claim]] | None = None
    after: tuple[str, ...] = ()
    before: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause(Rule):
    """A cause; claim: None where the rules of other causes claim for it.

    sentence: what was found, with the numbers it rests on; it names the run that spends more, whatever the order the
    runs were given in. advice: what to try. label: the cause in a few words, with the two numbers that matter.

    two_signs: claims of opposite sign are two findings, as each stretch or phase has a cause of its own. same_work:
    whether a finding says no more than that one run takes longer for the same: always, where both do as many ops,
    never, or as its facts say. holds: whether it is true wherever in their ranges the floors lie; None: it rests on
    none. excused_by: which speed of the machine may be why, by what a claim is `about`; claims of
    two speeds are two findings. in_gap: its cost is in the gap, and what ops take longer is a consequence of that.

    compilable: whether compiling the step would take it away, so that a step that was not compiled is what is behind
    it. stands_behind: the causes that this one may be behind, by name, or all that are compilable. What those claim it
    gets where it `prevails`, given the run that spends more on the claim and the other one; of several, the first in
    the order of all causes.

    proved_by: the kinds of switches that take it away (`core.switch`), where a backend has one. setting: what can be
    set in every run to take it away, given the run that spends more and the other one; None: nothing there.
    """

    sentence: Callable[[Facts], str]
    advice: Words
    label: Words
    two_signs: bool = False
    same_work: Literal["always", "of as many ops", "never"] | Callable[[Facts], bool] = "never"
    holds: Callable[[Facts], bool] | None = None
    excused_by: Speed | Callable[[Mapping[str, str]], Speed] = "host"
    in_gap: bool = False
    compilable: bool = False
    stands_behind: tuple[str, ...] | Literal["compilable"] = ()
    prevails: Callable[[Analysis, Analysis], bool] | None = None
    proved_by: tuple[str, ...] = ()
    setting: Callable[[Profile, Profile], Setting | None] | None = None

    def is_behind(self, other: Cause, slower: Analysis, faster: Analysis) -> bool:
        """Whether it gets what another one claims; slower: the run that spends more on that."""
        named = other.compilable if self.stands_behind == "compilable" else other.name in self.stands_behind
        return named and self.prevails is not None and self.prevails(slower, faster)

    def speed(self, claim: Claim) -> Speed:
        """Which speed of the machine may be why one run takes longer for what it claims."""
        return self.excused_by if isinstance(self.excused_by, str) else self.excused_by(claim.about)

    def advised(self, facts: Facts) -> str:
        """What to try."""
        return self.advice if isinstance(self.advice, str) else self.advice(facts)

    def labelled(self, facts: Facts) -> str:
        """The cause in a few words."""
        return self.label if isinstance(self.label, str) else self.label(facts)
