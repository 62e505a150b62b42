"""The collectives of a trace of one rank: what each exchanges, when it began, and what ran before it.

    traced = collectives(trace, links, marks, step)       # None where none ran on the device in a step

A collective ends on all of its ranks at one time, and cannot end before its last rank has begun. So the traces of all
ranks together tell who is waited for, although their clocks need not agree (`roofline.ranks`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from roofline.core.cost import Cost
from roofline.core.schema import Collectives, Message
from roofline.core.validate import LONGEST
from roofline.costs.counted import Counted
from roofline.importing.work import communication
from roofline.traces import intervals
from roofline.traces.kineto import period
from roofline.traces.kineto.links import Links
from roofline.traces.kineto.reader import KinetoTrace
from roofline.traces.kineto.steps import Steps
from roofline.traces.rows import Rows
from roofline.units import cut

#: The first collectives of a trace are kept, at about 60 bytes each. By choice.
MOST = 100_000
#: Ranks of a group that are listed, and letters of a name.
_MEMBERS, _LETTERS = 4096, 120


def collectives(
    trace: KinetoTrace, links: Links, marks: Steps, step: Rows, owner: Rows, counted: Counted
) -> Collectives | None:
    """Return the collectives of the steps of a trace; None where there are none.

    step, owner: int64[device], the step and the counted op of each device event, -1 for none.
    """
    device, is_comm = trace.device, communication.device_rows(trace, links)
    rows = np.flatnonzero(is_comm & (step >= 0))
    rows = rows[np.argsort(device.start[rows], kind="stable")][:MOST]
    if not len(rows):
        return None
    messages: dict[Message, int] = {}
    codes = []
    for row in rows.tolist():
        op = int(owner[row])
        message = _message(trace, links, row, counted.ops[op].costed.cost if op >= 0 else None)
        codes.append(messages.setdefault(message, len(messages)))
    begin = int(marks.start[0]) if marks.source else int(device.start.min())
    start = device.start[rows]
    # What ran before counts from the end of all collectives so far: a later one may wait in its queue behind them.
    free = np.maximum.accumulate(np.append(begin, device.end[rows]))[:-1]
    free = np.minimum(free, start)
    computing = intervals.covered(device.start[~is_comm], device.end[~is_comm], free, start)
    origin, _ = period.bounds(trace)
    numbers = np.where(marks.number <= LONGEST, marks.number, np.arange(len(marks)))
    columns = (numbers[step[rows]], start - origin, device.duration[rows], start - free, computing)
    return Collectives(
        messages=tuple(messages),
        message=tuple(codes),
        **{name: tuple(column.tolist()) for name, column in zip(_COLUMNS, columns, strict=True)},
    )


def beyond_most(trace: KinetoTrace, links: Links, step: Rows, kept: Collectives | None) -> list[str]:
    """Warn of collectives in the steps of a trace that are not kept, so that ranks are told apart by the first alone.

    step: as above.
    """
    if kept is None or len(kept.message) < MOST:
        return []
    number = int((communication.device_rows(trace, links) & (step >= 0)).sum())
    return [f"of {number:,} collectives the first {MOST:,} are kept for comparing ranks"] if number > MOST else []


_COLUMNS = ("step", "start", "duration", "before", "computing")


def _message(trace: KinetoTrace, links: Links, row: int, cost: Cost | None) -> Message:
    """Read what a device event says of its collective, else the ops around its launch, the innermost first.

    cost: the work of the op that it belongs to, whose bytes are those of its tensors where no message has a size.
    """
    kernel = cut(trace.names[int(trace.device.name[row])], _LETTERS)
    arguments = communication.arguments(trace.device.args[row])
    op, name = int(links.op[row]), ""
    while op >= 0 and "Collective name" not in arguments:
        called = trace.names[int(trace.ops.name[op])]
        if communication.is_collective(called):
            name = called.rpartition("::")[2].strip("_")
            arguments = {**communication.arguments(trace.ops.args[op]), **arguments}
        op = int(links.parent[op])
    sent, received = communication.sizes(arguments)
    if sent is None and cost is not None:
        sent, received = cost.bytes_read, cost.bytes_written
    return Message(
        name=cut(str(arguments.get("Collective name") or name or kernel).strip("_"), _LETTERS),
        kernel=kernel,
        group=cut(str(arguments.get("Process Group Name") or ""), _LETTERS),
        ranks=_whole(arguments, "Group size"),
        members=_members(arguments),
        sent=sent,
        received=received,
    )


def _whole(arguments: Mapping[str, Any], key: str) -> int | None:
    value = arguments.get(key)
    return value if communication.is_count(value) and value > 0 else None


def _members(arguments: Mapping[str, Any]) -> tuple[int, ...]:
    """Read the ranks of a process group, which the profiler writes as text: "[0, 1, 2, 3]"."""
    text = arguments.get("Process Group Ranks")
    parts = text.strip("[] ").split(",") if isinstance(text, str) else text if isinstance(text, list) else []
    numbers = [int(part) for part in parts[:_MEMBERS] if str(part).strip().isdecimal() and len(str(part)) < 10]
    return tuple(sorted(set(numbers))) if len(numbers) == len(parts) else ()
