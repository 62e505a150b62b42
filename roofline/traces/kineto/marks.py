"""Marks of steps among the annotations of a trace: numbered ones, torch's own, and ranges that hold all of the work.

torch numbers steps itself where `prof.step()` is called. Where it is not, it still marks each step of an optimizer,
each batch of a loader and each zeroing of gradients; trainers (Lightning) and users name ranges. A mark that is no
range of a step is a cut: a step goes from one to the next.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from roofline import units
from roofline.traces.kineto import period
from roofline.traces.kineto.batches import Batches
from roofline.traces.kineto.events import Events
from roofline.traces.kineto.reader import KinetoTrace

#: Torch's own marks, the best one first: the prefix of their names, and what stands for them in words. An optimizer
#: ends a step (gradients of several batches may be summed for it), the others begin one.
_OPTIMIZER = "Optimizer.step#"
_BEGINNINGS = {"enumerate(DataLoader)#": "batch of the DataLoader", "Optimizer.zero_grad#": "Optimizer.zero_grad"}
_FAMILY = re.compile(r"(.*#)(\d{1,18})", re.DOTALL)
_LONGEST = 40  # characters of a name that stands in a sentence
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True, eq=False)
class Marked:
    """Disjoint windows, sorted. start, end: int64[n] [ns]; number: int64[n], as annotated, else from 0.

    source: the prefix of the annotations, or their name; rule: what a step is, in words.
    """

    start: np.ndarray
    end: np.ndarray
    number: np.ndarray
    source: str
    rule: str

    def __len__(self) -> int:
        return len(self.start)


def numbered(trace: KinetoTrace, prefix: str) -> Marked | None:
    """The steps that annotations `prefix` + number mark; None where there are none, or they overlap."""
    pattern = re.compile(re.escape(prefix) + r"(\d{1,18})")
    matches = [pattern.fullmatch(name) for name in trace.names]
    number = np.array([int(match[1]) if match else -1 for match in matches], np.int64)[trace.annotations.name]
    rows = np.flatnonzero(number >= 0)
    marks = trace.annotations.select(rows)
    if not len(marks) or _overlap(marks):
        return None
    return Marked(marks.start, marks.end, number[rows], prefix, f"{prefix}N")


def family(trace: KinetoTrace) -> Marked | None:
    """The steps that the only family of numbered annotations marks, if they are counted up."""
    used = {trace.names[code] for code in np.unique(trace.annotations.name).tolist()}
    prefixes = {match[1] for name in used if (match := _FAMILY.fullmatch(name))}
    families = [marked for prefix in sorted(prefixes) if (marked := numbered(trace, prefix)) is not None]
    families = [marked for marked in families if len(marked) > 1 and (np.diff(marked.number) > 0).all()]
    return families[0] if len(families) == 1 else None


def by_torch(trace: KinetoTrace) -> Marked | None:
    """The steps that torch's own annotations mark, of one name and one thread, at least two; None without them.

    Where an optimizer stepped once there is one step, whatever else is marked: its gradients may be of many batches.
    Of a loader's marks the last may be of the fetch that finds no batch: its window runs other ops than all others.
    """
    low, high = period.bounds(trace)
    if (marks := _most(trace, _OPTIMIZER)) is not None:
        if len(marks) < 2:
            return None
        ends = marks.end
        group = _group(trace, ends[:-1], ends[1:])
        ends = ends[(len(ends) - 1) % group :: group]
        return _cut(np.append(low, ends[:-1]), ends, _OPTIMIZER[:-1], group)
    for prefix, words in _BEGINNINGS.items():
        marks = _most(trace, prefix)
        if marks is not None and len(marks) > 1:
            start, end = marks.start, np.append(marks.start[1:], high)
            ops = _ops(trace, start, end)
            if len(ops) > 2 and not (ops[:-1] == ops[-1]).any():
                start, end = start[:-1], end[:-1]
            group = _group(trace, start, end)
            last, start = end[-1], start[::group]
            return _cut(start, np.append(start[1:], last), prefix[:-1], group, words)
    return None


def of_engine(trace: KinetoTrace) -> Marked | None:
    """The steps of a serving engine, from the start of one range to that of the next; None of fewer than two."""
    start, _ = Batches(trace).ranges()
    if len(start) < 2:
        return None
    _, high = period.bounds(trace)
    return _cut(start, np.append(start[1:], high), "step of the engine", 1, "step of the engine")


def stepped_once(trace: KinetoTrace) -> bool:
    """Tell whether an optimizer stepped, and none more than once: what lies before that makes one step with it."""
    marks = _most(trace, _OPTIMIZER)
    return marks is not None and len(marks) == 1


def ranges(trace: KinetoTrace, work: period.Work) -> Marked | None:
    """The steps that ranges of one name mark: from one to the next, where these leave nothing of the work over.

    A name is one but for its numbers ("batch 7"). The ranges of layers leave over what comes before and after them.
    Of several such names the one that occurs least often, as ranges lie in each other; of those the first.
    """
    marks = trace.annotations
    if not len(marks) or not len(work):
        return None
    stems = {code: _NUMBER.sub("N", trace.names[code]) for code in np.unique(marks.name).tolist()}
    code_of = {stem: number for number, stem in enumerate(dict.fromkeys(stems.values()))}
    stem = np.zeros(len(trace.names), np.int64)
    stem[list(stems)] = [code_of[text] for text in stems.values()]
    asked = np.maximum.accumulate(work.asked)
    spent = np.append(0, np.cumsum(work.duration))
    family_of = stem[marks.name]
    number = np.bincount(family_of)
    low, high = np.full(len(number), np.iinfo(np.int64).max), np.zeros(len(number), np.int64)
    np.minimum.at(low, family_of, marks.start)
    np.maximum.at(high, family_of, marks.end)
    held = spent[np.searchsorted(asked, high, "right")] - spent[np.searchsorted(asked, low)]
    candidates = np.flatnonzero((number >= period.LEAST) & (held >= period.SHARE * spent[-1]) & (spent[-1] > 0))
    for family_code in candidates[np.lexsort((low[candidates], number[candidates]))].tolist():
        chosen = marks.select(np.flatnonzero(family_of == family_code))
        if len(np.unique(chosen.thread)) > 1 or _overlap(chosen):
            continue
        cuts = np.searchsorted(asked, chosen.start)
        last = int(np.searchsorted(asked, chosen.end[-1], "right"))
        if (np.diff(cuts) > 0).all() and period.nothing_left(work.symbol, cuts, last):
            texts = {trace.names[code] for code in np.unique(chosen.name).tolist()}
            name = min(texts) if len(texts) == 1 else next(t for t, code in code_of.items() if code == family_code)
            return _cut(chosen.start, np.append(chosen.start[1:], chosen.end[-1]), name, 1)
    return None


def named(trace: KinetoTrace, name: str) -> Events | None:
    """The annotations of that name, else those whose names begin so, else such ops; None where they are fewer than two.

    Of several names the most frequent; all of them where each is there once, as with a number at its end. An op that is
    called by itself is inside none that is called so.
    """
    for table in (trace.annotations, trace.ops):
        used, number = np.unique(table.name, return_counts=True)
        frequency = dict(zip(used.tolist(), number.tolist(), strict=True))
        for fits in (name.__eq__, lambda text: text.startswith(name)):
            codes = [code for code in frequency if fits(trace.names[code])]
            most = max(codes, key=frequency.__getitem__, default=None)
            chosen = [most] if most is not None and frequency[most] > 1 else codes
            if sum(frequency[code] for code in chosen) > 1:
                marks = table.select(np.flatnonzero(np.isin(table.name, chosen)))
                outer = np.append(True, marks.start[1:] >= np.maximum.accumulate(marks.end)[:-1])
                return marks.select(outer) if outer.sum() > 1 else None
    return None


def _cut(start: np.ndarray, end: np.ndarray, name: str, group: int, words: str = "") -> Marked:
    """The steps from one mark of a name to the next, or to the one that is `group` marks further."""
    following = "the next" if group == 1 else f"the one {group} after it"
    return Marked(
        start, end, np.arange(len(start)), name, f"from one {words or units.cut(name, _LONGEST)} to {following}"
    )


def _most(trace: KinetoTrace, prefix: str) -> Events | None:
    """The annotations of the name with a prefix that occurs least often, but more than once; None of none.

    Of names that are as frequent, as those of two optimizers or of one inside another, those that last longest. Marks
    on several threads are those of several processes, or of no loop, and mark nothing.
    """
    best: Events | None = None
    codes = [code for code in np.unique(trace.annotations.name).tolist() if trace.names[code].startswith(prefix)]
    for code in codes:
        marks = trace.annotations.select(np.flatnonzero(trace.annotations.name == code))
        if len(np.unique(marks.thread)) > 1 or _overlap(marks):
            continue
        rank = (len(marks) < 2, len(marks), -int(marks.duration.sum()))
        if best is None or rank < (len(best) < 2, len(best), -int(best.duration.sum())):
            best = marks
    return best


def _overlap(marks: Events) -> bool:
    return bool((marks.start[1:] < marks.end[:-1]).any())


def _group(trace: KinetoTrace, start: np.ndarray, end: np.ndarray) -> int:
    """Count the windows that make a step together: most of them run the same ops as the one so many further.

    Two optimizers that step in turns, as of a GAN, mark half a step each. 1 where nothing says otherwise.
    """
    ops = _ops(trace, start, end)
    for group in range(1, len(ops) // 2 + 1):
        if 2 * (ops[group:] == ops[:-group]).sum() > len(ops) - group:
            return group
    return 1


def _ops(trace: KinetoTrace, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """A number for the ops that begin in each window, uint64[n]: equal where they are the same, in whatever order."""
    # The sum of a number of 64 bits for each name.
    value = np.random.default_rng(0).integers(0, 1 << 63, len(trace.names), np.uint64)[trace.ops.name]
    total = np.append(np.zeros(1, np.uint64), np.cumsum(value, dtype=np.uint64))
    return total[np.searchsorted(trace.ops.start, end)] - total[np.searchsorted(trace.ops.start, start)]
