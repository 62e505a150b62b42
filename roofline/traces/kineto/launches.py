"""Tell which calls of a runtime launch which device events, and whether an event can be of the call its id names.

A correlation may be damaged, and a wrong join is worse than none. A device event is believed to be of a launch where
the launch can have made it: a kernel comes from a launch of a kernel, a copy from a copy; HIP writes the kernel's name
beside the launch; one launch makes one kernel; and kernels of one stream run in the order of their launches.
"""

from __future__ import annotations

import operator
import re

import msgspec
import numpy as np

from roofline.traces import nesting
from roofline.traces.kineto.events import Events
from roofline.traces.kineto.reader import KERNEL, MEMCPY, MEMSET, TORCH, KinetoTrace

_LAUNCH = re.compile(r"Launch|Memcpy|Memset", re.IGNORECASE)
_GRAPH = re.compile(r"GraphLaunch", re.IGNORECASE)
# Calls that no kernel and no copy comes from, though they carry a correlation.
_NEVER = re.compile(
    r"Synchronize|EventRecord|EventQuery|StreamQuery|WaitEvent|Occupancy|Attribute|HostFunc", re.IGNORECASE
)
_COPY, _FILL, _SEVERAL = (re.compile(text, re.IGNORECASE) for text in ("Memcpy", "Memset", "MultiDevice"))
_KERNEL = re.compile(r"Launch", re.IGNORECASE)
_SUFFIX = re.compile(r"(\.kd| \(\.kd\)| \[clone [^\]]*\])$")
_LONGEST = 64  # characters of such a suffix
_OWN = re.compile(r"__amd|Copy|Fill")  # kernels with which HIP copies and fills
_ROUNDS = 8  # of taking events out of a stream until the rest is in order; a few damaged ids need one or two
_PARTS = 2  # device events of one copy: on each of two devices, or one after the other
_SKEW = 50_000  # [ns] clocks of host and device differ by less: a kernel that begins earlier is not of that launch
_TOGETHER = 2_000  # launches whose arguments are decoded at once, so that the texts stay in a cache


class _Named(msgspec.Struct, gc=False):
    """Hold what HIP records with a launch."""

    kernel: str = ""


_NAMELESS = _Named()
_KERNEL_OF = operator.attrgetter("kernel")


class Calls:
    """Classify the launches of a trace, bool per launch.

    launching: makes device events. never: makes none. graph: replays a graph. copy, fill: copies or fills memory.
    kernel: runs one kernel, or one on each of several devices (several).
    """

    __slots__ = ("copy", "fill", "graph", "kernel", "launching", "never", "several")

    def __init__(self, trace: KinetoTrace) -> None:
        """Told by the names of the calls."""
        patterns = _LAUNCH, _NEVER, _GRAPH, _COPY, _FILL, _KERNEL, _SEVERAL
        self.launching, self.never, self.graph, self.copy, self.fill, self.kernel, self.several = (
            trace.matches(pattern, trace.launches.name) for pattern in patterns
        )
        self.launching &= ~self.never
        self.kernel &= ~self.graph & ~self.never
        self.copy &= ~self.graph & ~self.never
        self.fill &= ~self.graph & ~self.never


def plain_name(name: str) -> str:
    """A kernel's name without its arguments at the end and ".kd", which not every event of the kernel shows."""
    name = name[:-_LONGEST] + _SUFFIX.sub("", name[-_LONGEST:])
    if not name.endswith(")"):
        return name
    depth = 0
    for at in range(len(name) - 1, -1, -1):
        depth += (name[at] == ")") - (name[at] == "(")
        if not depth:
            return name[:at]
    return name


def impossible(trace: KinetoTrace, calls: Calls, launch: np.ndarray) -> np.ndarray:
    """bool[device]: the device event cannot be of the launch that was found for it, `launch`: int64[device] or -1."""
    wrong: np.ndarray = unlike(trace, calls, launch) | _early(trace.device, trace.launches, launch)
    if trace.recorder == TORCH:  # rocprofv3 gives all that a call launches the number of the call
        wrong |= _shared(trace, calls, np.where(wrong, -1, launch))
    wrong |= _disordered(trace, calls, np.where(wrong, -1, launch))
    return wrong


def unlike(trace: KinetoTrace, calls: Calls, launch: np.ndarray) -> np.ndarray:
    """bool[device]: an event of another kind than the launch makes, or of another kernel than the launch names.

    CUDA tells copies, fills and kernels apart. HIP runs kernels of its own for some copies and fills, and names the
    kernels that it launches; where most names differ, they are written in two ways and say nothing.
    """
    device = trace.device
    differing = np.zeros(len(device), bool)
    rows = np.flatnonzero(launch >= 0)
    at = launch[rows]
    cuda = np.array([name.startswith("cu") for name in trace.names], bool)[trace.launches.name][at]
    kinds = ((calls.copy, MEMCPY), (calls.fill, MEMSET), (calls.kernel, KERNEL))
    for is_it, kind in kinds:
        differing[rows] |= is_it[at] & (device.kind[rows] != kind) & (cuda | calls.kernel[at])
    hip_kernel = np.array([bool(_OWN.match(name)) for name in trace.names], bool)[device.name[rows]]
    kernels = ~cuda & (device.kind[rows] == KERNEL)
    differing[rows] |= kernels & (calls.copy | calls.fill)[at] & ~hip_kernel
    rows = rows[kernels & calls.kernel[at]]
    text_of, texts = _recorded(trace.launches, launch[rows])
    shown, ran = np.unique(device.name[rows], return_inverse=True)
    numbers: dict[str, int] = {}  # of names without their arguments
    theirs, ours = (
        np.array([numbers.setdefault(plain_name(name), len(numbers)) for name in names], np.int64)
        for names in (texts, [trace.names[code] for code in shown.tolist()])
    )
    named = np.array([bool(name) for name in texts], bool)[text_of]
    misnamed = named & (theirs[text_of] != ours[ran])
    if 2 * misnamed.sum() < named.sum():
        differing[rows[misnamed]] = True
    return differing


def _recorded(launches: Events, rows: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """The kernels that HIP names beside the launches in the given rows: int64[rows] into the distinct names.

    "" where it names none.
    """
    number: dict[str, int] = {}
    codes = [np.empty(0, np.int64)]
    for first in range(0, len(rows), _TOGETHER):
        records = launches.decoded(rows[first : first + _TOGETHER], _Named)
        names = list(map(_KERNEL_OF, [_NAMELESS if record is None else record for record in records]))
        for name in dict.fromkeys(names):
            number.setdefault(name, len(number))
        codes.append(np.fromiter(map(number.__getitem__, names), np.int64, len(names)))
    return np.concatenate(codes), list(number)


def _shared(trace: KinetoTrace, calls: Calls, launch: np.ndarray) -> np.ndarray:
    """bool[device]: behind a launch that cannot be the launch of all its device events.

    A graph launches any number. A copy may be two events of one name, one on each device or one right after the other,
    unless there is a copy without any event before, whose event one of the two could be. A call for several devices
    makes one kernel on each. Any other call makes one event.
    """
    device = trace.device
    shared = np.zeros(len(device), bool)
    rows = np.flatnonzero(launch >= 0)
    rows = rows[~calls.graph[launch[rows]]]
    rows = rows[np.lexsort((device.start[rows], launch[rows]))]
    call, first, number = np.unique(launch[rows], return_index=True, return_counts=True)
    if len(call) == len(rows):
        return shared
    least, greatest = (extreme.reduceat(device.name[rows], first) for extreme in (np.minimum, np.maximum))
    devices = {name: code for code, name in enumerate(dict.fromkeys(name for name, _ in trace.threads))}
    on = np.array([devices[name] for name, _ in trace.threads], np.int64)[device.thread[rows]]
    on_own_devices = np.unique(np.unique(np.stack([launch[rows], on]), axis=1)[0], return_counts=True)[1] == number
    # Whether the second event of a launch follows right behind the first one on its stream.
    turn = np.empty(len(device), np.int64)
    turn[np.lexsort((device.start, device.thread))] = np.arange(len(device))
    first_event, second_event = rows[first], rows[np.minimum(first + 1, len(rows) - 1)]
    follows = (turn[second_event] == turn[first_event] + 1) & (
        device.thread[second_event] == device.thread[first_event]
    )
    has_event = np.zeros(len(calls.copy), bool)
    has_event[launch[launch >= 0]] = True
    idle = trace.launches.start[calls.copy & ~has_event]
    before_idle = device.start[rows[first + number - 1]] < idle.min(initial=np.iinfo(np.int64).max)
    parts = calls.copy[call] & (number <= _PARTS) & (follows | on_own_devices) & before_idle
    fine = (number == 1) | ((least == greatest) & (parts | (calls.several[call] & on_own_devices)))
    shared[rows] = ~np.repeat(fine, number)
    return shared


def _early(device: Events, launches: Events, launch: np.ndarray) -> np.ndarray:
    """bool[device]: begins before its launch. Where most do, the clocks disagree, and it says nothing."""
    launched = launch >= 0
    early = launched & (device.start + _SKEW < np.append(launches.start, 0)[launch])
    return early if 2 * early.sum() < launched.sum() else np.zeros(len(device), bool)


def _disordered(trace: KinetoTrace, calls: Calls, launch: np.ndarray) -> np.ndarray:
    """bool[device]: kernels that ran before another one of their stream whose launch had returned before theirs began.

    Which of the two ids is wrong is not known. Where it is so with most kernels, streams are not what they seem.
    """
    device, launches = trace.device, trace.launches
    disordered = np.zeros(len(device), bool)
    rows = np.flatnonzero(launch >= 0)
    rows = rows[calls.kernel[launch[rows]] & (device.kind[rows] == KERNEL)]
    number = len(rows)
    rows = rows[np.lexsort((device.start[rows], device.thread[rows]))]
    for _ in range(_ROUNDS):
        wrong = (device.thread[rows[1:]] == device.thread[rows[:-1]]) & (
            launches.end[launch[rows[1:]]] < launches.start[launch[rows[:-1]]]
        )
        wrong &= device.start[rows[1:]] > device.start[rows[:-1]]
        if not wrong.any():
            return disordered if 2 * disordered.sum() <= number else np.zeros(len(device), bool)
        suspects = np.append(wrong, False) | np.append(False, wrong)
        disordered[rows[suspects]] = True
        rows = rows[~suspects]
    return np.zeros(len(device), bool)


def latest(device: Events, launches: Events, calls: Calls, process: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int64[device]: the launch of the same correlation, -1 for none; and bool[device]: of several processes' launches.

    Of several of one process, as in windows merged into one file, the last that begins before the device event. A call
    that launches goes before one that does not (a synchronisation may carry the id of what it waits for). Where
    launches of several processes have the id, nothing tells whose the event is, and it gets none. process: per launch.
    """
    launch = np.full(len(device), -1, np.int64)
    clash = np.zeros(len(device), bool)
    for rows in (np.flatnonzero(calls.launching), np.flatnonzero(~calls.launching & ~calls.never)):
        rows = rows[launches.correlation[rows] >= 0]
        if not len(rows):
            continue
        rows = rows[np.lexsort((launches.start[rows], launches.correlation[rows]))]
        # (correlation, start) as one number that sorts like the pair.
        ids, times = nesting.distinct(launches.correlation[rows]), nesting.distinct(launches.start[rows])
        stride = len(times) + 1
        code = np.searchsorted(ids, launches.correlation[rows])
        key = code * stride + np.searchsorted(times, launches.start[rows])
        wanted = np.minimum(np.searchsorted(ids, device.correlation), len(ids) - 1)
        before = np.searchsorted(key, wanted * stride + np.searchsorted(times, device.start, "right")) - 1
        first = np.searchsorted(code, wanted)  # clocks may disagree: the first one, if all begin later
        matches = (ids[wanted] == device.correlation) & (launch < 0) & ~clash
        several = np.zeros(len(ids), bool)
        several[code[1:][(code[1:] == code[:-1]) & (process[rows[1:]] != process[rows[:-1]])]] = True
        clash |= matches & several[wanted]
        launch = np.where(matches & ~several[wanted], rows[np.maximum(before, first)], launch)
    return launch, clash
