"""Say a row of the account in one sentence. Plain text; each format escapes it."""

from __future__ import annotations

from collections.abc import Sequence

from roofline import units
from roofline.analysis.gap_parts import DISPATCHING, NOT_KNOWN, OUTSIDE, PAGE_FAULTS
from roofline.analysis.scope_names import name_scopes
from roofline.comparison.account.row import MOVED_BY, NAMES, NAMESPACE, SAME_OPS, OpChange, Row, Style
from roofline.core.statistics import ROUNDING
from roofline.units import LONGEST_NAME, plain

#: How sentences call some parts of a gap.
_SAID = {
    PAGE_FAULTS: "page faults",
    SAME_OPS: f"{DISPATCHING} the ops that both run",
    NOT_KNOWN: "cause not known",
    OUTSIDE: "in Python and other code between ops",
}


def sentence(row: Row, style: Style) -> str:
    """Say a row of the account."""
    names = style.names
    match row.kind:
        case "setting":
            return "; ".join(_setting(change, names) for change in row.ops) + "."
        case "only":
            amounts = zip(names, (describe_amount(side, row, style) for side in (0, 1)), strict=True)
            work = "".join(f"; {name}: {words}" for name, words in amounts if words)
            return f"{': '.join(filter(None, (where(row, style), _only(row, style))))}{work}{_moved(row, names)}."
        case "rate":
            return f"{_same(row, style)}{_roofs(row, names)}{_moved(row, names)}."
        case "gap" if None in (row.a.seconds, row.b.seconds):
            times = dict(zip(names, (row.a.seconds, row.b.seconds), strict=True))
            unseen = " and ".join(name for name, time in times.items() if time is None)
            timed = "".join(f"; those of {name} take {units.seconds(time)}" for name, time in times.items() if time)
            return f"{row.place}, as the ops of {unseen} were not seen{timed}."
        case "gap":
            place = _SAID.get(row.place or "", row.place)
            if row.place != PAGE_FAULTS:
                place = f"{'GPU idle' if style.kernels else 'time without an op'}, {place}"
            return f"{place}: {_part(row, names)}{_moved(row, names)}."


def _moved(row: Row, names: tuple[str, str]) -> str:
    """Say which part of the difference of a row's times is in the row of page faults, and in which run it is more."""
    if not any(note.step == MOVED_BY for note in row.notes):
        return ""
    moved = (row.a.seconds or 0.0) - (row.b.seconds or 0.0) - (row.seconds or 0.0)
    return f"; {names[moved < 0]} has {units.seconds(abs(moved))} more of page faults in it, which another row counts"


def _part(row: Row, names: tuple[str, str]) -> str:
    """Say how long a part of the gap takes in both runs, and where most of their difference is, or page faults."""
    bound = "at most " if row.place == PAGE_FAULTS else ""
    words = ", ".join(
        f"{bound if amount.seconds else ''}{_seconds(amount.seconds)} in {name}"
        for amount, name in zip((row.a, row.b), names, strict=True)
    )
    if row.place == PAGE_FAULTS:
        a, b = (units.count(round(count)) for count in row.ops[0].counts)
        moved, extra = abs(row.seconds or 0.0), abs((row.a.seconds or 0.0) - (row.b.seconds or 0.0))
        held = "that much" if moved >= extra * (1 - ROUNDING) else f"{units.seconds(moved)} of {units.seconds(extra)}"
        return f"{words}, for {a} and {b} of them a step, inside ops: {held} is taken off other rows, which say so"
    words += " (in profiled steps, and the profiler may lengthen both times)" if row.upper else ""
    return f"{words}; {_most_of_difference(row.ops[0], names)}" if row.ops else words


def _most_of_difference(change: OpChange, names: tuple[str, str]) -> str:
    """Say before which ops the hosts are outside of the framework for longer in one run."""
    longer = 0 if (change.seconds or 0.0) > 0 else 1
    count = round(change.counts[longer])
    op, calls = op_name(change.name.removeprefix("before ")), "a call" if count == 1 else f"{units.count(count)} calls"
    time = units.seconds(abs(change.seconds or 0.0))
    return f"{time} of the difference is just before {calls} of {op} in {names[longer]}"


def _setting(change: OpChange, names: tuple[str, str]) -> str:
    a, b = ("not recorded" if value is None else plain(str(value)) for value in (change.a, change.b))
    return f"{plain(change.name)}: {a} in {names[0]}, {b} in {names[1]}"


def where(row: Row, style: Style) -> str:
    """Say at which places of either run and in which phase the ops of a change are; empty where nothing says so."""
    words, (a, b) = [name_scopes(row.scopes)], row.run_scopes
    if a and b and not {*a} & {*b}:  # both runs have names of their own
        words = [f"{name}: {name_scopes(scopes)}" for name, scopes in zip(style.names, (a, b), strict=True)]
    return ("; " if len(words) > 1 else ", ").join(dict.fromkeys(filter(None, (*words, row.phase))))


def _only(row: Row, style: Style) -> str:
    """Say which ops each run has, the run that spends more first."""
    slower, faster = style.names[:: row.sign]
    ours, theirs = list_ops(row, style)
    if not ours or not theirs:
        runs, other = (slower, faster) if ours else (faster, slower)
        return f"{runs} runs {ours or theirs}, {other} nothing instead"
    others = " and ".join(row.differing)
    match [is_shared(row, side) for side in (0, 1)[:: row.sign]]:
        case [True, True]:
            return f"both run {ours}, with {f'other {others}' if others else 'the same shapes and types'}"
        case [False, True]:
            return f"{slower} runs {ours} more than {faster}, and both run {theirs}"
        case [True, False]:
            return f"{faster} runs {theirs} more than {slower}, and both run {ours}"
        case _:
            return f"{slower} runs {ours} where {faster} runs {theirs}"


def list_ops(row: Row, style: Style) -> tuple[str, str]:
    """List the ops of each run, those first that it has more often than the other one; of the slower run first."""
    sides = (0, 1)[:: row.sign]
    shown = [_executed_oftener(row.ops, side) for side in sides]
    typed = len({change.type for some in shown for change in some[:NAMES]}) > 1
    numbers = [round(sum(change.counts[side] for change in row.ops)) for side in sides]
    ours, theirs = (_listed(*some, typed=typed, style=style) for some in zip(shown, sides, numbers, strict=True))
    return ours, theirs


def is_shared(row: Row, side: int) -> bool:
    """Return whether a run has no op more often than the other one, but some as often."""
    more = _executed_oftener(row.ops, side)
    return bool(more) and all(change.counts[0] == change.counts[1] for change in more)


def _executed_oftener(ops: Sequence[OpChange], side: int) -> list[OpChange]:
    """Return the ops that a run executes more often than the other one; where it has none such, all of its ops."""
    oftener = [change for change in ops if change.counts[side] > change.counts[1 - side]]
    return oftener or [change for change in ops if change.counts[side]]


def _listed(ops: Sequence[OpChange], side: int, number: int, *, typed: bool, style: Style) -> str:
    """List ops with how often a run executes them, and how many more of `number` it has; typed: with their types."""
    parts = []
    for place, change in enumerate(ops[:NAMES], 1):
        words = "part of " if change.is_part else ""
        words += f"{units.count(round(change.counts[side]))} x {op_name(change.name)}"
        words += f" in {change.type}" if typed and change.type else ""
        # Several of one class have it behind the last.
        last = place == min(NAMES, len(ops)) or change.classes != ops[place].classes
        parts.append(words + (f" ({' and '.join(map(class_name, change.classes))})" if style.classes and last else ""))
    extra = number - sum(round(change.counts[side]) for change in ops[:NAMES])
    return ", ".join(parts) + (f" and {units.count(extra)} more {'op' if extra == 1 else 'ops'}" if extra else "")


def class_name(op_class: str | None) -> str:
    """Return what people call a class of ops."""
    return "matmul" if op_class == "contraction" else op_class or ""


def op_name(name: str) -> str:
    """Return the name of an op without the namespace of its framework."""
    return plain(name.removeprefix(NAMESPACE), LONGEST_NAME)


def describe_amount(side: int, row: Row, style: Style) -> str:
    """Say the time, kernels, rounds, dispatching and bytes of one run; no bytes where not all are known of both."""
    amount = (row.a, row.b)[side]
    launches, ops = round(amount.launches), round(sum(change.counts[side] for change in row.ops))
    if not launches:
        return f"{units.seconds(amount.dispatch)} of dispatching the op after" if amount.dispatch else ""
    noun = f"{units.count(launches)} {'kernel' if style.kernels else 'call'}{'' if launches == 1 else 's'}"
    noun = f"{units.count(ops)} ops ({noun})" if style.kernels and ops != launches else noun
    noun += f" ({units.count(amount.times)} rounds)" if amount.times > 1 else ""
    parts = [f"{_seconds((amount.seconds or 0.0) - amount.dispatch)} in {noun}"]
    if amount.dispatch:
        parts.append(f"{units.seconds(amount.dispatch)} {'GPU idle while ' * style.kernels}dispatching")
    if amount.bytes and row.a.bytes is not None and row.b.bytes is not None:
        parts.append(f"{units.byte(amount.bytes)} moved")
    return ", ".join(parts)


def _same(row: Row, style: Style) -> str:
    """Say which ops are the same; of two frameworks, what they are called."""
    count = round(sum(change.counts[0] for change in row.ops))
    kind = class_name(row.op_class)
    words = f"the same {kind} op" if count == 1 else f"the same {units.count(count)} {kind} ops"
    if not style.classes:
        return words
    called = []
    for side, run in enumerate(style.names):
        names = list(dict.fromkeys(op_name(change.name) for change in row.ops if change.counts[side]))
        called.append(f"{', '.join(names[:NAMES])}{' and others' if len(names) > NAMES else ''} in {run}")
    return f"{words} ({', '.join(called)})"


def _roofs(row: Row, names: tuple[str, str]) -> str:
    roofs = [row.a.of_roof, row.b.of_roof]
    amounts = zip((row.a, row.b), names, strict=True)
    times = f": {', '.join(f'{units.seconds(amount.seconds or 0.0)} in {name}' for amount, name in amounts)}"
    if None in roofs:
        return times
    a, b = (units.percent(roof or 0.0, 0) for roof in roofs)
    return f"{times}; at {a} and {b} of the roof"


def _seconds(seconds: float | None) -> str:
    return units.seconds(seconds) if seconds else "none"
