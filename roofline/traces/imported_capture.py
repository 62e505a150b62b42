"""Which op owns a kernel that was replayed from a graph, from the trace of the graph's capture.

Between StreamBeginCapture and StreamEndCapture the program launches what it would run, and nothing runs: the capture's
trace holds those launches with their ops and shapes, in the order in which a replay runs them. HIP records the name of
the kernel with the launch. A stretch of the same names, in the same order, is the capture of a replay; a capture may
hold a few launches more at its end. CUDA records no names: there the number of launches and what each is (kernel, copy,
fill) must be equal, and all that is found so is marked as assumed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from roofline.errors import InputError
from roofline.traces import counting
from roofline.traces.counted import Costed, Counted, CountedOp
from roofline.traces.imported_calls import OP, calls, marked, path
from roofline.traces.kineto import KERNEL, MEMCPY, KinetoTrace
from roofline.traces.link import Links, link

if TYPE_CHECKING:
    from roofline.traces.import_costs import Costs

Rows = NDArray[np.int64]

_BEGIN, _END = re.compile(r"StreamBeginCapture"), re.compile(r"StreamEndCapture")
_KERNEL = re.compile(r"Launch(?!HostFunc)", re.IGNORECASE)
_COPY, _FILL = re.compile(r"Memcpy", re.IGNORECASE), re.compile(r"Memset", re.IGNORECASE)
_BY_ORDER = "replayed from a graph; the op that launched as many kernels in this order while it was captured"


class _Kernel(msgspec.Struct, gc=False):
    """What HIP records with a launch."""

    kernel: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """One capture: rows of the launches, in order, and what each launches ("" for a kernel without a name)."""

    rows: Rows
    what: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Replays:
    """op: int64[device], the number of the captured op in `counted` that each replayed kernel belongs to, or -1.

    matched: graph launches whose capture was found, of `replays`. warnings: in sentences.
    """

    op: Rows
    counted: Counted
    matched: int
    replays: int
    warnings: tuple[str, ...]


class Capture:
    """The trace of a capture."""

    def __init__(self, trace: KinetoTrace, costs: Costs) -> None:
        """InputError where `trace` shows no capture."""
        self._trace, self._costs, self._links = trace, costs, link(trace)
        self.segments = segments(trace)
        if not self.segments:
            raise InputError(
                "The trace given with --capture holds no captured graph (no StreamBeginCapture); profile the part of "
                "the program that captures its graphs, and give that trace."
            )

    def replays(self, trace: KinetoTrace, links: Links) -> Replays:
        """The captured op of each kernel that a graph of `trace` replays."""
        launches = np.unique(links.launch[links.graph])
        events = [np.flatnonzero(links.graph & (links.launch == launch)) for launch in launches.tolist()]
        wanted = [_device_names(trace, rows) for rows in events]
        found = _match(wanted, [segment.what for segment in self.segments])
        used = sorted({number for number, _ in found if number >= 0})
        counted, of_launch = self._counted(np.concatenate([self.segments[n].rows for n in used] or [np.zeros(0, int)]))
        by_order = _assumed(counted)
        op = np.full(len(trace.device), -1, np.int64)
        guessed = np.zeros(len(counted.ops), bool)
        for rows, (number, named) in zip(events, found, strict=True):
            if number >= 0:
                op[rows] = of_launch[self.segments[number].rows[: len(rows)]]
                guessed[op[rows][op[rows] >= 0]] |= not named
        if guessed.any():
            ops = tuple(
                by_order[row] if guess else one
                for row, (one, guess) in enumerate(zip(counted.ops, guessed.tolist(), strict=True))
            )
            counted = replace(counted, ops=ops)
        matched = sum(number >= 0 for number, _ in found)
        return Replays(op, counted, matched, len(found), tuple(_told(matched, len(found), bool(guessed.any()))))

    def _counted(self, launches: Rows) -> tuple[Counted, Rows]:
        """The ops around captured launches, counted; and for each launch of the trace the number of its op, or -1."""
        trace = self._trace
        on = path(trace, self._links, launches)
        start = trace.launches.start[launches]
        window = [(int(trace.ops.start.min()), int(start.max()))] if len(launches) and len(trace.ops) else []
        step = calls(trace, on, window)
        nodes = marked(self._costs.nodes(trace, step.events, self._links, step.ops), step)
        counted = counting.count(nodes, self._costs)  # type: ignore[arg-type]  # the same protocol
        kept = np.asarray([not name.startswith("roofline:") for name in nodes.names], bool)
        number = np.full(len(nodes) + 1, -1, np.int64)
        number[:-1][kept] = counted.op_of
        inner = step.index(OP, len(trace.ops))[self._links.launch_op]
        return counted, number[inner]


def segments(trace: KinetoTrace) -> list[Segment]:
    """The captures of a trace, thread by thread, in order of time."""
    launches = trace.launches
    flags = [
        np.asarray([bool(pattern.search(name)) for name in trace.names], bool)[launches.name]
        for pattern in (_BEGIN, _END, _KERNEL, _COPY, _FILL)
    ]
    begin, end, kernel, copy, fill = flags
    graph = np.asarray(["Graph" in name for name in trace.names], bool)[launches.name]
    works = (kernel | copy | fill) & ~graph
    found = []
    for first in np.flatnonzero(begin).tolist():
        same = launches.thread == launches.thread[first]
        after = np.flatnonzero(same & end & (launches.start >= launches.start[first]))
        last = int(after[0]) if len(after) else len(launches)
        rows = np.flatnonzero(same[first:last] & works[first:last]) + first
        if len(rows):
            what = (
                _named(launches.args[row]) if kernel[row] else "memcpy" if copy[row] else "memset"
                for row in rows.tolist()
            )
            found.append(Segment(rows, tuple(what)))
    return found


def _named(args: bytes) -> str:
    try:
        return _plain(msgspec.json.decode(args, type=_Kernel).kernel)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return ""


def _plain(name: str) -> str:
    """A kernel's name without its arguments, which only one of the two traces shows."""
    return name.partition("(")[0].removesuffix(".kd")


def _device_names(trace: KinetoTrace, rows: Rows) -> tuple[str, ...]:
    kinds = zip(trace.device.name[rows].tolist(), trace.device.kind[rows].tolist(), strict=True)
    return tuple(
        _plain(trace.names[name]) if kind == KERNEL else "memcpy" if kind == MEMCPY else "memset"
        for name, kind in kinds
    )


def _match(replays: Sequence[tuple[str, ...]], captures: Sequence[tuple[str, ...]]) -> list[tuple[int, bool]]:
    """For each replay the number of its capture, or -1, and whether kernels' names prove it.

    Of several captures that fit, one after the other, as they were made; round again where there are more replays.
    """
    fitting: dict[tuple[str, ...], list[int]] = {}
    turn: dict[tuple[int, ...], int] = {}
    found = []
    for replay in replays:
        if replay not in fitting:
            fitting[replay] = _fitting(replay, captures)
        fits = tuple(fitting[replay])
        if not fits:
            found.append((-1, False))
            continue
        number = fits[turn.get(fits, 0) % len(fits)]
        turn[fits] = turn.get(fits, 0) + 1
        found.append((number, "" not in captures[number][: len(replay)]))
    return found


def _fitting(replay: tuple[str, ...], captures: Sequence[tuple[str, ...]]) -> list[int]:
    equal = [number for number, one in enumerate(captures) if one == replay]
    if equal:
        return equal
    longer = [number for number, one in enumerate(captures) if one[: len(replay)] == replay]
    if longer and len({captures[number] for number in longer}) == 1:
        return longer
    fixed = ("memcpy", "memset")
    return [
        number
        for number, one in enumerate(captures)
        if len(one) == len(replay)
        and all(a == b or (not a and b not in fixed) for a, b in zip(one, replay, strict=True))
    ]


def _assumed(counted: Counted) -> tuple[CountedOp, ...]:
    """The ops with costs marked as found by order alone."""
    made: dict[int, Costed] = {}
    ops = []
    for op in counted.ops:
        costed = op.costed
        if costed.cost.quality != "unknown":
            if id(costed) not in made:
                note = "; ".join(filter(None, (_BY_ORDER, costed.cost.note)))
                made[id(costed)] = replace(
                    costed, cost=msgspec.structs.replace(costed.cost, quality="assumed", note=note)
                )
            costed = made[id(costed)]
        ops.append(replace(op, costed=costed))
    return tuple(ops)


def _told(matched: int, replays: int, guessed: bool) -> list[str]:
    told = []
    if matched < replays:
        told.append(f"{replays - matched} of {replays} graph launches have no capture of the same kernels")
    if guessed:
        told.append("captured launches carry no names of kernels: replays were matched by their number and order")
    return told
