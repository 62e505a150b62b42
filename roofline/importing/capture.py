"""Which op owns a kernel that was replayed from a graph, from the trace of the graph's capture.

Between StreamBeginCapture and StreamEndCapture the program launches what it would run, and nothing runs: the capture's
trace holds those launches with their ops and shapes, in the order in which a replay runs them. HIP records the name of
the kernel with the launch. A stretch of the same names, in the same order, is the capture of a replay; a capture may
hold a few launches more at its end. CUDA records no names: there the number of launches and what each is (kernel, copy,
fill) must be equal, the kernels must be such as the ops launch, and all that is found so is marked as assumed. Not
every copy and fill of a graph is recorded when it is replayed: where no capture fits, kernels alone are compared.

A program captures the same kernels for one size of the batch after the other. Where several captures fit a replay and
differ in their work, grids and blocks decide if both traces record them; else the work stays unknown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from roofline.costs import kernel_names
from roofline.costs.counted import Costed, Counted, CountedOp, Interner
from roofline.errors import InputError
from roofline.importing.calls import OP, calls, marked, path
from roofline.pytorch import count
from roofline.traces.kineto.launches import plain_name
from roofline.traces.kineto.links import Links, link
from roofline.traces.kineto.reader import KERNEL, MEMCPY, KinetoTrace
from roofline.traces.rows import Rows

if TYPE_CHECKING:
    from roofline.importing.work.costs import Costs

_BEGIN, _END = re.compile(r"StreamBeginCapture"), re.compile(r"StreamEndCapture")
_KERNEL = re.compile(r"Launch(?!HostFunc)", re.IGNORECASE)
_COPY, _FILL = re.compile(r"Memcpy", re.IGNORECASE), re.compile(r"Memset", re.IGNORECASE)
_FIXED = ("memcpy", "memset")
_UNRECORDED = (("memset",), ("memcpy",), _FIXED)  # what a replay may lack, in the order in which it is tried
_MORE = 0.01  # of a replay's kernels: so many launches more may a capture hold at its end
_NO_SIZE = (b"", b"null", b"[]", b"[0,0,0]")
#: Classes of ops that launch kernels whose names are of a class that says much.
_LAUNCHED_BY = {
    "contraction": ("contraction", "attention", "embedding", "other"),
    "attention": ("attention", "contraction", "other"),
    "normalisation": ("normalisation", "other"),
}
_UNLIKELY = 0.1  # share of such kernels that ops of other classes would have launched, beyond which they did not
_BY_ORDER = "replayed from a graph; the op that launched as many kernels in this order while it was captured"


class _Kernel(msgspec.Struct, gc=False):
    """What tells a kernel: its name, which HIP records with the launch, and how many threads run it."""

    kernel: str = ""
    grid: msgspec.Raw = msgspec.Raw(b"")
    block: msgspec.Raw = msgspec.Raw(b"")

    def size(self) -> bytes:
        """Grid and block as one text, empty where one is not recorded."""
        both = [bytes(each).translate(None, b" \t\r\n") for each in (self.grid, self.block)]
        return b"" if both[0] in _NO_SIZE or both[1] in _NO_SIZE else b"".join(both)


_NOTHING = _Kernel()  # of arguments that are no object


@dataclass(frozen=True, slots=True, eq=False)
class Kernels:
    """Launches of one capture or device events of one replay, in order.

    rows: in the trace's launches or device events. what: what each runs ("" for a kernel whose name is not recorded).
    sizes: grid and block as one text each, empty where not recorded.
    """

    rows: Rows
    what: tuple[str, ...]
    sizes: tuple[bytes, ...]

    def without(self, kinds: tuple[str, ...]) -> tuple[Rows, Kernels]:
        """The places of what is none of `kinds`, and that alone."""
        places = [place for place, what in enumerate(self.what) if what not in kinds]
        what, sizes = tuple(self.what[place] for place in places), tuple(self.sizes[place] for place in places)
        return np.asarray(places, np.int64), Kernels(self.rows[places], what, sizes)


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A capture that a replay may be of. place, of: int64, which kernels of the replay are which launches of it.

    named: names of kernels prove it.
    """

    number: int
    place: Rows
    of: Rows
    named: bool


@dataclass(frozen=True, slots=True, eq=False)
class Replays:
    """op: int64[device], the number of the captured op in `counted` that each replayed kernel belongs to, or -1.

    unsure: bool[device], of a replay that fits several captures of different work. shapes: whether a captured call has
    its arguments. warnings: in sentences.
    """

    op: Rows
    counted: Counted
    unsure: NDArray[np.bool_]
    shapes: bool
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

    def replays(self, trace: KinetoTrace, links: Links, step: Rows) -> Replays:
        """The captured op of each kernel that a graph of `trace` replays. step: int64[device], that of each event."""
        replays = _replays(trace, links)
        fits = fitting(replays, self.segments)
        used = sorted({fit.number for each in fits for fit in each})
        rows = np.concatenate([self.segments[number].rows for number in used] or [np.zeros(0, np.int64)])
        counted, of_launch, given = self._counted(rows)
        ops = {number: of_launch[self.segments[number].rows] for number in used}
        same = Interner()
        works = [(name, id(same(op.costed))) for name, op in zip(counted.names_of_ops, counted.ops, strict=True)]
        op = np.full(len(trace.device), -1, np.int64)
        unsure = np.zeros(len(trace.device), bool)
        guessed = np.zeros(len(counted.ops), bool)
        turn: dict[tuple[int, ...], int] = {}
        unknown = several = 0
        for replay, every in zip(replays, fits, strict=True):
            likely = [one for one in every if one.named or _plausible(replay, one, ops[one.number], counted)]
            if (
                len({tuple(works[n] if n >= 0 else None for n in ops[one.number][one.of].tolist()) for one in likely})
                > 1
            ):
                several += 1
                unsure[replay.rows] = True
                continue
            if not likely:
                unknown += 1
                continue
            # Of captures of equal work one after the other, as they were made, in every step alike: they are of
            # different places of the program.
            key = (int(step[replay.rows[0]]), *(one.number for one in likely))
            fit = likely[turn.get(key, 0) % len(likely)]
            turn[key] = turn.get(key, 0) + 1
            found = ops[fit.number][fit.of]
            op[replay.rows[fit.place]] = found
            guessed[found[found >= 0]] |= not fit.named
        if guessed.any():
            by_order = _assumed(counted)
            chosen = (by_order[row] if guess else counted.ops[row] for row, guess in enumerate(guessed.tolist()))
            counted = replace(counted, ops=tuple(chosen))
        shapes = bool(given[np.unique(op[op >= 0])].any())
        return Replays(op, counted, unsure, shapes, _warnings(unknown, several, len(replays), bool(guessed.any())))

    def _counted(self, launches: Rows) -> tuple[Counted, Rows, NDArray[np.bool_]]:
        """The ops around captured launches, counted; for each launch of the trace the number of its op, or -1; and for
        each op whether its arguments were recorded.
        """
        trace = self._trace
        on = path(trace, self._links, launches)
        start = trace.launches.start[launches]
        window = [(int(trace.ops.start.min()), int(start.max()))] if len(launches) and len(trace.ops) else []
        step = calls(trace, on, window)
        nodes = marked(self._costs.nodes(trace, step.events, self._links, step.ops), step)
        counted = count.count(nodes, self._costs)
        kept = np.asarray([not name.startswith("roofline:") for name in nodes.names], bool)
        number = np.full(len(nodes) + 1, -1, np.int64)
        number[:-1][kept] = counted.op_of
        given = np.zeros(len(counted.ops), bool)
        nodes_of, first = np.unique(number[:-1], return_index=True)
        for one, node in zip(nodes_of.tolist(), first.tolist(), strict=True):
            if one >= 0 and "::" in nodes.names[node]:
                given[one] = bool(nodes.call(node).inputs)
        inner = step.index(OP, len(trace.ops))[self._links.launch_op]
        return counted, number[inner], given


def segments(trace: KinetoTrace) -> list[Kernels]:
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
            args = [_NOTHING if one is None else one for one in launches.decoded(rows, _Kernel)]
            kinds = zip(rows.tolist(), args, strict=True)
            what = (plain_name(one.kernel) if kernel[r] else "memcpy" if copy[r] else "memset" for r, one in kinds)
            found.append(Kernels(rows, tuple(what), tuple(one.size() for one in args)))
    return found


def _replays(trace: KinetoTrace, links: Links) -> list[Kernels]:
    """The device events of each launch of a graph, in order of start."""
    device = trace.device
    rows = np.flatnonzero(links.graph)
    rows = rows[np.argsort(links.launch[rows], kind="stable")]
    first = np.flatnonzero(np.diff(links.launch[rows], prepend=-1))
    names = {code: _own(plain_name(trace.names[code])) for code in np.unique(device.name[rows]).tolist()}
    found = []
    for each in np.split(rows, first[1:]) if len(rows) else []:
        kinds = zip(device.name[each].tolist(), device.kind[each].tolist(), strict=True)
        what = (names[name] if kind == KERNEL else "memcpy" if kind == MEMCPY else "memset" for name, kind in kinds)
        sizes = (b"" if one is None else one.size() for one in device.decoded(each, _Kernel))
        found.append(Kernels(each, tuple(what), tuple(sizes)))
    return found


def _own(name: str) -> str:
    """A kernel with which HIP copies or fills is a copy or a fill, as the call is that was captured."""
    if not name.startswith("__amd_rocclr_"):
        return name
    return "memset" if "fill" in name.lower() else "memcpy"


def fitting(replays: list[Kernels], captures: list[Kernels]) -> list[list[Fit]]:
    """For each replay the captures that it may be of, in order; none where none has the same kernels."""
    known: dict[object, list[Fit]] = {}
    parts = [[one.without(kinds) for one in captures] for kinds in _UNRECORDED]
    found = []
    for replay in replays:
        key = replay.what, replay.sizes
        if key not in known:
            known[key] = _fitting(replay, captures, parts)
        found.append(known[key])
    return found


def _fitting(replay: Kernels, captures: list[Kernels], parts: list[list[tuple[Rows, Kernels]]]) -> list[Fit]:
    size = len(replay.what)
    whole = np.arange(size)
    equal = [Fit(number, whole, whole, True) for number, one in enumerate(captures) if one.what == replay.what]
    if not equal:
        longer = [
            number
            for number, one in enumerate(captures)
            if len(one.what) - size <= _MORE * size and one.what[:size] == replay.what
        ]
        if len({captures[number].what for number in longer}) == 1:
            equal = [Fit(number, whole, whole, True) for number in longer]
    if not equal:
        equal = [Fit(n, whole, whole, "" not in one.what) for n, one in enumerate(captures) if _alike(replay, one)]
    for kinds, part in zip(_UNRECORDED, parts, strict=True):
        place, mine = replay.without(kinds)
        if not equal and any(what not in _FIXED for what in mine.what):
            equal = [
                Fit(number, place, of, "" not in one.what) for number, (of, one) in enumerate(part) if _alike(mine, one)
            ]
    return [
        fit
        for fit in equal
        if all(
            a == b or not a or not b
            for a, b in zip(
                (replay.sizes[n] for n in fit.place.tolist()),
                (captures[fit.number].sizes[n] for n in fit.of.tolist()),
                strict=True,
            )
        )
    ]


def _alike(replay: Kernels, capture: Kernels) -> bool:
    """Whether both run as many of the same in the same order, as far as the names of kernels are recorded."""
    return len(replay.what) == len(capture.what) and all(
        a == b or (not b and a not in _FIXED) for a, b in zip(replay.what, capture.what, strict=True)
    )


def _plausible(replay: Kernels, fit: Fit, ops: Rows, counted: Counted) -> bool:
    """Whether the ops of a capture launch such kernels, by classes: where no name proves it, that much must hold."""
    telling = wrong = 0
    for place, op in zip(fit.place.tolist(), ops[fit.of].tolist(), strict=True):
        allowed = _LAUNCHED_BY.get(kernel_names.classify(replay.what[place])) if op >= 0 else None
        if allowed is not None:
            telling += 1
            wrong += counted.ops[op].costed.op_class not in allowed
    return wrong <= _UNLIKELY * telling


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


def _warnings(unknown: int, several: int, replays: int, guessed: bool) -> tuple[str, ...]:
    told = []
    if unknown:
        told.append(f"{unknown} of {replays} graph launches have no capture of the same kernels")
    if several:
        told.append(
            f"{several} of {replays} graph launches fit several captures of different shapes, and nothing recorded "
            "tells which was replayed: their work stays unknown; capture only the batch size that runs"
        )
    if guessed:
        told.append("captured launches carry no names of kernels: replays were matched by their number and order")
    return tuple(told)
