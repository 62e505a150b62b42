"""Whether both runs drop anything at random, by what they draw and what becomes of it.

Only dropout changes what is asked of the model. Numbers that are added, and whole numbers that say which row is taken
or seed a generator, are work like any other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.comparison.parity.difference import SLIGHT, Difference, Pair
from roofline.comparison.parity.known_work import hidden
from roofline.core.readers import readers
from roofline.core.schema import Op, Profile, Signature


class _Dropping(NamedTuple):
    """on: whether a run drops anything, None: not known; rate: as recorded; drawn: whether it draws; told: in words."""

    on: bool | None
    rate: float | None
    drawn: bool
    told: str | None


def dropout(pair: Pair) -> list[Difference]:
    """Dropout in one run only is refused; another rate is named, since it does not change the work.

    Who draws random numbers outside the optimizer drops something, whatever the switch says. Who is not seen to draw
    may do so where the switch says so, or in ops of unknown work that the other run does not have.
    seconds: |t_A - t_B| of what draws random numbers.
    """
    a, b = _dropping(pair.a, pair.b), _dropping(pair.b, pair.a)
    told, seconds = (a.told, b.told), pair.apart("class", ("random",))
    if {a.on, b.on} == {True, False}:
        return [pair.differ("dropout", told, "Dropout is on in one run only", "refused", seconds)]
    if a.on != b.on and (a.on or b.on or None not in (a.rate, b.rate)):
        return [pair.differ("dropout", told, "The dropout of one run is not known", seconds=seconds)]
    if a.rate and b.rate and a.rate != b.rate:
        return [pair.differ("dropout", told, "The dropout rates differ", seconds=seconds)]
    if a.on and b.on and a.drawn != b.drawn:
        seen, unseen = "random numbers are drawn", "no random numbers are seen"
        told = (seen if a.drawn else unseen, seen if b.drawn else unseen)
        return [pair.differ("dropout", told, "Dropout is on in both runs and seen in one", seconds=seconds)]
    return []


def _dropping(run: Analysis, other: Analysis) -> _Dropping:
    text = run.profile.switches.get("dropout")
    rate, drawn = None if text is None else _rate(text), draws(run)
    if drawn:
        return _Dropping(True, rate, True, text if rate else "random numbers are drawn")
    if text is not None:
        return _Dropping(bool(rate), rate, False, text)
    opaque = run.profile.compilation is not None and run.profile.compilation.opaque > 0
    if opaque or sum(hidden(run, other).values()) > SLIGHT:
        return _Dropping(None, None, False, None)
    return _Dropping(False, None, False, "no random numbers are drawn")


def _rate(text: str) -> float:
    """The recorded rate, the largest of several ("0.1, attention 0.0"); 0 for "off"; 1 for words that give none."""
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


def draws(run: Analysis) -> bool:
    """Whether a step draws random numbers outside the optimizer that can drop something."""
    drawn = _drawing_ops(run)
    return len(drawn.noise) < len(drawn.ops)


class _Drawing(NamedTuple):
    """Numbers of the ops that draw random numbers outside the optimizer, and of those whose numbers drop nothing."""

    ops: frozenset[int]
    noise: frozenset[int]


def _drawing_ops(run: Analysis) -> _Drawing:
    """List the ops that draw. Whole numbers that an op reads which draws are its seed, and judged with that op."""
    profile = run.profile
    drawn = [
        (number, signature)
        for number, op in enumerate(profile.ops)
        for signature, op_class, phase in (
            (profile.signatures[op.signature], run.op_class(op), profile.phases[op.phase]),
            *((part.signature, part.op_class, part.phase) for part in run.constituents(op)),
        )
        if op_class == "random" and phase != "optimizer"
    ]
    ops = frozenset(number for number, _ in drawn)
    if not ops:
        return _Drawing(ops, ops)
    read_by = readers(profile)
    drops = {whole: _drops(profile, read_by, whole) for whole in (False, True)}
    dropping = set[int]()
    seeds = set[int]()
    for number, signature in drawn:
        if not _is_noise(profile.ops[number], signature, read_by[number], drops[_is_whole(signature)]):
            dropping.add(number)
        elif _is_whole(signature) and any(row in ops for rows in read_by[number] for row in rows):
            seeds.add(number)
    # A seed alone drops nothing and adds nothing.
    return _Drawing(ops - (seeds - dropping), ops - dropping - seeds)


def _is_noise(op: Op, drawn: Signature, read_by: Sequence[Sequence[int]], drops: Sequence[bool]) -> bool:
    """Whether random numbers cannot drop anything: by what draws them, or by all that is made of them op by op.

    Whole numbers that no op reads went to the host, and those in a kernel that computes on them are followed like
    others. Fractions in a fused kernel, or such that no op is seen to read, may drop.
    """
    name = drawn.name.lower()
    if "dropout" in name:
        return False
    bending = (function for function in drawn.cost.functions or () if not function.startswith("random"))
    if any(word in name for word in _NOISE) or any(bending):
        return True  # a function bent what was drawn evenly: Box and Muller's, or the inverse of a distribution
    rows = [row for each in read_by for row in each]
    if _is_whole(drawn):
        return not any(drops[row] for row in rows)
    return bool(rows) and bool(_EVEN.search(name)) and not op.constituents and not any(drops[row] for row in rows)


def _is_whole(drawn: Signature) -> bool:
    """Whether whole numbers are drawn: indices, an order, seeds; or the bits of which XLA makes fractions."""
    return "int" in (drawn.computes_in or "") and not _FRACTIONS.search(drawn.name.lower())


def _drops(profile: Profile, read_by: Sequence[Sequence[Sequence[int]]], whole: bool) -> list[bool]:
    """For each op whether it may make 0 of one number and 1 of another, or vector work with its results does.

    whole: what is followed are whole numbers. A generator works on them, choices among them included; a fused kernel
    that takes rows takes them by these numbers; and one that computes with fractions and is named for nothing may
    make fractions of them and drop by these, unless it says that it draws, which is judged by itself.
    """
    found = [False] * len(profile.ops)
    for number in range(len(profile.ops) - 1, -1, -1):  # who reads comes later
        op = profile.ops[number]
        signatures = [profile.signatures[one] for one in (op.signature, *op.constituents)]
        names = [one.name.lower() for one in signatures]
        words = {word for name in names for word in re.split("[^a-z]+", name)}
        classes = {one.op_class for one in (signatures if whole else signatures[:1])}
        if words & _ORDERS or "embedding" in classes:
            continue
        generator = whole and signatures[0].op_class == "random" and _is_whole(signatures[0])
        found[number] = not generator and (bool(words & _DROPS) or any(_DROPPING.search(name) for name in names))
        if whole and op.constituents and "random" not in classes and "int" not in (signatures[0].computes_in or ""):
            found[number] = True
        if not found[number] and (generator or signatures[0].op_class in _ON_THE_WAY):
            found[number] = any(found[row] for rows in read_by[number] for row in rows)
    return found


def noise(pair: Pair) -> list[Difference]:
    """Random numbers that drop nothing, in one run only, are more work.

    What they explain at most is not known: it is not drawing them alone, but also what is made of them.
    """
    a, b = pair.each(_drawing_ops)
    if bool(a.noise) == bool(b.noise):
        return []
    text = "Random numbers that drop nothing, as far as is seen, are drawn in one run only"
    return [pair.differ("random numbers", (_drawers(a), _drawers(b)), text)]


def _drawers(drawn: _Drawing) -> str:
    """Say how many of the ops that draw draw such numbers: what drops something is drawn, too."""
    if not drawn.ops:
        return "no op draws any"
    return f"{units.count(len(drawn.noise)) if drawn.noise else 'none'} of {units.count(len(drawn.ops))} ops that draw"
