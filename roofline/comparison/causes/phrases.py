"""Parts of the sentences of several causes: amounts of work, and what of a finding is the host's."""

from __future__ import annotations

from collections.abc import Sequence

from roofline import units
from roofline.comparison.causes.claim import Work
from roofline.comparison.causes.facts import Facts, printable
from roofline.core.executor import WAITED

#: From this share of a finding on, a part of it is mentioned. By choice.
SOME = 0.1
#: From this part of a finding on, it is most of it. By choice.
MOST = 0.5


def ops(work: Work) -> str:
    """How many launches it is, or ops where those are not known."""
    number = round(work.launches or work.ops)
    return f"{units.count(number)} {'launch' if number == 1 else 'launches'}"


def moved(work: Work) -> str:
    """Launches and their bytes."""
    number = ops(work)
    return f"{number} that {'moves' if number == '1 launch' else 'move'} {size(work)}" if work.ops else "none"


def size(work: Work) -> str:
    """What it moves through memory."""
    return "an unknown number of bytes" if work.bytes is None else f"{_least(work)}{units.byte(work.bytes)}"


def flop(work: Work) -> str:
    """What it computes."""
    return "unknown work" if work.flops is None else f"{_least(work)}{units.flop(work.flops)}"


def _least(work: Work) -> str:
    """What stands before a sum of which a part is not known."""
    return "" if work.whole else "at least "


def listed(items: Sequence[str]) -> str:
    """Names of ops, long ones cut."""
    return ", ".join(item if len(item) <= 40 else f"{item[:39]}…" for item in map(printable, items))


def opening(facts: Facts, what: str) -> str:
    """How most sentences begin: who spends how much more on what, and where."""
    at = f" in {facts.where}" if facts.where else ""
    return f"{facts.more} spends {units.seconds(facts.seconds)} more on {what}{at}"


def host_and_after(facts: Facts, whose: str = "the ops right after them") -> str:
    """How much of a finding is dispatching its ops, and how much is in those that follow, where it is not little."""
    text = host_part(facts, "on the host before them") if facts.dispatch > SOME * facts.seconds else ""
    return text + following(facts, whose)


def following(facts: Facts, whose: str = "the ops right after them") -> str:
    """How much of a finding is in the ops that follow its own, or `whose` it is; nothing where that is little."""
    if abs(facts.after) <= SOME * facts.seconds:
        return ""
    if facts.after > 0:
        return f"; {units.seconds(facts.after)} of it is what {whose} take longer"
    return f"; {whose} take {units.seconds(-facts.after)} less, which is taken off"


def hiding(facts: Facts) -> str:
    """What a finding's ops take and hide of a host that runs ahead, in a sentence of its own; else nothing.

    Where both hosts are known to run ahead, less of a gap beside more work is the host's time behind that work.
    """
    ahead = all(WAITED in run.profile.conditions for run in (facts.run_more, facts.run_less))
    if not ahead or facts.dispatch >= -SOME * facts.seconds:
        return ""
    took, hidden = units.seconds(facts.seconds - facts.dispatch), units.seconds(-facts.dispatch)
    return (
        f" That is {took} of ops less {hidden}: behind them the host does what it does in {facts.less} while none runs."
    )


def host_part(facts: Facts, where: str) -> str:
    """What of a finding is the host's. It may be more than the whole, where all else takes less."""
    part, whole = units.seconds(facts.dispatch), units.seconds(facts.seconds)
    if facts.dispatch > facts.seconds and part != whole:
        return f"; that is {part} more {where} and {units.seconds(facts.dispatch - facts.seconds)} less besides"
    return f", {part} of it {where}"


def counter(seconds: float) -> str:
    """A time that a counter of the system gave [s]; such counters are hardly finer than a microsecond."""
    told = units.seconds(seconds)
    return "less than 1 µs" if told == "0 s" or told.endswith(" ns") else told


def other_kernels(facts: Facts) -> bool:
    """Whether most of the time is in kernels of other names in both runs: no noise makes one the other."""
    one, other = facts.does_more.kernel, facts.does_less.kernel
    return bool(one and other) and one != other


def kinds(facts: Facts) -> str:
    """What kind of vector work it is. Where it was divided over classes by rule, only its place is certain."""
    classes = facts.does_more.classes | facts.does_less.classes
    norm = bool(classes & {"normalisation", "softmax", "reduction"})
    point = bool(classes & {"pointwise", "movement", "embedding", "random"})
    if not facts.certain:
        return "vector ops"
    if "embedding" in classes and not norm:
        return "indexing and pointwise ops" if classes & {"pointwise", "movement", "random"} else "indexing"
    return "normalisation and pointwise ops" if norm and point else "normalisation" if norm else "pointwise ops"
