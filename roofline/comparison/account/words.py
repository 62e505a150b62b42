"""Say a row of the account in one sentence. Plain text; each format escapes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from roofline import units
from roofline.analysis.gap_parts import PAGE_FAULTS
from roofline.comparison.account.row import NAMES, Amount, OpChange, Row
from roofline.units import LONGEST_NAME, plain


class Style(NamedTuple):
    """How rows are said. names: what the runs are called; classes: whether ops are named with their classes, as those
    of two frameworks, which bear other names; kernels: whether the ops of both launch kernels.
    """

    names: tuple[str, str]
    classes: bool = False
    kernels: bool = False


def sentence(row: Row, style: Style) -> str:
    """Say a row of the account."""
    names = style.names
    match row.kind:
        case "setting":
            return "; ".join(_setting(change, names) for change in row.ops) + "."
        case "only":
            return f"{_where(row)}{_only(row, style)}{_work(row, style)}."
        case "rate":
            return f"{_same(row, style)}{_roofs(row, names)}."
        case "gap":
            return f"{'' if row.place == PAGE_FAULTS else 'no op ran, '}{row.place}: {_part(row, names)}."


def _part(row: Row, names: tuple[str, str]) -> str:
    """Say how long a part of the gap takes in both runs, and where most of it is, or page faults beside it."""
    words = f"{_seconds(row.a.seconds)} in {names[0]}, {_seconds(row.b.seconds)} in {names[1]}"
    if row.place == PAGE_FAULTS:
        counts = [units.count(round(_number(value))) for change in row.ops for value in (change.a, change.b)]
        return (
            f"{words}, with {counts[0]} and {counts[1]} page faults a step. That was while ops ran: rows of the same "
            "ops, and what is not known, hold that much less"
        )
    if row.ops:
        change = row.ops[0]
        words += f", most of what differs {op_name(change.name)} ({units.seconds(abs(change.seconds or 0.0))})"
    return f"{words}; at most, as it was seen under the profiler alone" if row.upper else words


def _setting(change: OpChange, names: tuple[str, str]) -> str:
    a, b = ("not recorded" if value is None else plain(str(value)) for value in (change.a, change.b))
    return f"{plain(change.name)}: {a} in {names[0]}, {b} in {names[1]}"


def _where(row: Row) -> str:
    """Say at which places and in which phase the ops of a change are."""
    named, _, more = (row.place or "").partition(" and ")
    where = ", ".join(dict.fromkeys(plain(last_parts(scope)) for scope in named.split(", ")))
    where += f" and {plain(more)}" if more else ""
    where = ", ".join(dict.fromkeys(filter(None, (where, row.phase))))
    return f"{where}: " if where else ""


def last_parts(scope: str) -> str:
    """Return the last parts of a scope: of "bert/encoder/layer.*/attention/self" "layer.*/attention/self"."""
    return "/".join(scope.split("/")[-NAMES:])


def _only(row: Row, style: Style) -> str:
    """Say which ops each run has, the run that spends more first."""
    names = style.names
    slower, faster = (0, 1) if (row.seconds or 0.0) >= 0 else (1, 0)
    shown = [_more(row.ops, side) for side in (slower, faster)]
    typed = len({change.type for some in shown for change, _ in some[:NAMES]}) > 1
    ours, theirs = (_listed(some, typed=typed, classes=style.classes) for some in shown)
    if not ours:
        return f"{names[faster]} runs {theirs}, {names[slower]} none of it"
    if not theirs:
        return f"{names[slower]} runs {ours}, {names[faster]} none of it"
    alike = [all(_number(change.a) == _number(change.b) for change, _ in some) for some in shown]
    if all(alike):
        return f"both run {ours}, with other arguments"
    if alike[1]:
        return f"{names[slower]} runs {ours} more than {names[faster]}, and both run {theirs}"
    return f"{names[slower]} runs {ours} where {names[faster]} runs {theirs}"


def _more(ops: Sequence[OpChange], side: int) -> list[tuple[OpChange, float]]:
    """Return the ops that a run executes more often than the other one; where it has none such, all of its ops."""
    counts = [(change, _number((change.a, change.b)[side]), _number((change.b, change.a)[side])) for change in ops]
    more = [(change, count) for change, count, other in counts if count > other]
    return more or [(change, count) for change, count, _ in counts if count]


def _listed(some: Sequence[tuple[OpChange, float]], *, typed: bool, classes: bool) -> str:
    """List ops with how often they run; typed, classes: with their types and classes."""
    parts = []
    for number, (change, count) in enumerate(some[:NAMES], 1):
        words = f"{units.count(round(count))} {op_name(change.name)}"
        words += f" in {change.type}" if typed and change.type else ""
        # Several of one class have it behind the last.
        last = number == min(NAMES, len(some)) or change.classes != some[number][0].classes
        parts.append(words + (f" ({' and '.join(map(class_name, change.classes))})" if classes and last else ""))
    rest = round(sum(count for _, count in some[NAMES:]))
    return ", ".join(parts) + (f" and {units.count(rest)} more {'op' if rest == 1 else 'ops'}" if rest else "")


def class_name(op_class: str | None) -> str:
    """Return what people call a class of ops."""
    return "matmul" if op_class == "contraction" else op_class or ""


def op_name(name: str) -> str:
    """Return the name of an op without the namespace of its framework."""
    return plain(name.removeprefix("aten::"), LONGEST_NAME)


def _number(value: float | str | None) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def _work(row: Row, style: Style) -> str:
    """Say the time, rounds, kernels, bytes and dispatching of a change in each run."""
    amounts = [_amount(amount, row, style) for amount in (row.a, row.b)]
    return "".join(f"; {name}: {amount}" for name, amount in zip(style.names, amounts, strict=True) if amount)


def _amount(amount: Amount, row: Row, style: Style) -> str:
    """Say what one run does; of bytes nothing where not all are known of both."""
    launches = round(amount.launches)
    if not launches:
        return f"{units.seconds(amount.dispatch)} of dispatching" if amount.dispatch else ""
    single, several = ("kernel", "kernels") if style.kernels else ("launch", "launches")
    time = units.seconds(amount.seconds) + (f" in {units.count(amount.times)} rounds" if amount.times > 1 else "")
    parts = [time + (f" ({units.seconds(amount.dispatch)} of it dispatching)" if amount.dispatch else "")]
    parts.append(f"{units.count(launches)} {single if launches == 1 else several}")
    if amount.bytes and row.a.bytes is not None and row.b.bytes is not None:
        parts.append(f"{units.byte(amount.bytes)} moved")
    return ", ".join(parts)


def _same(row: Row, style: Style) -> str:
    """Say which ops are the same; of two frameworks, what they are called."""
    count = round(sum(_number(change.a) for change in row.ops))
    called = class_name(row.op_class)
    same = f"the same {called} op" if count == 1 else f"the same {units.count(count)} {called} ops"
    if not style.classes:
        return same
    a, b = (_names([change for change in row.ops if (change.a, change.b)[side]]) for side in (0, 1))
    return f"{same} ({a} in {style.names[0]}, {b} in {style.names[1]})"


def _names(ops: Sequence[OpChange]) -> str:
    """List the names of ops."""
    names = list(dict.fromkeys(op_name(change.name) for change in ops))
    return ", ".join(names[:NAMES]) + (" and others" if len(names) > NAMES else "")


def _roofs(row: Row, names: tuple[str, str]) -> str:
    roofs = [row.a.of_roof, row.b.of_roof]
    times = f": {units.seconds(row.a.seconds)} in {names[0]}, {units.seconds(row.b.seconds)} in {names[1]}"
    if None in roofs:
        return times
    a, b = (units.percent(roof or 0.0, 0) for roof in roofs)
    return f"{times}; at {a} and {b} of the roof"


def _seconds(seconds: float) -> str:
    return units.seconds(seconds) if seconds else "none"
