"""Whether the forward passes of two runs do the same work, by their model FLOPs (docs/comparing.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from roofline.analysis.analysis import Analysis
from roofline.comparison.parity.contractions import Product, differing, most_apart, named, products, written_out
from roofline.comparison.parity.difference import SAME_WORK, SLIGHT, Difference, Pair, Severity
from roofline.comparison.parity.known_work import (
    AFTER,
    asks_for_less,
    hidden,
    model_flops,
    phases_unresolved,
    same_flops,
    words,
)
from roofline.comparison.parity.other_work import Seconds, can_explain, more_work, unknown_can_explain

#: Backward asks for at most two products for each of the forward pass: by definition, the gradients of two operands.
_BACKWARD_PER_FORWARD = 2
_PASS = {"prefill": "prefill", "decode": "decoding"}


class Verified(Enum):
    """What is known about the forward model FLOPs of two runs."""

    SAME = "same"
    DIFFERENT = "different"
    NOT = "not verified"


@dataclass(frozen=True)
class _Work:
    """The work of both runs by phase."""

    pair: Pair
    known: tuple[Mapping[str, float], Mapping[str, float]]
    unknown: tuple[Mapping[str, float], Mapping[str, float]]

    @cached_property
    def phases(self) -> list[str]:
        """Phases of the forward pass."""
        return sorted({phase for some in (*self.known, *self.unknown) for phase in some}.difference(AFTER))

    @cached_property
    def products(self) -> tuple[Mapping[str, Counter[Product]], Mapping[str, Counter[Product]]]:
        """How often each run executes each product, by phase."""
        return self.pair.each(products)

    def products_of(self, phase: str) -> tuple[Counter[Product], Counter[Product]]:
        """How often each run executes each product of a phase."""
        a, b = (some.get(phase, Counter[Product]()) for some in self.products)
        return a, b

    @cached_property
    def written(self) -> Mapping[str, tuple[Counter[Product], Counter[Product]]]:
        """Products that a run writes as multiplications and sums where the other one multiplies matrices."""
        found = {}
        for phase in self.phases:
            a, b = self.products_of(phase)
            if not same_flops(*of(self.known, phase)):
                found[phase] = written_out(self.pair.a, phase, b - a), written_out(self.pair.b, phase, a - b)
        return found

    @cached_property
    def flops(self) -> tuple[Mapping[str, float], Mapping[str, float]]:
        """Model FLOPs by phase, with what a run writes as multiplications and sums."""
        sums = tuple(dict(some) for some in self.known)
        for phase, written in self.written.items():
            for flops, counts in zip(sums, written, strict=True):
                flops[phase] = flops.get(phase, 0.0) + sum(each.flops * times for each, times in counts.items())
        return sums[0], sums[1]

    @cached_property
    def more(self) -> Mapping[str, Seconds]:
        """At most how long each run needs for what only it is asked for, by phase [s]."""
        return more_work(self.pair, self.flops)

    @cached_property
    def explains(self) -> bool:
        """Whether other work can explain why one run is slower."""
        a, b = (sum(seconds[side] for seconds in self.more.values()) for side in (0, 1))
        return can_explain(self.pair, (a, b))

    def unknown_explains(self, phase: str, *, called_back: bool) -> bool:
        """Whether unknown work of a phase can; called_back: that which calls Python back, too."""
        runs = (self.pair.a, self.pair.b), (self.pair.b, self.pair.a)
        a, b = (hidden(*both, called_back).get(phase, 0.0) * both[0].total.own_seconds for both in runs)
        return unknown_can_explain(self.pair, (a, b))


def of(both: tuple[Mapping[str, float], Mapping[str, float]], phase: str) -> tuple[float, float]:
    """Return the values of a phase, 0 where there is none."""
    return both[0].get(phase, 0.0), both[1].get(phase, 0.0)


def forward_work(pair: Pair) -> tuple[list[Difference], Verified]:
    """Compare forward model FLOPs, to 0.1 %, those of prefill and decode each; see `_judge`.

    Where forward and backward of a run are not told apart, the whole step is compared, see `_whole`.
    """
    if any(pair.each(phases_unresolved)):
        return _whole(pair)
    work = _Work(pair, pair.each(model_flops), (hidden(pair.a, pair.b), hidden(pair.b, pair.a)))
    judged = {phase: _judge(work, phase) for phase in work.phases}
    found = [difference for difference in judged.values() if difference is not None]
    if any(difference.severity == "refused" for difference in found):
        return found, Verified.DIFFERENT
    doubtful = any(
        difference.seconds is not None or max(of(work.unknown, phase)) > SLIGHT
        for phase, difference in judged.items()
        if difference is not None
    )
    return found, Verified.NOT if doubtful else Verified.SAME


def _judge(work: _Work, phase: str) -> Difference | None:
    """Judge one phase.

    Runs that differ in model FLOPs are refused where that can explain why one is slower (`other_work`), else it is
    named. Where ops of unknown work may hide some, a run can only ask for more than is known of it: it differs where
    the known part alone is more than all of the other run, the most that it can have done in its ops of unknown work
    included. Else it is not verified, which is named, unless nothing is known of a run, or its ops of unknown work can
    be why it is slower. A run that hides nothing shares all of its work with one of which as many FLOPs are known: what
    that one has of unknown work stands beside it, however long it takes, and is named.
    """
    a, b = of(work.flops, phase)
    unknown = of(work.unknown, phase)
    unseen = unknown[1] if a > b else unknown[0]  # only what asks for less may hide more
    the_pass = f"the {_PASS.get(phase, 'forward pass')}"
    if same_flops(a, b):
        beside = a > 0 and min(unknown) <= SLIGHT
        if not beside and work.unknown_explains(phase, called_back=False):
            text = f"Unknown work of {the_pass} that the other run lacks takes as long as the runs differ by"
            return _differ(work, phase, text, "refused")
        if max(unknown) > SLIGHT:
            return _differ(work, phase, f"The model FLOPs of {the_pass} could not be verified")
        return _differ(work, phase, _as_written(work, phase)) if any(work.written.get(phase, ())) else None
    apart = most_apart(work.pair.names, differing(phase, *work.products_of(phase)))
    if _generate_alike(work.pair):
        text = "The same tokens are generated by other products, as with another cache of keys and values"
        return _differ(work, phase, text)
    if unseen <= SLIGHT or _too_little(work, phase):
        seconds = max(work.more[phase])
        if work.explains:
            text = f"The model FLOPs of {the_pass} differ{apart}, so the runs do different work"
            return _differ(work, phase, text, "refused", seconds)
        return _differ(work, phase, f"The model FLOPs of {the_pass} differ{apart}", "named", seconds)
    if min(a, b) == 0:
        return _differ(work, phase, f"The model FLOPs of {the_pass} of one run are not known", "refused")
    if work.unknown_explains(phase, called_back=True):
        text = f"Unknown work of {the_pass} that the other run lacks takes as long as the runs differ by"
        return _differ(work, phase, text, "refused")
    return _differ(work, phase, f"The model FLOPs of {the_pass} could not be verified")


def _differ(
    work: _Work, phase: str, text: str, severity: Severity = "named", seconds: float | None = None
) -> Difference:
    what = f"model FLOPs {phase}" if phase in ("forward", *_PASS) else "model FLOPs forward"
    known, unknown = of(work.known, phase), of(work.unknown, phase)
    apart = () if same_flops(*known) else differing(phase, *work.products_of(phase))
    shown = words(known[0], unknown[0]), words(known[1], unknown[1])
    return work.pair.differ(what, shown, text, severity, seconds, apart)


def _as_written(work: _Work, phase: str) -> str:
    """Say which products a run writes as multiplications and sums."""
    told = []
    for run, counts in zip(work.pair.names, work.written[phase], strict=True):
        for product, times in counts.most_common(1):
            more = f" and {len(counts) - 1} more kinds" if len(counts) > 1 else ""
            told.append(f"{run} writes {times} {named(product, times)}{more} as multiplications and sums")
    return "; ".join(told)


def _too_little(work: _Work, phase: str) -> bool:
    """Whether the run that asks for less does so even if its ops of unknown work do nothing but products."""
    a, b = of(work.flops, phase)
    runs = (work.pair.b, work.pair.a) if a > b else (work.pair.a, work.pair.b)
    return asks_for_less(*runs, phase, min(a, b), max(a, b))


def _generate_alike(pair: Pair) -> bool:
    """Whether both runs give prompts of the same size as many new tokens.

    Then what else they multiply is how they do it: a cache with room for tokens that are not there yet, a prompt that
    is filled up to the length of the result, no cache at all.
    """
    a, b = pair.a.profile, pair.b.profile
    asked = ("batch", "seq", "new_tokens", "parameters")
    return a.mode == b.mode == "generate" and all(
        getattr(a, name) is not None and getattr(a, name) == getattr(b, name) for name in asked
    )


def _whole(pair: Pair) -> tuple[list[Difference], Verified]:
    """The whole step, where a run does not tell forward from backward.

    The same in all is the same work. Otherwise a forward pass of such a run is between a third of its step and all of
    it, since backward asks for two products per product: the other run's is compared with that range.
    """
    totals = [sum(model_flops(run).values()) for run in (pair.a, pair.b)]
    unseen = [sum(hidden(run, other).values()) for run, other in ((pair.a, pair.b), (pair.b, pair.a))]
    shown = (words(totals[0], unseen[0]), words(totals[1], unseen[1]))
    if same_flops(*totals) and max(unseen) <= SLIGHT:
        return [], Verified.SAME
    ranges = [_range(run) for run in (pair.a, pair.b)]
    seconds = [0.0, 0.0]
    for side, run in enumerate((pair.a, pair.b)):
        least, most = ranges[side][0], ranges[1 - side][1]
        if unseen[1 - side] <= SLIGHT and least > most * (1 + SAME_WORK):
            seconds[side] = run.wall * (least - most) / least
    text = "Forward and backward are not told apart, and the model FLOPs of the step differ"
    if not any(seconds):
        text = "Forward and backward are not told apart, so the model FLOPs of the forward pass could not be verified"
        return [pair.differ("model FLOPs forward", shown, text)], Verified.NOT
    refused = can_explain(pair, (seconds[0], seconds[1]))
    found = pair.differ("model FLOPs forward", shown, text, "refused" if refused else "named", max(seconds))
    return [found], Verified.DIFFERENT if refused else Verified.NOT


def _range(analysis: Analysis) -> tuple[float, float]:
    """The least and the most that the forward pass may ask for [FLOP]."""
    work = model_flops(analysis)
    if phases_unresolved(analysis):
        whole = sum(work.values())
        return whole / (1 + _BACKWARD_PER_FORWARD), whole
    forward = sum(flops for phase, flops in work.items() if phase not in AFTER)
    return forward, forward
