"""The same work at another rate: other kernels, or the same ones that ran slower."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from roofline import units
from roofline.analysis.beyond_step import times_as_slow
from roofline.analysis.floors import ABOVE_TOLERANCE
from roofline.comparison.arrays import Rows
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import OP, Claim, Work
from roofline.comparison.causes.facts import Facts, printable
from roofline.comparison.causes.phrases import MOST, SOME, flop, moved, opening, other_kernels
from roofline.comparison.causes.select import ALL, left
from roofline.comparison.common_ceilings import same_device
from roofline.comparison.machine_speed import Speed
from roofline.core.vocabulary import PRODUCTS

#: So many times as many products are the same ones in pieces. By choice: what frameworks join by themselves (queries,
#: keys and values, or both gradients of a layer) are two or three.
_PIECES = 4.0
#: An op with its arguments has so many characters at most, for a line. By choice.
_LONGEST = 90


def claim(attribution: Attribution) -> Iterator[Claim]:
    """All ops that are left: products, then the others. As `tiny-ops` the same products in far more, smaller ones."""
    products = left(attribution, PRODUCTS)
    name = "tiny-ops" if not attribution.matching.alike and _in_pieces(attribution, *products) else "efficiency"
    yield Claim(name, *products, about={"of": "products"} if name == "efficiency" else {})
    yield Claim("efficiency", *left(attribution, ALL), about={"of": "others"})


def _in_pieces(attribution: Attribution, a: Rows, b: Rows) -> bool:
    """Whether the run that takes longer for the products does them in far more than the other one."""
    sides = attribution.a, attribution.b
    launches = [float(side.segments.launches[rows].sum()) for side, rows in zip(sides, (a, b), strict=True)]
    seconds = [float(side.seconds[rows].sum()) for side, rows in zip(sides, (a, b), strict=True)]
    more = int(launches[1] > launches[0])
    return seconds[more] > seconds[1 - more] and launches[more] >= _PIECES * launches[1 - more] > 0


def _excused_by(about: Mapping[str, str]) -> Speed:
    return "products" if about["of"] == "products" else "others"


def sentence(facts: Facts) -> str:
    """The work of both runs and how much of the roof they attain."""
    if _at_once(facts):
        return f"{opening(facts, f'the same {_kind(facts)}')}: {_beside(facts)}."
    one, other = (_attained(each) for each in (facts.does_more, facts.does_less))
    if OP in facts.about:
        does = flop if facts.about["of"] == "products" else moved
        text = f"{opening(facts, printable(facts.about[OP], _LONGEST))}: {does(facts.does_more)} at {one} of the roof"
        text = f"{text}, where {facts.less} attains {other}. Other {_kind(facts)} did not get slower alike."
        return f"{text}{_kernels(facts)}{_excess(facts)}"
    if facts.about["of"] == "products":
        text = f"{opening(facts, 'the same products')}: {flop(facts.does_more)} at {one} of the roof"
        return f"{text}, where {facts.less} attains {other}{_in_part(facts)}.{_kernels(facts)}{_excess(facts)}"
    text = f"{opening(facts, 'vector ops')}: {moved(facts.does_more)} at {one} of the roof"
    return f"{text}, where {facts.less} has {moved(facts.does_less)} at {other}.{_excess(facts)}"


def _kind(facts: Facts) -> str:
    return "products" if facts.about["of"] == "products" else "ops"


def _shared(facts: Facts) -> float:
    """How much more of these ops counts as that of others at the same time, in the run that spends less [s]."""
    more, less = ((work.own - work.seconds) for work in (facts.does_more, facts.does_less))
    return less - more if facts.does_less.ops else 0.0


def _at_once(facts: Facts) -> bool:
    """Whether most of it is that fewer other ops run beside these, which take no longer themselves."""
    return _shared(facts) > (1 - MOST) * facts.seconds


def _in_part(facts: Facts) -> str:
    """What of it is that fewer other ops run beside these, where that is a part that matters."""
    shared = _shared(facts)
    return (
        f"; {units.seconds(shared)} of it is that less runs at the same time" if shared > SOME * facts.seconds else ""
    )


def _beside(facts: Facts) -> str:
    """The own times of both runs, and what of them belongs to ops that run at the same time."""
    more, less = facts.does_more, facts.does_less
    owns, shared = (more.own, less.own), (max(0.0, more.own - more.seconds), max(0.0, less.own - less.seconds))
    return (
        f"they take {units.seconds(owns[0])} themselves, in {facts.less} {units.seconds(owns[1])}, but there "
        f"{units.seconds(shared[1])} of it counts as that of ops that run at the same time, here "
        f"{units.seconds(shared[0])}"
    )


def _other_kernels(facts: Facts) -> bool:
    """Whether most of the products' time is in kernels of other names in both runs."""
    return facts.about["of"] == "products" and other_kernels(facts)


def _holds(facts: Facts) -> bool:
    """Whether the ops of the run that spends more do take longer, and, of two devices, attain less at both ends."""
    if facts.does_less.ops and facts.does_more.seconds - facts.does_less.seconds < MOST * facts.seconds:
        return False
    if _above(facts) and any(times_as_slow(run.scale) for run in (facts.run_more, facts.run_less)):
        return False  # one factor takes off what the profiler added, most of it to small ops, and so too much of others
    ends = [(work.attained, work.attained_reach) for work in (facts.does_more, facts.does_less)]
    if same_device(facts.run_more.profile, facts.run_less.profile):
        # Under equal ceilings a time alone says it, but for other products than those of the other run.
        one, other = facts.does_more.attained, facts.does_less.attained
        if facts.about["of"] != "products" or one is None or other is None:
            return True
        return one < other or _at_once(facts)
    return all(more is None or less is None or more < less for more, less in zip(*ends, strict=True))


def _kernels(facts: Facts) -> str:
    """The kernels of both runs that take most of the time, where they are not the same."""
    if not _other_kernels(facts):
        return ""
    one, other = (printable(work.kernel) for work in (facts.does_more, facts.does_less))
    return f" Most of it is in {one}, in {facts.less} in {other}."


def _excess(facts: Facts) -> str:
    """A word on more than a roof allows."""
    if not _above(facts):
        return ""
    return " More than the roof is a defect of a count or a ceiling, or of the scale: roofline show says which."


def _above(facts: Facts) -> bool:
    return any((each.attained or 0) > 1 + ABOVE_TOLERANCE for each in (facts.does_more, facts.does_less))


def _attained(work: Work) -> str:
    """What share of the roof, or both ends of it."""
    if work.attained is None or work.attained_reach is None:
        return "an unknown share"
    return units.percent_between(work.attained, work.attained_reach)


def advice(facts: Facts) -> str:
    """To run at once what the other run does; of other kernels, what these are; else first whether it stays."""
    if _at_once(facts):
        return "see what runs at the same time there (roofline plot --kind timeline): other streams, or threads"
    if _other_kernels(facts):
        return "look at the kernels of both (roofline show --by kernel): libraries, layouts and tile sizes differ"
    return (
        "see whether it stays (--rounds 3), then what may differ around the same ops: kernels (roofline show --by "
        "kernel), layouts, threads, clocks, what else runs"
    )


def label(facts: Facts) -> str:
    """Of what, and how much of the roof both attain."""
    if _at_once(facts):
        return f"{_kind(facts)} beside which less runs at the same time"
    what = "efficiency of products" if facts.about["of"] == "products" else "efficiency of vector ops"
    if OP in facts.about:
        what = f"efficiency of {printable(facts.about[OP].partition(' ')[0])}"
    if facts.does_more.attained is None or facts.does_less.attained is None:
        return what
    more, less = _attained(facts.does_more), _attained(facts.does_less)
    excess = ", above it" if _above(facts) else ""
    return f"{what} ({more} of the roof against {less}{excess})"


CAUSE = Cause(
    name="efficiency",
    claim=claim,
    after=("after-others",),
    sentence=sentence,
    advice=advice,
    label=label,
    same_work=lambda facts: OP not in facts.about and not _other_kernels(facts),
    holds=_holds,
    excused_by=_excused_by,
)
