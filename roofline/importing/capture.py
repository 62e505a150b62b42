"""Find the op that owns a kernel replayed from a graph, by the trace of the graph's capture.

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from roofline.core.batch import Batch
from roofline.costs import kernel_names
from roofline.costs.counted import Costed, Counted, CountedOp, Interner
from roofline.errors import InputError
from roofline.importing.captured import Captured, joined
from roofline.traces import nesting
from roofline.traces.kineto.batches import Batches
from roofline.traces.kineto.launches import plain_name
from roofline.traces.kineto.links import Links
from roofline.traces.kineto.reader import KERNEL, MEMCPY, KinetoTrace
from roofline.traces.rows import Rows

if TYPE_CHECKING:
    from roofline.importing.work.costs import Costs

_BEGIN, _END = re.compile(r"StreamBeginCapture"), re.compile(r"StreamEndCapture")
_KERNEL = re.compile(r"Launch(?!HostFunc)", re.IGNORECASE)
_COPY, _FILL = re.compile(r"Memcpy", re.IGNORECASE), re.compile(r"Memset", re.IGNORECASE)
_GRAPH = re.compile(r"Graph")
#: What a serving engine names the range around a capture (vLLM, SGLang): "capture_32_FULL".
_SIZED = re.compile(r"^capture_(\d{1,9})(?:_|$)")
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
#: Classes of kernels of which ops of a class launch one at least.
_LAUNCHES = {
    "contraction": frozenset({"contraction", "attention", "other"}),
    "attention": frozenset({"attention", "contraction", "other"}),
    "normalisation": frozenset({"normalisation", "reduction", "other"}),
}
_UNLIKELY = 0.1  # share of such kernels, or of such ops, that do not fit, beyond which a capture is not believed
_BY_ORDER = "replayed from a graph; the op that launched as many kernels in this order while it was captured"


class _Kernel(msgspec.Struct, gc=False):
    """Identify a kernel by its name, which HIP records with the launch, and by how many threads run it."""

    kernel: str = ""
    grid: msgspec.Raw = msgspec.Raw(b"")
    block: msgspec.Raw = msgspec.Raw(b"")

    def size(self) -> bytes:
        """Grid and block as one text, empty where one is not recorded."""
        sizes = [bytes(text).translate(None, b" \t\r\n") for text in (self.grid, self.block)]
        return b"" if sizes[0] in _NO_SIZE or sizes[1] in _NO_SIZE else b"".join(sizes)


_NOTHING = _Kernel()  # of arguments that are no object


@dataclass(frozen=True, slots=True, eq=False)
class Kernels:
    """Launches of one capture or device events of one replay, in order.

    rows: in the trace's launches or device events. names: what each runs ("" for a kernel whose name is not recorded).
    sizes: grid and block as one text each, empty where not recorded. tokens: for how many a serving engine captured it,
    or how many its step has; None: not recorded. trace: the number of the capture's trace.
    """

    rows: Rows
    names: tuple[str, ...]
    sizes: tuple[bytes, ...]
    tokens: int | None = None
    trace: int = 0

    def without(self, kinds: tuple[str, ...]) -> tuple[Rows, Kernels]:
        """Leave out events of `kinds`; return the places of the rest, int64[rest], and the rest."""
        places = [place for place, name in enumerate(self.names) if name not in kinds]
        names, sizes = tuple(self.names[place] for place in places), tuple(self.sizes[place] for place in places)
        return np.asarray(places, np.int64), Kernels(self.rows[places], names, sizes, self.tokens, self.trace)


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

    unsure: bool[device], of a replay that fits several captures of different work. guessed: bool[ops], found by order
    alone. warnings: in sentences.
    """

    op: Rows
    captured: tuple[Captured, ...]
    unsure: NDArray[np.bool_]
    guessed: NDArray[np.bool_]
    warnings: tuple[str, ...]

    def counted(self, batch: Batch | None) -> Counted:
        """The captured ops of all traces, with the work that they have in a step of a batch."""
        counted = joined([captured.counted(batch) for captured in self.captured])
        if not self.guessed.any():
            return counted
        by_order = _assumed(counted)
        chosen = (by_order[row] if guess else counted.ops[row] for row, guess in enumerate(self.guessed.tolist()))
        return replace(counted, ops=tuple(chosen))

    @property
    def shapes(self) -> bool:
        """Whether a captured call has its arguments."""
        with_arguments = np.concatenate([captured.with_arguments for captured in self.captured])
        return bool(with_arguments[np.unique(self.op[self.op >= 0])].any())


class Captures:
    """The traces of captures."""

    def __init__(self, traces: Sequence[KinetoTrace], costs: Costs) -> None:
        """InputError where one of `traces` shows no capture."""
        self._traces, self._costs = traces, costs
        parts = map(segments, traces)
        by_trace = [[replace(part, trace=number) for part in several] for number, several in enumerate(parts)]
        self.segments = [segment for several in by_trace for segment in several]
        if not all(by_trace):
            raise InputError(
                "The trace given with --capture holds no captured graph (no StreamBeginCapture); profile the part of "
                "the program that captures its graphs, and give that trace."
            )

    def replays(self, trace: KinetoTrace, links: Links, step: Rows) -> Replays:
        """The captured op of each kernel that a graph of `trace` replays. step: int64[device], that of each event."""
        replays = _replays(trace, links)
        fits = fitting(replays, self.segments)
        launched = self._launched(replays, fits)
        captured = [Captured(trace, self._costs, names) for trace, names in zip(self._traces, launched, strict=True)]
        first = np.cumsum([0, *(len(part.counted(None).ops) for part in captured)]).tolist()
        counted = joined([part.counted(None) for part in captured])
        ops = {}
        for number, segment in enumerate(self.segments):
            of_trace = captured[segment.trace].op[segment.rows]
            ops[number] = np.where(of_trace >= 0, of_trace + first[segment.trace], -1)
        interner = Interner()
        works = [(name, id(interner(op.costed))) for name, op in zip(counted.names_of_ops, counted.ops, strict=True)]
        op = np.full(len(trace.device), -1, np.int64)
        unsure = np.zeros(len(trace.device), bool)
        guessed = np.zeros(len(counted.ops), bool)
        turn: dict[tuple[int, ...], int] = {}
        unmatched = several = 0
        for replay, every in zip(replays, fits, strict=True):
            likely = [fit for fit in every if fit.named or _plausible(replay, fit, ops[fit.number], counted)]

            def of_work(fits: list[Fit]) -> int:
                return len({tuple(works[n] if n >= 0 else None for n in ops[f.number][f.of].tolist()) for f in fits})

            if of_work(likely) > 1:
                likely = _of_size(replay, likely, self.segments)
            if of_work(likely) > 1:
                several += 1
                unsure[replay.rows] = True
                continue
            if not likely:
                unmatched += 1
                continue
            # Of captures of equal work one after the other, as they were made, in every step alike: they are of
            # different places of the program.
            key = (int(step[replay.rows[0]]), *(fit.number for fit in likely))
            fit = likely[turn.get(key, 0) % len(likely)]
            turn[key] = turn.get(key, 0) + 1
            ops_of_kernels = ops[fit.number][fit.of]
            op[replay.rows[fit.place]] = ops_of_kernels
            guessed[ops_of_kernels[ops_of_kernels >= 0]] |= not fit.named
        warnings = _warnings(unmatched, several, len(replays), bool(guessed.any()))
        return Replays(op, tuple(captured), unsure, guessed, warnings)

    def _launched(self, replays: list[Kernels], fits: list[list[Fit]]) -> list[dict[int, str]]:
        """For each trace what the captured launches that fit a replay run, by their rows.

        That is their own name, else that of a kernel that a replay has for it.
        """
        by_trace: list[dict[int, str]] = [{} for _ in self._traces]
        for replay, every in zip(replays, fits, strict=True):
            for fit in every:
                segment = self.segments[fit.number]
                launched, rows = by_trace[segment.trace], segment.rows[fit.of].tolist()
                if rows and rows[0] in launched:
                    continue
                launched |= dict(zip(segment.rows.tolist(), segment.names, strict=True))
                launched |= dict(zip(rows, (replay.names[place] for place in fit.place.tolist()), strict=True))
        return by_trace


def holds_capture(trace: KinetoTrace) -> bool:
    """Tell whether a graph is captured in a trace."""
    return bool(trace.matches(_BEGIN, trace.launches.name).any()) and bool(segments(trace))


def segments(trace: KinetoTrace) -> list[Kernels]:
    """The captures of a trace, each on one thread, in order of time."""
    launches = trace.launches
    flags = [trace.matches(pattern, launches.name) for pattern in (_BEGIN, _END, _KERNEL, _COPY, _FILL, _GRAPH)]
    begin, end, kernel, copy, fill, graph = flags
    works = (kernel | copy | fill) & ~graph
    tokens = _tokens(trace)
    captures = []
    for first, rows in _between(launches.thread, begin, end, works):
        if len(rows):
            args = [_NOTHING if arguments is None else arguments for arguments in launches.decoded(rows, _Kernel)]
            kinds = zip(rows.tolist(), args, strict=True)
            names = (
                plain_name(arguments.kernel) if kernel[r] else "memcpy" if copy[r] else "memset"
                for r, arguments in kinds
            )
            sizes = tuple(arguments.size() for arguments in args)
            captures.append(Kernels(rows, tuple(names), sizes, tokens(int(launches.start[first]))))
    return captures


def _between(
    thread: NDArray[np.int32], begin: NDArray[np.bool_], end: NDArray[np.bool_], works: NDArray[np.bool_]
) -> list[tuple[int, Rows]]:
    """For each launch that begins a capture, in order, the work from it to where its thread ends it or begins another.

    All bool[launches], or their threads.
    """
    by_thread = np.argsort(thread, kind="stable")
    is_edge = (begin | end)[by_thread] | (np.diff(thread[by_thread], prepend=-1) != 0)
    edges, work = np.flatnonzero(is_edge), np.flatnonzero(works[by_thread])
    low = np.searchsorted(work, edges)
    high = np.append(low, len(work))[1:]  # none where nothing was launched
    stretches = zip(by_thread[edges].tolist(), low.tolist(), high.tolist(), strict=True)
    captures = [(row, by_thread[work[first:last]]) for row, first, last in stretches if begin[row]]
    return sorted(captures, key=lambda capture: capture[0])


def _tokens(trace: KinetoTrace) -> Callable[[int], int | None]:
    """Tell the tokens for which a serving engine captured a graph at a time [ns], by the range around it."""
    marks = trace.annotations
    sized = marks.select(trace.matches(_SIZED, marks.name))
    ranges = nesting.Innermost(sized.start, sized.end)

    def at(time: int) -> int | None:
        row = ranges.at(time)
        match = _SIZED.match(trace.names[int(sized.name[row])]) if row >= 0 else None
        return int(match[1]) if match else None

    return at


def _of_size(replay: Kernels, fits: list[Fit], captures: Sequence[Kernels]) -> list[Fit]:
    """The fits of the least size that holds the replay's tokens; all where sizes are not recorded.

    An engine captures a graph for some numbers of tokens, and fills a step up to the next of them.
    """
    sizes = [captures[fit.number].tokens for fit in fits]
    if replay.tokens is None or None in sizes:
        return fits
    least = min((size for size in sizes if size is not None and size >= replay.tokens), default=None)
    return [fit for fit, size in zip(fits, sizes, strict=True) if size == least] or fits


def _replays(trace: KinetoTrace, links: Links) -> list[Kernels]:
    """The device events of each launch of a graph, in order of start."""
    device = trace.device
    rows = np.flatnonzero(links.graph)
    rows = rows[np.argsort(links.launch[rows], kind="stable")]
    first = np.flatnonzero(np.diff(links.launch[rows], prepend=-1))
    names = {code: _own(plain_name(trace.names[code])) for code in np.unique(device.name[rows]).tolist()}
    batches, replays = Batches(trace), []
    for events in np.split(rows, first[1:]) if len(rows) else []:
        kinds = zip(device.name[events].tolist(), device.kind[events].tolist(), strict=True)
        texts = (names[name] if kind == KERNEL else "memcpy" if kind == MEMCPY else "memset" for name, kind in kinds)
        sizes = (b"" if arguments is None else arguments.size() for arguments in device.decoded(events, _Kernel))
        batch = batches.at(int(trace.launches.start[links.launch[events[0]]]))
        tokens = None if batch is None else batch.tokens
        replays.append(Kernels(events, tuple(texts), tuple(sizes), tokens))
    return replays


def _own(name: str) -> str:
    """A kernel with which HIP copies or fills is a copy or a fill, as the call is that was captured."""
    if not name.startswith("__amd_rocclr_"):
        return name
    return "memset" if "fill" in name.lower() else "memcpy"


def fitting(replays: list[Kernels], captures: list[Kernels]) -> list[list[Fit]]:
    """For each replay the captures that it may be of, in order; none where none has the same kernels."""
    by_content: dict[object, list[Fit]] = {}
    parts = [[capture.without(kinds) for capture in captures] for kinds in _UNRECORDED]
    fits = []
    for replay in replays:
        key = replay.names, replay.sizes
        if key not in by_content:
            by_content[key] = _fitting(replay, captures, parts)
        fits.append(by_content[key])
    return fits


def _fitting(replay: Kernels, captures: list[Kernels], parts: list[list[tuple[Rows, Kernels]]]) -> list[Fit]:
    size = len(replay.names)
    all_places = np.arange(size)
    equal = [
        Fit(number, all_places, all_places, True)
        for number, capture in enumerate(captures)
        if capture.names == replay.names
    ]
    if not equal:
        longer = [
            number
            for number, capture in enumerate(captures)
            if len(capture.names) - size <= _MORE * size and capture.names[:size] == replay.names
        ]
        if len({captures[number].names for number in longer}) == 1:
            equal = [Fit(number, all_places, all_places, True) for number in longer]
    if not equal:
        equal = [
            Fit(n, all_places, all_places, "" not in capture.names)
            for n, capture in enumerate(captures)
            if _alike(replay, capture)
        ]
    for kinds, part in zip(_UNRECORDED, parts, strict=True):
        place, mine = replay.without(kinds)
        if not equal and any(name not in _FIXED for name in mine.names):
            equal = [
                Fit(number, place, of, "" not in capture.names)
                for number, (of, capture) in enumerate(part)
                if _alike(mine, capture)
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
    """Tell whether both run the same kernels in the same order, as far as their names are recorded."""
    return len(replay.names) == len(capture.names) and all(
        a == b or (not b and a not in _FIXED) for a, b in zip(replay.names, capture.names, strict=True)
    )


def _plausible(replay: Kernels, fit: Fit, ops: Rows, counted: Counted) -> bool:
    """Tell whether the ops of a capture launch such kernels, by classes: the test where no name proves it.

    Kernels of telling names must be of such ops, and ops of telling classes launch such kernels.
    """
    launched: dict[int, set[str]] = {}
    fit_kernels: list[bool] = []
    for place, op in zip(fit.place.tolist(), ops[fit.of].tolist(), strict=True):
        if op < 0:
            continue
        kernel_class = kernel_names.classify(replay.names[place])
        launched.setdefault(op, set()).add(kernel_class)
        if kernel_class in _LAUNCHED_BY:
            fit_kernels.append(counted.ops[op].costed.op_class in _LAUNCHED_BY[kernel_class])
    classes = ((counted.ops[op].costed.op_class, kernel_classes) for op, kernel_classes in launched.items())
    fit_ops = [not _LAUNCHES[op_class].isdisjoint(found) for op_class, found in classes if op_class in _LAUNCHES]
    return all(results.count(False) <= _UNLIKELY * len(results) for results in (fit_kernels, fit_ops))


def _assumed(counted: Counted) -> tuple[CountedOp, ...]:
    """The ops with costs marked as found by order alone."""
    assumed: dict[int, Costed] = {}
    ops = []
    for op in counted.ops:
        costed = op.costed
        if costed.cost.quality != "unknown":
            if id(costed) not in assumed:
                note = "; ".join(filter(None, (_BY_ORDER, costed.cost.note)))
                assumed[id(costed)] = replace(
                    costed, cost=msgspec.structs.replace(costed.cost, quality="assumed", note=note)
                )
            costed = assumed[id(costed)]
        ops.append(replace(op, costed=costed))
    return tuple(ops)


def _warnings(unmatched: int, several: int, replays: int, guessed: bool) -> tuple[str, ...]:
    texts = []
    if unmatched:
        texts.append(f"{unmatched} of {replays} graph launches have no capture of the same kernels")
    if several:
        texts.append(
            f"{several} of {replays} graph launches fit several captures of different shapes, and the trace does not "
            "say which was replayed, so their work is unknown: capture only the batch size that runs"
        )
    if guessed:
        texts.append("the capture does not name its kernels, so replays were matched by number and order of kernels")
    return tuple(texts)
