"""How the hosts dispatch: by other executors, or in another number of compiled programs."""

from __future__ import annotations

from collections.abc import Iterator

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.analysis.gap_causes import INPUT, OTHER, PYTHON, SYNCHRONISATION, seconds_of
from roofline.analysis.host_cost import HostCost, host_cost
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import NONE, Claim
from roofline.comparison.causes.compiled import MORE_PROGRAMS, more_programs, programs
from roofline.comparison.causes.conditions import of_both, threads
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.gap import dispatching, share_of_gap
from roofline.comparison.causes.phrases import SOME, counter, host_part
from roofline.comparison.causes.select import MORE
from roofline.comparison.drift import drift
from roofline.comparison.host_time import A_READ
from roofline.core.executor import ASLEEP, AWAY, CALLS, PROGRAMS, QUEUED, READS, compiles
from roofline.core.schema import Profile
from roofline.core.switch import COMPILED_AWAY, LAUNCHED_AWAY
from roofline.core.vocabulary import BOUNDS

#: Between this share and its complement time on a core is neither most nor little of it. By choice.
_PARTLY = 0.25
#: From this share of both steps on that is overhead, they say nothing of kernels. By choice: most of them.
_MOST = 0.5
#: What dispatching a compiled program takes a host at most [s], its arguments included. By choice: where a step is one
#: program, hosts of the planted sets (docs/plants.md) were seen to take 0.07 to 1.1 ms.
_A_PROGRAM = 1e-3
#: From more than this ratio on, what a launch costs either host is mentioned. By choice.
_DEARER = 2.0


def claim(attribution: Attribution) -> Iterator[Claim]:
    """What is left of the gap: how the host dispatches, or what else it does while no op runs."""
    a, b = attribution.comparison.a, attribution.comparison.b
    name, about = "host-bound", {}
    if attribution.one_executor and not attribution.queued:
        name = "host-idle"
        kind, made = programs(a, b)
        differ = max(made) > MORE_PROGRAMS * min(made) > 0
        if differ and kind == "graphs":  # of these it is measured how long Python takes
            shares = _known_besides(attribution, (0.0, 0.0))
            if (shares[0] * a.gap - shares[1] * b.gap) * (made[0] - made[1]) < 0:
                yield Claim("host-idle", NONE, NONE, *shares)  # of the one that dispatches fewer, and in its way
        more = attribution.gap_a * a.gap - attribution.gap_b * b.gap
        about = _asleep(attribution, more)
        costs = host_cost(a, resolved=False), host_cost(b, resolved=False)
        if costs[0] is not None and costs[1] is not None:
            name, about = _most(attribution, (costs[0], costs[1]), more, about)
        reads = of_both(attribution, READS)
        # On a CPU reading a result waits for nothing: it is a little more Python, and no more than that is its cost.
        if reads is not None and attribution.reads_are_placed:  # an optimizer's own are not the step's
            reads = reads[0] - _of_optimizer(a.profile), reads[1] - _of_optimizer(b.profile)
        if reads is not None and reads[0] != reads[1] and 0 < more / (reads[0] - reads[1]) < 1e-9 * A_READ:
            name, about = "synchronisation", {"a": f"{reads[0]:.0f}", "b": f"{reads[1]:.0f}"}
        if differ:
            dispatch = 0 < more / (made[0] - made[1]) < _A_PROGRAM
            name, about = ("host-bound", {}) if dispatch else (name, about)
    else:
        # Between ops, and far longer than a dispatch: whatever dispatches, that is something else.
        between = [float(shares.sum()) for shares in attribution.non_dispatch]
        yield Claim("host-idle", NONE, NONE, *_known_besides(attribution, (between[0], between[1])))
        if all(_overhead(analysis) > _MOST for analysis in (a, b)):
            name = "small-model"
    left = attribution.gap_a, attribution.gap_b
    if attribution.queued and a.gap_causes and b.gap_causes:
        # What a device takes from one queued kernel to the next, and waits by itself, is no time of its host.
        own = share_of_gap(a, OTHER), share_of_gap(b, OTHER)
        # What follows a wait, or has input in it, and was not claimed for that is in both runs, and their hosts'.
        besides = (share_of_gap(run, SYNCHRONISATION) + share_of_gap(run, INPUT) for run in (a, b))
        most = [dispatching(run) + more for run, more in zip((a, b), besides, strict=True)]
        left = min(max(0.0, left[0] - own[0]), most[0]), min(max(0.0, left[1] - own[1]), most[1])
    yield Claim(name, NONE, NONE, *left, about=about)


def _known_besides(attribution: Attribution, between: tuple[float, float]) -> tuple[float, float]:
    """Shares of the gaps in which hosts do no dispatch: `between` ops, or all of it in a run that knows of its host.

    That is one that measured it, or whose compiled programs, or calls from Python, are so few. Where only one run
    knows, and its host does more besides than the other run's whole gap, that much is left out here: whatever the other
    host does is no more.
    """
    runs, shares = (attribution.comparison.a, attribution.comparison.b), list(between)
    besides = [_besides(run) for run in runs]
    if attribution.queued or besides == [None, None]:
        return between
    most = [run.gap if known is None else known for run, known in zip(runs, besides, strict=True)]
    left = attribution.gap_a, attribution.gap_b
    for number, (run, known) in enumerate(zip(runs, besides, strict=True)):
        more = 0.0 if known is None else known - (most[1 - number] if None in besides else 0.0)
        if more > 0:
            shares[number] = max(shares[number], min(left[number], more / run.gap))
    return shares[0], shares[1]


def _besides(run: Analysis) -> float | None:
    """What a host is known to do besides dispatching and input [s]; None where nothing is known of it."""
    cost, programs = host_cost(run, resolved=False), run.profile.conditions.get(PROGRAMS)
    if cost is not None:
        return cost.besides
    if programs is not None:
        return max(0.0, _idle(run) - programs * _A_PROGRAM)
    calls = run.profile.conditions.get(CALLS)
    # Between the ops of a function it is the framework that dispatches, not Python.
    python = seconds_of(PYTHON, run.gap_causes) * (1 - drift(run))
    return None if calls is None else max(0.0, python - calls * _A_PROGRAM)


def _most(
    attribution: Attribution, costs: tuple[HostCost, HostCost], more: float, about: dict[str, str]
) -> tuple[str, dict[str, str]]:
    """What most of `more` of a gap is [s], where both hosts are known: ops and views, or what the host does besides.

    What is left of a gap is first what the host does besides dispatching, but for what of that leads to claimed ops.
    """
    runs, left = (attribution.comparison.a, attribution.comparison.b), (attribution.gap_a, attribution.gap_b)
    seconds = [gap * run.gap for run, gap in zip(runs, left, strict=True)]
    # Where gap and idle time agree, input has a finding of its own.
    inputs = [0.0 if run.gap_causes else min(c.input, s) for run, c, s in zip(runs, costs, seconds, strict=True)]
    led = [share * run.gap for share, run in zip(attribution.led, runs, strict=True)]
    known = [max(0.0, cost.besides - taken) for cost, taken in zip(costs, led, strict=True)]
    besides = [min(k, s - i) for k, s, i in zip(known, seconds, inputs, strict=True)]
    for name, parts, told in (("data-input", inputs, {}), ("host-idle", besides, about)):
        if (parts[0] - parts[1]) * more >= _MOST * more**2:
            return name, told
    slower, faster = costs if more > 0 else costs[::-1]
    if slower.dispatched.all > MORE * faster.dispatched.all:
        return "host-bound", {"dispatched": "more"}
    if slower.each > faster.each:
        return "host-idle", {"host": "ops", "a": costs[0].words, "b": costs[1].words}
    return "host-idle", about


def _of_optimizer(profile: Profile) -> float:
    """How many results the optimizer reads before its ops."""
    phases = profile.phases
    return float(sum(op.host_reads or 0 for op in profile.ops if phases[op.phase] == "optimizer"))


def _asleep(attribution: Attribution, more: float) -> dict[str, str]:
    """Whether a host that spends so much more [s] is on a core meanwhile; nothing where that is not known.

    Of a thread among others it is not: it also waits for them. Nor of one that waits for input: for how long depends on
    how fast the steps are.
    """
    away = of_both(attribution, ASLEEP)
    if away is None and all(
        threads(run.profile) == "1" for run in (attribution.comparison.a, attribution.comparison.b)
    ):
        away = of_both(attribution, AWAY)
    queued = of_both(attribution, QUEUED)
    if queued is not None and (queued[0] - queued[1]) * more > _PARTLY * more**2:
        return {"a": counter(queued[0]), "b": counter(queued[1]), "host": "queued"}
    if away is None or not more or any(map(_reads_input, (attribution.comparison.a, attribution.comparison.b))):
        return {}
    share = (away[0] - away[1]) / more
    if _PARTLY < share < 1 - _PARTLY:
        return {}
    told = {"a": counter(away[0]), "b": counter(away[1])}
    return told | {"host": "asleep" if share > _PARTLY else "awake"}


def _reads_input(run: Analysis) -> bool:
    """Whether the profiled steps waited for input."""
    return run.profile.profiled is not None and seconds_of(INPUT, run.profile.profiled.idle_causes) > 0


def _overhead(analysis: Analysis) -> float:
    """The share of a step in which the host dispatches or a launch is all that an op is.

    Of ops on a device with a queue only what a launch takes at least: a roof says not that an op reaches it.
    """
    if not analysis.has_queue:
        return (analysis.gap + analysis.total.bounds["overhead"]) / analysis.wall
    table = analysis.table
    launches = float(table.floor[table.bound == BOUNDS.index("overhead")].sum())
    return (max(0.0, analysis.gap - seconds_of(OTHER, analysis.gap_causes)) + launches) / analysis.wall


def _programs(facts: Facts) -> tuple[str, str, str] | None:
    """What both runs run of programs or graphs, and how many, where the one that spends more is known to run more."""
    what, (more, less) = programs(facts.run_more, facts.run_less)
    return (what, units.count(round(more)), units.count(round(less))) if more > less > 0 else None


def sentence(facts: Facts) -> str:
    """Programs of both runs, where one has more; else their idle times and launches, and what each launch costs."""
    made = _programs(facts)
    if made is not None:
        what, more, less = made
        runs = f"calls {more} graphs from Python" if what == "graphs" else f"runs {more} {what}"
        told = f"{facts.more} {runs} per step and {facts.less} {less}, which costs {units.seconds(facts.seconds)}"
        return f"{told}{host_part(facts, 'while no op runs') if facts.dispatch > 0 else ''}."
    costs = [host_cost(run, resolved=False) for run in (facts.run_more, facts.run_less)]
    if facts.about.get("dispatched") and costs[0] is not None and costs[1] is not None:
        told = f"{facts.more} spends {units.seconds(facts.seconds)} more on dispatching ops and views while no op runs"
        return f"{told}: {costs[0].words}, {facts.less} {costs[1].words}."
    gaps = _idle(facts.run_more), _idle(facts.run_less)
    whats = _dispatches(facts.run_more, facts.launches_more), _dispatches(facts.run_less, facts.launches_less)
    idle = f"{units.seconds(gaps[0])} with {whats[0]}"
    alike = " launches" if whats[0].endswith("launches") else ""
    other = f"{units.seconds(gaps[1])} with {whats[1].removesuffix(alike)}"
    head = f"{facts.more} spends {units.seconds(facts.seconds)} more in which {_idle_of(facts)}"
    text = f"{head}: {idle}, {facts.less} {other}"
    return f"{text}{_each(facts)}."


def _idle(run: Analysis) -> float:
    """The gap but for what plain steps were slower by throughout, in which no op runs [s].

    Of a device with a queue without what it takes, or waits, by itself.
    """
    own = max(0.0, seconds_of(OTHER, run.gap_causes)) if run.has_queue else 0.0
    return max(0.0, run.gap_told * (1 - drift(run)) - own)


def _idle_of(facts: Facts) -> str:
    """What `_idle` is, in words: of a device with a queue less than all, where a part that matters is its own."""
    runs = facts.run_more, facts.run_less
    own = any(run.has_queue and seconds_of(OTHER, run.gap_causes) > SOME * run.gap_told for run in runs)
    return "its device waits for launches" if own else "no op runs"


def _dispatches(run: Analysis, launches: float) -> str:
    """What a host dispatches in a step: compiled programs, where these are counted, else launches."""
    programs = run.profile.conditions.get(PROGRAMS)
    if programs is None:
        return f"{units.count(launches)} launches"
    number = round(programs)
    return f"{units.count(number)} compiled program{'' if number == 1 else 's'}"


def _each(facts: Facts) -> str:
    """What a launch costs the hosts: beside a device with a queue up to all of their time, else the gap.

    Where it was measured what the host does besides dispatching, that is no part of it.
    """
    runs = facts.run_more, facts.run_less
    if any(PROGRAMS in run.profile.conditions for run in runs):
        return ""  # what is launched within a program is no matter of the host
    if any(run.has_queue for run in runs):
        more, less = (run.most_per_launch for run in runs)
        if more is None:
            return ""
        if less is not None:
            dearer = max(more, less) > _DEARER * min(more, less)
            told = f"; a launch takes its host up to {units.seconds(more)}, against up to {units.seconds(less)}"
            return told if dearer else ""
        text = f"; its device waits for the host, which takes up to {units.seconds(more)} for a launch"
        return f"{text}, {facts.less} hides its host's time behind its ops" if facts.run_less.hides_host else text
    launches = facts.launches_more, facts.launches_less
    costs = [host_cost(run, resolved=False) for run in runs]
    spent = [run.gap if cost is None else cost.dispatch for run, cost in zip(runs, costs, strict=True)]
    more, less = (each / number if number else 0.0 for each, number in zip(spent, launches, strict=True))
    dear = less > 0 and more > _DEARER * less
    return f"; each launch costs its host {units.seconds(more)} against {units.seconds(less)}" if dear else ""


def sentence_of_small(facts: Facts) -> str:
    """The same, and that it says nothing of kernels."""
    told = sentence(facts).removesuffix(".")
    return f"{told}; most of both steps is overhead, so this compares dispatchers and not kernels."


def advice(facts: Facts) -> str:
    """One program, fewer ops, or less Python between them."""
    made = _programs(facts)
    if made is not None:
        if made[0] == "graphs":
            return "put the whole step into one tf.function, with its gradients and its update"
        return "compile the whole step as one program (one jit around all of it)"
    if compiles(facts.run_more.profile):
        return "hand its program fewer and ready arguments, and keep Python and conversions out of the step"
    if facts.launches_more > facts.launches_less:
        return "dispatch fewer ops: compile the step, enlarge the batch, or replay a graph"
    return "let less Python stand between ops: compile the step, or replay a graph"


def label(facts: Facts) -> str:
    """What the hosts of both runs dispatch, as in the sentence; their idle time where that is not more."""
    made = _programs(facts)
    if made is not None:
        told = f"{made[1]} {made[0].removeprefix('compiled ')} against {made[2]}"
    elif facts.launches_more <= facts.launches_less:
        told = f" in which {_idle_of(facts)} against ".join(
            units.seconds(_idle(run)) for run in (facts.run_more, facts.run_less)
        )
    else:
        told = f"{units.count(facts.launches_more)} launches against {units.count(facts.launches_less)}"
    return f"dispatching on the host ({told})"


CAUSES = (
    Cause(
        name="host-bound",
        claim=claim,
        after=("efficiency",),
        sentence=sentence,
        advice=advice,
        label=label,
        two_signs=True,
        same_work="always",
        compilable=True,
        stands_behind=("fusion", "tiny-ops"),  # what is in two programs is not fused, and dispatched twice
        prevails=more_programs,
        proved_by=(COMPILED_AWAY, LAUNCHED_AWAY),
    ),
    Cause(
        name="small-model",
        sentence=sentence_of_small,
        advice="enlarge the batch before comparing kernels",
        label=label,
        same_work="always",
        compilable=True,
        proved_by=(COMPILED_AWAY, LAUNCHED_AWAY),
    ),
)
