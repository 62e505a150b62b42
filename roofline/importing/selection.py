"""The part of a trace that is profiled: all its steps, or those that the user chose by hand."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from roofline.errors import InputError
from roofline.traces.kineto import marks, period, steps
from roofline.traces.kineto.links import Links, link
from roofline.traces.kineto.reader import KinetoTrace
from roofline.traces.kineto.steps import Steps

_MILLISECOND = 1_000_000  # [ns]


@dataclass(frozen=True, slots=True)
class Selection:
    """Choose steps by hand.

    numbers: the first and the last step, as the trace numbers them (from 0 where it does not); both are included, and
    None is an open end. between: the name of an annotation or an op, or how it begins: a step goes from the start of
    one to the start of the next. trim: what lies between these times is looked at alone [ms, after the trace begins].
    """

    numbers: tuple[int | None, int | None] | None = None
    between: str | None = None
    trim: tuple[float | None, float | None] | None = None


#: All steps of a trace.
ALL = Selection()


def selected(steps: str | None, between: str | None, trim: str | None) -> Selection:
    """Read what was chosen by hand, in the words of `roofline import`. Raises InputError for what is no choice."""
    return Selection(
        numbers=None if steps is None else parse_numbers(steps),
        between=between,
        trim=None if trim is None else parse_times(trim),
    )


def parse_numbers(text: str) -> tuple[int | None, int | None]:
    """Read "3:8", "3:", ":8" or "3" as the first and the last step. Raises InputError for anything else."""
    first, colon, last = text.partition(":")
    try:
        ends = int(first) if first else None, int(last) if last else None
    except ValueError:
        ends = None, None
    if not colon:
        ends = ends[0], ends[0]
    if ends == (None, None) or any(end is not None and end < 0 for end in ends) or _is_reversed(*ends):
        raise InputError(f"--steps {text[:40]!r} are no steps: give the first and the last, as in 3:8.")
    return ends


def parse_times(text: str) -> tuple[float | None, float | None]:
    """Read "10:50.5", "10:" or ":50" as times [ms]. Raises InputError for anything else."""
    first, colon, last = text.partition(":")
    try:
        ends = float(first) if first else None, float(last) if last else None
    except ValueError:
        ends = None, None
    finite = all(end is None or 0 <= end < 1e12 for end in ends)
    if not colon or ends == (None, None) or not finite or _is_reversed(*ends) or ends[0] == ends[1]:
        raise InputError(f"--trim {text[:40]!r} is no part of a trace: give two times in ms, as in 10:50.")
    return ends


def _is_reversed(first: float | None, last: float | None) -> bool:
    return first is not None and last is not None and first > last


def trimmed(trace: KinetoTrace, selection: Selection) -> KinetoTrace:
    """Leave out of a trace what begins outside of `selection.trim`. Raises InputError where nothing begins inside.

    Where a GPU's step is marked, and it alone lies in that part, what else does is of no step, and left out, too.
    """
    if selection.trim is None:
        return trace
    begin, end = period.bounds(trace) if len(trace.ops) + len(trace.launches) + len(trace.device) else (0, 0)
    first, last = selection.trim
    # An annotation may begin before all ops, and what ends a step lies behind them: an open end leaves nothing out.
    low = begin + round(first * _MILLISECOND) if first else -math.inf
    high = math.inf if last is None else begin + round(last * _MILLISECOND)
    part = _between(trace, low, high)
    if not len(part.ops) + len(part.launches) + len(part.device):
        length = (end - begin) / _MILLISECOND
        raise InputError(
            f"nothing begins in that part of the trace; the whole lasts {length:.6g} ms: give another --trim."
        )
    for what, do, whole, kept in (
        ("kernel", "are launched", _launched(trace), part.device),
        ("op", "begin", trace.ops.start, part.ops),
    ):
        if len(whole) and not len(kept):
            within = [(int(time) - begin) / _MILLISECOND for time in (whole.min(), whole.max())]
            raise InputError(
                f"that part of the trace holds no {what}; those of the whole {do} from {within[0]:.6g} to "
                f"{within[1]:.6g} ms: give another --trim."
            )
        if len(kept):
            break
    if selection.between is None and len(part.device):
        windows = steps.find(part)
        if len(windows) == 1 and windows.source:
            lone_step = _between(part, int(windows.start[0]), int(windows.end[0]))
            part = lone_step if len(lone_step.device) else part
    return part


def _between(trace: KinetoTrace, low: float, high: float) -> KinetoTrace:
    """Keep of a trace what begins from one time to another [ns].

    A device event goes with its launch, where it has one, as a step holds what was launched in it. An annotation must
    end inside, too: it may mark a step, of which the rest is not there.
    """

    def inside(start: NDArray[np.int64]) -> NDArray[np.bool_]:
        return (start >= low) & (start <= high)

    annotations = trace.annotations
    return replace(
        trace,
        ops=trace.ops.select(inside(trace.ops.start)),
        launches=trace.launches.select(inside(trace.launches.start)),
        device=trace.device.select(inside(_launched(trace))),
        annotations=annotations.select(inside(annotations.start) & (annotations.end <= high)),
    )


def _launched(trace: KinetoTrace) -> NDArray[np.int64]:
    """int64[device]: when each device event was launched, or where its launch is not known, began [ns]."""
    launch = link(trace).launch if len(trace.device) else np.zeros(0, np.int64)
    return np.where(launch >= 0, np.append(trace.launches.start, 0)[launch], trace.device.start)


def find(trace: KinetoTrace, selection: Selection, links: Links | None = None) -> tuple[Steps, NDArray[np.bool_]]:
    """Find the steps of a trace, and which of them were chosen: bool[steps], all where nothing was.

    links: those of the trace, where they are known. Raises InputError where what was chosen is not in the trace.
    """
    if selection.between is None:
        windows = steps.find(trace, links=links)
    else:
        windows = steps.between(marks.named(trace, selection.between), selection.between)
    if selection.trim is not None:
        windows = replace(windows, rule=f"{windows.rule}, in a part of the trace")
    chosen = _are_whole(trace, windows, selection)
    if selection.numbers is None:
        return windows, chosen
    first, last = selection.numbers
    chosen &= windows.number >= (0 if first is None else first)
    chosen &= windows.number <= (np.iinfo(np.int64).max if last is None else last)
    if not chosen.any():
        has = (
            f"steps {windows.number.min()} to {windows.number.max()}"
            if len(windows) > 1
            else f"step {windows.number[0]} alone"
        )
        raise InputError(f"the trace has {has} ({windows.rule}): give others of them.")
    numbers = windows.number[chosen]
    span = f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else f"{numbers[0]}"
    return replace(windows, rule=f"{windows.rule}, number {span} by hand"), chosen


def _are_whole(trace: KinetoTrace, windows: Steps, selection: Selection) -> NDArray[np.bool_]:
    """Tell which steps lie whole in the part of the trace that is looked at, bool[steps]: all where none does.

    A step from one cut to the next reaches to the begin or the end of that part where its own cut lies outside; one
    between two marks has both inside.
    """
    inside = np.ones(len(windows), bool)
    if selection.trim is not None and selection.between is None:
        begin, end = period.bounds(trace)
        first, last = selection.trim
        inside = ((windows.start != begin) | (not first)) & ((windows.end != end) | (last is None))
    return inside if inside.any() else ~inside
