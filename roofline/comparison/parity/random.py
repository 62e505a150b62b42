"""Compare what two runs drop at random, by what they draw and what becomes of it.

Only dropout changes what is asked of the model. Numbers that are added, and whole numbers that say which row is taken
or seed a generator, are work like any other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from roofline import units
from roofline.analysis.analysis import Analysis, per_analysis
from roofline.comparison.parity.difference import SLIGHT, Difference, Pair, Severity
from roofline.comparison.parity.known_work import hidden
from roofline.core.readers import readers
from roofline.core.schema import Op, Profile, Signature

_SEEN = "random numbers are drawn", "no random numbers are seen"


class _Dropping(NamedTuple):
    """The dropping of a run: on (None: not known), at which recorded rate, whether it draws for it; in words."""

    on: bool | None
    rate: float | None
    drawn: bool
    words: str | None


def dropout(pair: Pair) -> list[Difference]:
    """Refuse dropout in one run only; name another rate, since it does not change the work.

    Who draws random numbers outside the optimizer drops something, whatever the switch says. Who is not seen to draw
    may do so where the switch says so, or in ops of unknown work that the other run does not have.
    seconds: |t_A - t_B| of what draws random numbers.
    """
    a, b = pair.against(_dropping)
    words, seconds = (a.words, b.words), pair.apart("class", "random")
    severity: Severity = "named"
    if {a.on, b.on} == {True, False}:
        text, severity = "Dropout is on in one run only", "refused"
    elif {a.on, b.on} == {True, None}:
        text = "The dropout of one run is not known"
    elif a.rate and b.rate and a.rate != b.rate:
        text = "The dropout rates differ"
    elif a.on and b.on and a.drawn != b.drawn:
        text, words = "Dropout is on in both runs and seen in one", _SEEN if a.drawn else _SEEN[::-1]
    else:
        return []
    return [pair.differ("dropout", words, text, severity, seconds)]


def _dropping(run: Analysis, other_run: Analysis) -> _Dropping:
    text = run.profile.switches.get("dropout")
    rate = None if text is None else _rate(text)
    drawing = _drawing(run)
    if drawing.noise < drawing.ops:
        return _Dropping(True, rate, True, text if rate else _SEEN[0])
    if text is not None:
        return _Dropping(bool(rate), rate, False, text)
    opaque = run.profile.compilation is not None and run.profile.compilation.opaque > 0
    if opaque or sum(hidden(run, other_run).values()) > SLIGHT:
        return _Dropping(None, None, False, None)
    return _Dropping(False, None, False, "no random numbers are drawn")


def _rate(text: str) -> float:
    """Read a recorded rate, the largest of several ("0.1, attention 0.0"); 0 for "off"; 1 for words that give none."""
    if text.strip().lower() in ("off", "false", "none", ""):
        return 0.0
    rates = []
    for word in text.replace(",", " ").split():
        try:
            rates.append(float(word))
        except ValueError:
            continue
    return max(rates) if rates else 1.0


#: What is drawn to be added and not to drop: no dropout draws from a normal distribution.
_NOISE = ("randn", "normal")
#: What is drawn evenly drops something where it is compared with a rate, or made 0 and 1 in another way.
_EVEN = re.compile("rand|uniform")
_DROPS = frozenset(("lt", "le", "gt", "ge", "where", "floor", "ceil", "round", "sign", "heaviside", "threshold"))
_DROPPING = re.compile("less|greater|compare|bernoulli|dropout|select")
#: Through such ops it is followed. An order, and what takes rows by number, makes no number 0.
_ON_THE_WAY = frozenset(("pointwise", "movement", "other"))
_ORDERS = frozenset(("sort", "argsort", "topk", "msort"))
#: Draws that TensorFlow types by the shape they are given, and those of 0 and 1, are none of whole numbers.
_FRACTIONS = re.compile("uniform(?!.*int)|bernoulli|dropout")


class _Drawing(NamedTuple):
    """Counts of the ops that draw random numbers outside the optimizer, and of those whose numbers drop nothing."""

    ops: int
    noise: int


@per_analysis
def _drawing(run: Analysis) -> _Drawing:
    """Count the ops that draw. Whole numbers that an op reads which draws are its seed, and judged with that op."""
    profile = run.profile
    random = {number for number, signature in enumerate(profile.signatures) if signature.op_class == "random"}
    drawn = [
        (number, signature)
        for number, op in enumerate(profile.ops)
        if op.signature in random or not random.isdisjoint(op.constituents)
        for signature, op_class, phase in (
            (profile.signatures[op.signature], run.op_class(op), profile.phases[op.phase]),
            *((part.signature, part.op_class, part.phase) for part in run.constituents(op)),
        )
        if op_class == "random" and phase != "optimizer"
    ]
    if not drawn:
        return _Drawing(0, 0)
    ops = {number for number, _ in drawn}
    read_by = [[row for rows in buffers for row in rows] for buffers in readers(profile)]
    drops = {is_integer: _drops(profile, read_by, is_integer) for is_integer in (False, True)}
    dropping, seeds = set[int](), set[int]()
    for number, signature in drawn:
        is_integer = _is_whole(signature)
        dropped = any(drops[is_integer][row] for row in read_by[number])
        if not _is_noise(profile.ops[number], signature, bool(read_by[number]), dropped):
            dropping.add(number)
        elif is_integer and not ops.isdisjoint(read_by[number]):
            seeds.add(number)
    # A seed alone drops nothing and adds nothing.
    noise = len(ops - dropping - seeds)
    return _Drawing(noise + len(dropping), noise)


def _is_noise(op: Op, drawn: Signature, read: bool, dropped: bool) -> bool:
    """Return whether random numbers cannot drop anything: by what draws them, or by all that is made of them op by op.

    Whole numbers that no op reads went to the host, and those in a kernel that computes on them are followed like
    others. Fractions in a fused kernel, or such that no op is seen to read, may drop.
    """
    name = drawn.name.lower()
    if "dropout" in name:
        return False
    bending = (function for function in drawn.cost.functions or () if not function.startswith("random"))
    if any(word in name for word in _NOISE) or any(bending):
        return True  # a function bent what was drawn evenly: Box and Muller's, or the inverse of a distribution
    followed = _is_whole(drawn) or (read and bool(_EVEN.search(name)) and not op.constituents)
    return followed and not dropped


def _is_whole(drawn: Signature) -> bool:
    """Return whether whole numbers are drawn: indices, an order, seeds; or the bits of which XLA makes fractions."""
    return "int" in (drawn.computes_in or "") and not _FRACTIONS.search(drawn.name.lower())


def _drops(profile: Profile, read_by: Sequence[Sequence[int]], integers: bool) -> list[bool]:
    """Return of each op whether it may make 0 of one number and 1 of another, or vector work with its results does.

    integers: what is followed are whole numbers. A generator works on them, choices among them included; a fused kernel
    that takes rows takes them by these numbers; and one that computes with fractions and is named for nothing may
    make fractions of them and drop by these, unless it says that it draws, which is judged by itself.
    """
    dropping = [False] * len(profile.ops)
    known: dict[tuple[int, ...], tuple[bool, bool]] = {}
    for number in reversed(range(len(profile.ops))):  # who reads comes later
        op = profile.ops[number]
        kind = op.signature, *op.constituents
        if kind not in known:
            known[kind] = _drops_by_itself([profile.signatures[index] for index in kind], integers)
        by_itself, hands_on = known[kind]
        dropping[number] = by_itself or (hands_on and any(dropping[row] for row in read_by[number]))
    return dropping


def _drops_by_itself(signatures: Sequence[Signature], integers: bool) -> tuple[bool, bool]:
    """Return whether an op of these signatures may make 0 of one number by itself, and whether it hands numbers on."""
    first, *fused = signatures
    names = [signature.name.lower() for signature in signatures]
    words = {word for name in names for word in re.split("[^a-z]+", name)}
    classes = {signature.op_class for signature in (signatures if integers else (first,))}
    if words & _ORDERS or "embedding" in classes:
        return False, False
    generator = integers and first.op_class == "random" and _is_whole(first)
    named = bool(words & _DROPS) or any(_DROPPING.search(name) for name in names)
    makes_fractions = integers and bool(fused) and "random" not in classes and "int" not in (first.computes_in or "")
    return (named and not generator) or makes_fractions, generator or first.op_class in _ON_THE_WAY


def noise(pair: Pair) -> list[Difference]:
    """Random numbers that drop nothing, in one run only, are more work.

    What they explain at most is not known: it is not drawing them alone, but also what is made of them.
    """
    a, b = pair.each(_drawing)
    if bool(a.noise) == bool(b.noise):
        return []
    # What drops something is drawn, too.
    words = [
        f"{units.count(run.noise) if run.noise else 'none'} of {units.count(run.ops)} ops that draw"
        if run.ops
        else "no op draws any"
        for run in (a, b)
    ]
    text = "Random numbers that drop nothing, as far as is seen, are drawn in one run only"
    return [pair.differ("random numbers", (words[0], words[1]), text)]
