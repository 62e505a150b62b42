"""What each rule says: one sentence with the numbers it rests on, and one about what to try. Plain text, deterministic.

A rule's sentence names the run that spends more, whatever the order the runs were given in.
"""

from __future__ import annotations

from collections.abc import Callable

from roofline import units
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.phrases import (
    SOME,
    by_programs,
    counter,
    flop,
    following,
    host_part,
    kinds,
    listed,
    moved,
    of_which,
    ops,
    size,
    spends,
)


def sentence(rule: str, facts: Facts) -> tuple[str, str]:
    """(what was found, what to try) for a finding of `rule`."""
    return SENTENCES[rule](facts)


def label(rule: str, facts: Facts) -> str:
    """A finding of `rule` in a few words, with the two numbers that matter."""
    more, less = facts.does_more, facts.does_less
    match rule:
        case "fusion":
            if (more.bytes or 0.0) <= (less.bytes or 0.0):
                return f"{kinds(facts)} ({ops(more)} against {ops(less)})"
            return f"{kinds(facts)} ({size(more)} moved against {size(less)})"
        case "tiny-ops":
            return f"small ops ({ops(more)} against {ops(less)})"
        case "host-bound" | "small-model" | "jit-not-in-effect" | "compiled-not-used":
            return f"{_LABELS[rule]} ({_dispatched(rule, facts)})"
        case "efficiency":
            what = "efficiency of products" if facts.of == "matmul" else "efficiency of vector ops"
            if more.attained is None or less.attained is None:
                return what
            rates = f"{units.percent(more.attained, 0)} of the roof against {units.percent(less.attained, 0)}"
            return f"{what} ({rates})"
        case "precision" | "threads":
            return f"{rule} ({facts.about_more} against {facts.about_less})"
    return _LABELS.get(rule, rule)


_LABELS = {
    "allocation": "memory fetched anew",
    "compilation": "compiling inside the step",
    "compiled-not-used": "a compiled function that is not called",
    "data-input": "waiting for input",
    "attention": "another form of attention",
    "hardware": "the hardware",
    "graph-breaks": "graph breaks",
    "host-bound": "dispatching on the host",
    "host-idle": "host time between ops",
    "jit-not-in-effect": "a step that is not compiled",
    "layout": "copies and transposes",
    "more-work": "work that the other does not do",
    "optimizer": "the optimizer",
    "padding": "padded products",
    "random": "random numbers",
    "small-model": "dispatching on the host",
    "synchronisation": "results read on the host",
    "unknown-work": "ops of unknown work",
}


def _dispatched(rule: str, facts: Facts) -> str:
    """What the hosts of both runs dispatch, as in the sentence of `rule`; their idle time where that is not more."""
    if rule in ("host-bound", "small-model"):
        if by_programs(facts):
            programs = round(facts.programs_more), round(facts.programs_less)
            return f"{units.count(programs[0])} programs against {units.count(programs[1])}"
        if facts.launches_more <= facts.launches_less:
            return f"{units.seconds(facts.idle_more)} in which no op runs against {units.seconds(facts.idle_less)}"
    return f"{units.count(facts.launches_more)} launches against {units.count(facts.launches_less)}"


def _fusion(facts: Facts) -> tuple[str, str]:
    text = (
        f"{spends(facts, kinds(facts))}: {moved(facts.does_more)} through memory ({listed(facts.does_more.names)}), "
        f"where {facts.less} has {moved(facts.does_less)}"
    )
    if facts.does_less.names:
        text += f" ({listed(facts.does_less.names)})"
    if facts.does_less.fused >= 1:
        text += f", {units.count(round(facts.does_less.fused))} of them fused"
    advice = "let a compiler fuse them (torch.compile, jit), or use the framework's own fused op"
    return f"{text}{of_which(facts)}.", advice


def _tiny(facts: Facts) -> tuple[str, str]:
    other = f"against {ops(facts.does_less)} for the same result" if facts.does_less.ops else "that the other run lacks"
    text = f"{spends(facts, 'small ops')}: {ops(facts.does_more)} {other} ({listed(facts.does_more.names)})"
    return f"{text}{of_which(facts)}.", "write them as fewer, larger ops, or compile the step"


def _attention(facts: Facts) -> tuple[str, str]:
    fused = "attention" in facts.does_less.classes
    how = "written out" if fused else "in one fused kernel"
    other = "in one fused kernel" if fused else "written out"
    text = (
        f"{spends(facts, f'attention {how}')}: {moved(facts.does_more)}; {facts.less} does it {other}, "
        f"{moved(facts.does_less)}{of_which(facts)}"
    )
    return f"{text}.", (
        "use the fused kernel (scaled_dot_product_attention, jax.nn.dot_product_attention)"
        if fused
        else "try attention written out at this size, where the fused kernel loses"
    )


def _random(facts: Facts) -> tuple[str, str]:
    other = ops(facts.does_less) if facts.does_less.ops else "none"
    text = f"{spends(facts, 'random numbers')}: {ops(facts.does_more)} ({listed(facts.does_more.names)}), where "
    text += f"{facts.less} has {other}{of_which(facts)}"
    return f"{text}.", "turn dropout off where it is not wanted, or take a cheaper generator"


def _layout(facts: Facts) -> tuple[str, str]:
    text = (
        f"{spends(facts, 'copies and transposes')} that {facts.less} does not make: {moved(facts.does_more)} "
        f"({listed(facts.does_more.names)}){of_which(facts)}"
    )
    return f"{text}.", (
        "copy less: keep one layout from layer to layer (NHWC or NCHW, no .contiguous() in between), and write into a "
        "buffer instead of concatenating or cloning"
    )


def _padding(facts: Facts) -> tuple[str, str]:
    text = (
        f"{spends(facts, 'padded products')}: {flop(facts.does_more)} ran where {facts.less} runs "
        f"{flop(facts.does_less)}"
    )
    return f"{text}.", "choose sizes that need no padding (multiples of 8 or 64), or pack sequences"


def _optimizer(facts: Facts) -> tuple[str, str]:
    text = f"{spends(facts, 'the optimizer')}: {moved(facts.does_more)} against {moved(facts.does_less)}"
    return f"{text}{of_which(facts)}.", "use the fused optimizer (AdamW(fused=True)), or compile the update"


def _recomputation(facts: Facts) -> tuple[str, str]:
    text = (
        f"{spends(facts, 'products that it computes again')}: {ops(facts.does_more)}, {flop(facts.does_more)} more "
        f"than was asked for{of_which(facts, 'the ops that do them first or follow them')}"
    )
    return f"{text}.", "turn checkpointing off where the memory suffices"


def _more_work(facts: Facts) -> tuple[str, str]:
    if not facts.does_less.ops and not facts.does_more.flops:
        text = f"{spends(facts, 'ops that the other run does not do')}: {moved(facts.does_more)} "
        return (
            f"{text}({listed(facts.does_more.names)}){of_which(facts)}.",
            "leave them out where they are not needed",
        )
    text = (
        f"{spends(facts, 'products')}: {flop(facts.does_more)} against "
        f"{flop(facts.does_less)} at the same place{of_which(facts)}"
    )
    return f"{text}.", "the runs do not ask for the same work: compare equal models first"


def _precision(facts: Facts) -> tuple[str, str]:
    text = f"{spends(facts, 'the same work')}: {facts.about_more} where {facts.less} computes in {facts.about_less}"
    return (
        f"{text}{following(facts)}.",
        "set the same precision in both (--precision fp32, or tf32, bf16 where the model allows it)",
    )


def _synchronisation(facts: Facts) -> tuple[str, str]:
    advice = "keep values on the device (no .item(), print or Python branch on a tensor inside the step)"
    head = spends(facts, "reading results on the host")
    if facts.about_more:
        return f"{head}: {facts.about_more} per step, {facts.less} {facts.about_less}.", advice
    if not facts.does_more.ops:
        waits = f"{facts.more} waits {units.seconds(facts.seconds)} more for what it runs, before it goes on"
        return f"{waits}.", advice
    return (
        f"{head}: {ops(facts.does_more)} ({listed(facts.does_more.names)}), {facts.less} has "
        f"{ops(facts.does_less)}{following(facts)}.",
        advice,
    )


def _communication(facts: Facts) -> tuple[str, str]:
    text = f"{spends(facts, 'communication')}: {moved(facts.does_more)} against {moved(facts.does_less)}"
    if facts.dispatch > 0:
        text += host_part(facts, "waiting for collectives")
    return f"{text}.", "overlap collectives with the backward pass, or send fewer bytes"


def _threads(facts: Facts) -> tuple[str, str]:
    text = (
        f"{spends(facts, 'the same ops')}: it runs {facts.about_more} "
        f"{'thread' if facts.about_more == '1' else 'threads'}, {facts.less} {facts.about_less}"
    )
    return f"{text}.", "give both the same number of threads (--threads)"


def _hardware(facts: Facts) -> tuple[str, str]:
    text = f"{spends(facts, 'the same ops')} because of its device: their floors are "
    text += f"{units.seconds(facts.does_more.floor)} there and {units.seconds(facts.does_less.floor)} on the other"
    return f"{text}.", "nothing to mend: this part is the hardware"


def _allocation(facts: Facts) -> tuple[str, str]:
    text = (
        f"{spends(facts, 'memory that it fetches from the system anew')}: {counter(facts.about_more)} per step against "
        f"{counter(facts.about_less)}; a page is cleared when it is first written"
    )
    return f"{text}.", "reuse buffers (out=, in-place ops), or an allocator that keeps its pages (jemalloc, tcmalloc)"


def _data_input(facts: Facts) -> tuple[str, str]:
    text = f"{facts.more} waits {units.seconds(facts.seconds)} longer for its input while no op runs"
    return f"{text}.", "load and copy the next batch while this one is computed (workers, pinned memory, prefetching)"


def _compilation(facts: Facts) -> tuple[str, str]:
    text = f"{facts.more} spends {units.seconds(facts.seconds)} more on guards and compiling inside the step"
    return (
        f"{text}.",
        "look for graph breaks (roofline show), shapes that change, and functions that each step jits anew",
    )


def _efficiency(facts: Facts) -> tuple[str, str]:
    one, other = (
        "an unknown share" if each.attained is None else units.percent(each.attained, 0)
        for each in (facts.does_more, facts.does_less)
    )
    if facts.of == "matmul":
        text = f"{spends(facts, 'the same products')}: {flop(facts.does_more)} at {one} of the roof"
        text += f", where {facts.less} attains {other}"
    else:
        text = f"{spends(facts, 'vector ops')}: {moved(facts.does_more)} at {one} of the roof"
        text += f", where {facts.less} has {moved(facts.does_less)} at {other}"
    return (
        f"{text}.",
        "look at the kernels of both (roofline show --by kernel): libraries, layouts and tile sizes differ",
    )


def _host_bound(facts: Facts) -> tuple[str, str]:
    if by_programs(facts):
        text = (
            f"{facts.more} runs {units.count(round(facts.programs_more))} compiled programs per step and {facts.less} "
            f"{units.count(round(facts.programs_less))}, which costs {units.seconds(facts.seconds)}"
        )
        text += host_part(facts, "while no op runs") if facts.dispatch > 0 else ""
        return f"{text}.", "compile the whole step as one program (one jit around all of it)"
    idle = f"{units.seconds(facts.idle_more)} with {units.count(facts.launches_more)} launches"
    other = f"{units.seconds(facts.idle_less)} with {units.count(facts.launches_less)}"
    each = [
        gap / launches if launches else 0.0
        for gap, launches in ((facts.idle_more, facts.launches_more), (facts.idle_less, facts.launches_less))
    ]
    text = f"{facts.more} spends {units.seconds(facts.seconds)} more in which no op runs: {idle}, {facts.less} {other}"
    if each[1] > 0 and each[0] > 2 * each[1]:
        text += f"; each launch costs its host {units.seconds(each[0])} against {units.seconds(each[1])}"
    if facts.launches_more > facts.launches_less:
        return f"{text}.", "dispatch fewer ops: compile the step, enlarge the batch, or replay a graph"
    return f"{text}.", "let less Python stand between ops: compile the step, or replay a graph"


def _small_model(facts: Facts) -> tuple[str, str]:
    text, _ = _host_bound(facts)
    return (
        f"{text[:-1]}; most of both steps is overhead, so this compares dispatchers and not kernels.",
        "enlarge the batch before comparing kernels",
    )


def _host_idle(facts: Facts) -> tuple[str, str]:
    text = (
        f"{facts.more} spends {units.seconds(facts.seconds)} more on its host while no op runs, "
        "which is not dispatching more ops"
    )
    late = facts.seconds - facts.dispatch
    if SOME * facts.seconds < late <= facts.seconds:
        text += f"; {units.seconds(late)} of it is what the ops right after it take longer"
    match facts.host:
        case "asleep":
            text += f"; its thread was on no core for {counter(facts.about_more)} of a step, "
            text += f"against {counter(facts.about_less)}"
            return f"{text}: it slept or waited.", "look for sleeps, locks, I/O and input between the ops (py-spy dump)"
        case "awake":
            text += "; its thread was on a core all the while: Python between them"
            return (
                f"{text}.",
                "look for what the step does besides its ops: Python loops, logging, checks (py-spy, cProfile)",
            )
    text += ": Python, sleeping or input between them"
    return f"{text}.", "look for what the step does besides its ops (py-spy, cProfile): I/O, sleeps, Python loops"


def _graph_breaks(facts: Facts) -> tuple[str, str]:
    text = (
        f"{facts.more} leaves and enters compiled code more often, which costs {units.seconds(facts.seconds)}: "
        f"{facts.graphs_more} compiled graphs per step against {facts.graphs_less}{of_which(facts)}"
    )
    if facts.breaks:
        text += f"; broken by {listed(facts.breaks)}"
    return f"{text}.", "take out of the step what breaks its graph (print, .item(), untraceable calls; roofline show)"


def _not_compiled(facts: Facts) -> tuple[str, str]:
    text = (
        f"most of the step of {facts.more} was not compiled: {units.seconds(facts.seconds)} more, "
        f"{units.count(facts.launches_more)} launches against {units.count(facts.launches_less)}"
    )
    if facts.backend_more == "jax":  # it is told by no flag what to compile
        return f"{text}.", "wrap the whole step in jax.jit"
    return f"{text}.", "check that the flag reaches the model that runs, and what breaks its graph (roofline show)"


def _compiled_not_used(facts: Facts) -> tuple[str, str]:
    text = (
        f"{facts.more} compiled a function that its generate loop does not call: {units.seconds(facts.seconds)} more, "
        f"{units.count(facts.launches_more)} launches against {units.count(facts.launches_less)}"
    )
    return f"{text}.", "compile what the loop calls (the model's forward, or generate itself)"


def _unknown(facts: Facts) -> tuple[str, str]:
    text = f"{spends(facts, 'ops of unknown work')}: {ops(facts.does_more)} ({listed(facts.does_more.names)})"
    return (
        f"{text}, where {facts.less} has {ops(facts.does_less)}{following(facts)}.",
        "register a formula for them (docs/counting.md)",
    )


SENTENCES: dict[str, Callable[[Facts], tuple[str, str]]] = {
    "allocation": _allocation,
    "attention": _attention,
    "communication": _communication,
    "compilation": _compilation,
    "compiled-not-used": _compiled_not_used,
    "data-input": _data_input,
    "efficiency": _efficiency,
    "fusion": _fusion,
    "graph-breaks": _graph_breaks,
    "hardware": _hardware,
    "host-bound": _host_bound,
    "host-idle": _host_idle,
    "jit-not-in-effect": _not_compiled,
    "layout": _layout,
    "more-work": _more_work,
    "optimizer": _optimizer,
    "padding": _padding,
    "precision": _precision,
    "random": _random,
    "recomputation": _recomputation,
    "small-model": _small_model,
    "synchronisation": _synchronisation,
    "threads": _threads,
    "tiny-ops": _tiny,
    "unknown-work": _unknown,
}
