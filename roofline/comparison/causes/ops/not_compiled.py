"""A step that was to be compiled and was not: what a compiler would have taken away is not its cause, but this is."""

from __future__ import annotations

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.compiled import compiled_in_vain, in_pieces
from roofline.comparison.causes.facts import Facts
from roofline.core.framework import written_in
from roofline.core.switch import COMPILED_AWAY, COMPILED_THERE

#: Where no flag says what is compiled, but the program itself: by what the program is written in, what to write there.
_WRITTEN = {"jax": "wrap the whole step in jax.jit"}
#: The same of the user's own step alone: a model of ours is given a flag.
_KERAS = (
    "leave out run_eagerly=True, compile the model with jit_compile=True, and let it run the step (train_on_batch, "
    "predict_on_batch)"
)
_WRITTEN_BY_THE_USER = {"keras": _KERAS, "tf_keras": _KERAS}
_FLAG = "check that the flag reaches the model that runs, and what breaks its graph (roofline show)"


def not_in_effect(slower: Analysis, other: Analysis) -> bool:
    """Whether only the slower run got a program for each op, or ran mostly what no compiler had a part in."""
    if in_pieces(slower, other):
        return True
    return compiled_in_vain(slower, other) and slower.profile.mode != "generate"


def not_used(slower: Analysis, other: Analysis) -> bool:
    """Whether the slower run's loop calls something else than what was compiled."""
    return compiled_in_vain(slower, other) and slower.profile.mode == "generate"


def sentence(facts: Facts) -> str:
    """What it costs, and the launches of both steps."""
    return (
        f"most of the step of {facts.more} was not compiled: {units.seconds(facts.seconds)} more, "
        f"{units.count(facts.launches_more)} launches against {units.count(facts.launches_less)}."
    )


def sentence_of_generate(facts: Facts) -> str:
    """The same of a loop that generates."""
    return (
        f"{facts.more} compiled a function that its generate loop does not call: {units.seconds(facts.seconds)} more, "
        f"{units.count(facts.launches_more)} launches against {units.count(facts.launches_less)}."
    )


def advice(facts: Facts) -> str:
    """Where to say that the step is to be compiled."""
    run = facts.run_more.profile
    words = {**_WRITTEN, **(_WRITTEN_BY_THE_USER if run.own_step else {})}
    return words.get(written_in(run), _FLAG)


def _labelled(what: str, facts: Facts) -> str:
    return f"{what} ({units.count(facts.launches_more)} launches against {units.count(facts.launches_less)})"


CAUSES = (
    Cause(
        name="jit-not-in-effect",
        sentence=sentence,
        advice=advice,
        label=lambda facts: _labelled("a step that is not compiled", facts),
        two_signs=True,
        stands_behind="compilable",
        prevails=not_in_effect,
        proved_by=(COMPILED_AWAY, COMPILED_THERE),
    ),
    Cause(
        name="compiled-not-used",
        after=("jit-not-in-effect",),
        sentence=sentence_of_generate,
        advice="compile what the loop calls (the model's forward, or generate itself)",
        label=lambda facts: _labelled("a compiled function that is not called", facts),
        two_signs=True,
        stands_behind="compilable",
        prevails=not_used,
    ),
)
