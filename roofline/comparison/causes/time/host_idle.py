"""What a host does besides dispatching, while no op runs: Python, sleeping, input between ops.

And Python that a step's program calls back (callbacks.py): an op, but all that it does is to wait for the host.
"""

from __future__ import annotations

from collections.abc import Iterator

from roofline import units
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import Claim
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.phrases import MOST, SOME, following, host_part, listed, opening
from roofline.comparison.causes.select import MORE
from roofline.core.executor import MADE, MAKING, compiles, executor_of


def claim(attribution: Attribution) -> Iterator[Claim]:
    """What an op takes longer right after it: its caches are cold, and a core that slept is slow.

    Of ops that both runs have, and that only one of them is late for, beyond what is usual before an op in either. The
    gap itself is claimed in host_bound.py, where nothing else explains it.
    """
    if not attribution.one_executor:
        return
    (a, b), pairs = attribution.host, attribution.matching
    usual = max(a.usual, b.usual)
    late_a = (a.all > usual * a.times)[attribution.a.segments.op[pairs.pairs_a]]
    late_b = (b.all > usual * b.times)[attribution.b.segments.op[pairs.pairs_b]]
    chosen = (late_a != late_b) & (attribution.left_a[pairs.pairs_a] == 1) & (attribution.left_b[pairs.pairs_b] == 1)
    if chosen.any():
        yield Claim("host-idle", pairs.pairs_a[chosen], pairs.pairs_b[chosen])


def called_back(facts: Facts) -> bool:
    """Whether most of it is in ops that call Python back: no noise of a host, but work of one run alone."""
    called = facts.about.get("host") == "called" and facts.about_more
    return bool(called) and facts.dispatch <= MOST * facts.seconds


def _caller(facts: Facts) -> str:
    """What calls Python back: a program that a compiler made, TensorFlow's graph, or a step of ops one by one."""
    profile = facts.run_more.profile
    if compiles(profile):
        return "compiled step"
    return "graph" if executor_of(profile) == "tensorflow-graph" else "step"


def sentence(facts: Facts) -> str:
    """What is called back; else what of it the op after takes longer, and whether the thread was on a core."""
    if called_back(facts):
        others = [name for name in facts.does_less.names if name not in facts.does_more.names]
        other = f", in whose place {facts.less} has {listed(others)}" if others else ""
        between = host_part(facts, "between its ops") if facts.dispatch > SOME * facts.seconds else ""
        text = (
            f"{opening(facts, f'Python functions that its {_caller(facts)} calls back')}: {facts.about_more} per step"
        )
        return f"{text}{other}{between}{following(facts)}; the step waits for Python on the host."
    dispatches_more = facts.launches_more > MORE * facts.launches_less
    beside = "beyond what dispatching an op takes" if dispatches_more else "which is not dispatching more ops"
    late = facts.seconds - facts.dispatch
    if late > (1 - SOME) * facts.seconds:
        text = f"{facts.more} takes {units.seconds(facts.seconds)} longer in ops that its host is late for, {beside}"
    else:
        text = f"{facts.more} spends {units.seconds(facts.seconds)} more on its host while no op runs, {beside}"
        if late > SOME * facts.seconds:
            text += f"; {units.seconds(late)} of it is what the ops right after it take longer"
    match facts.about.get("host"):
        case "ops":
            each = f"{facts.about_more}, {facts.less} {facts.about_less}"
            return f"{text}: {each}: Python around each of them{_made(facts)}."
        case "asleep":
            text += f"; its thread was on no core for {facts.about_more} of a step, "
            return f"{text}against {facts.about_less}: it slept or waited{_made(facts)}."
        case "queued":
            return (
                f"{text}; its thread waited for a core that other programs had for {facts.about_more} of a step, "
                f"against {facts.about_less}{_made(facts)}."
            )
        case "awake":
            return f"{text}; its thread was on a core all the while: Python between them{_made(facts)}."
    return f"{text}: Python, sleeping or input between them{_made(facts)}."


def _making(facts: Facts) -> float:
    """How much longer the run that spends more makes tensors of Python's numbers [s]; 0 where that is not known."""
    times = []
    for run in (facts.run_more, facts.run_less):
        seconds = run.profile.conditions.get(MAKING)
        if seconds is None:
            return 0.0
        times.append(seconds * run.gap / run.idle if run.idle else seconds)  # a gap is divided as idle time was
    return max(0.0, min(times[0] - times[1], facts.seconds))


def _made(facts: Facts) -> str:
    """How much of it makes tensors of Python's numbers, and how many; nothing where that is little, or not known."""
    seconds = _making(facts)
    if seconds <= SOME * facts.seconds:
        return ""
    numbers = [round(run.profile.conditions.get(MADE, 0.0)) for run in (facts.run_more, facts.run_less)]
    if not numbers[0]:
        return ""  # in fewer than half of the steps
    what = f"{units.count(numbers[0])} {'tensor' if numbers[0] == 1 else 'tensors'}"
    other = units.count(numbers[1]) if numbers[1] else "none"
    return f"; {units.seconds(seconds)} of it fills {what} with Python's numbers (torch.tensor), against {other}"


def advice(facts: Facts) -> str:
    """What to look for."""
    if called_back(facts):
        return (
            f"take the Python function out of the {_caller(facts)}: write it with the framework's own ops, or call it "
            "outside of the step, or more rarely"
        )
    if _made(facts) and _making(facts) >= MOST * facts.seconds:
        return "make these tensors once, outside of the step, or of an array (torch.from_numpy), not of lists"
    match facts.about.get("host"):
        case "queued":
            return "measure again while no other program wants the cores"
        case "ops":
            return (
                "let less Python stand around each op (modules, hooks, wrappers), fewer and larger ops, or compile it"
            )
        case "asleep":
            return "look for sleeps, locks, I/O and input between the ops (py-spy dump)"
        case "awake":
            return "look for what the step does besides its ops: Python loops, logging, checks (py-spy, cProfile)"
    return "look for what the step does besides its ops (py-spy, cProfile): I/O, sleeps, Python loops"


def label(facts: Facts) -> str:
    """What is called back; else where it is."""
    if called_back(facts):
        return f"Python called back from the {_caller(facts)} ({facts.about_more})"
    return "host time between ops"


CAUSE = Cause(
    name="host-idle",
    claim=claim,
    after=("allocation",),
    sentence=sentence,
    advice=advice,
    label=label,
    same_work=lambda facts: not called_back(facts),
    two_signs=True,  # what one step calls back, and what the other one's host does in its gap
    in_gap=True,
    compilable=True,
)
