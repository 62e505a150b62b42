"""Collects what torch.compile did in the first run of a step: graph breaks, recompilations, guards, compile time.

PyTorch tells this through private interfaces of `torch._dynamo.utils`, and this is the one place that knows them. What
a version does not tell is left out with a note. Tried with PyTorch 2.13:

- `get_compilation_metrics()`: one record per frame that was traced and one per backward graph that was compiled. It
  is a queue of the process that drops the oldest of 64; it is made longer here for as long as somebody watches.
- `counters["graph_break"]`: reason -> how often a trace ended there. A function that was inlined and breaks ends the
  traces of its callers as well, and each of them counts; frames that are compiled again count again.
- `counters["unimplemented"]`: what ended a trace and is in none of them: branches on data, and frames that were given
  up whole, such as a loop with a break in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import PurePath
from typing import Any

import numpy as np

from roofline.core.schema import Compilation
from roofline.traces import intervals
from roofline.units import cut

#: Records kept while somebody watches: more than any step compiles.
_RECORDS = 100_000
#: A reason is cut to this many characters, and no more functions than this are named with one.
_LONGEST, _MOST = 200, 2

_RESUMES = re.compile(r"torch_dynamo_resume_in_(.+)_at_(\d+)$")
_FOLDERS = re.compile(r"(?<![\w.:/\\])(?:[A-Za-z]:)?(?:[/\\][^/\\\s'\"`,;()]+)+[/\\](?=[^/\\\s])")
_EXPLANATION = re.compile(r"^\s*Explanation:\s*(.+)$", re.MULTILINE)
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_CHAINED = "While handling this graph break"
_LIMIT = "recompile limit"

Counts = Mapping[str, int]


@dataclass(slots=True)
class Watched:
    """Holds what was seen between the beginning and the end of `watch`; None: this PyTorch does not tell.

    records: of what was compiled. breaks, unhandled: reason -> count, in the words of PyTorch. resumed: functions made
    to go on after a break.
    """

    records: tuple[Any, ...] | None = None
    breaks: dict[str, int] | None = None
    unhandled: dict[str, int] = field(default_factory=dict)
    resumed: int = 0


@contextmanager
def watch() -> Iterator[Watched]:
    """Collect what is compiled until the end of the block. What it holds is whole only after that."""
    watched = Watched()
    try:
        utils: Any = import_module("torch._dynamo.utils")
    except ImportError:
        yield watched
        return
    records = getattr(utils, "get_compilation_metrics", None)
    resize = getattr(utils, "set_compilation_metrics_limit", None)
    length = getattr(getattr(utils, "_compilation_metrics", None), "maxlen", None)
    if resize is not None and length is not None:
        resize(max(length, _RECORDS))
    before = list(records()) if records is not None else []
    counted = {name: _counts(utils, name) for name in ("graph_break", "unimplemented", "resumes")}
    try:
        yield watched
    finally:
        if records is not None:
            ids_before = {id(record) for record in before}
            watched.records = tuple(record for record in records() if id(record) not in ids_before)
        if resize is not None and length is not None:
            resize(length)
        gained = {name: _gained(counted[name], _counts(utils, name)) for name in counted}
        watched.breaks = gained["graph_break"]
        watched.unhandled = gained["unimplemented"] or {}
        watched.resumed = sum((gained["resumes"] or {}).values())


def without(watched: Watched, ours: Watched) -> Watched:
    """Take off what a shorter watch inside saw: what a recorder compiled for itself."""
    our_ids = {id(record) for record in ours.records or ()}
    return Watched(
        records=None
        if watched.records is None
        else tuple(record for record in watched.records if id(record) not in our_ids),
        breaks=_gained(ours.breaks, watched.breaks),
        unhandled=_gained(ours.unhandled, watched.unhandled) or {},
        resumed=watched.resumed - ours.resumed,
    )


def _counts(utils: Any, name: str) -> Counts | None:
    counters = getattr(utils, "counters", None)
    # Looking up a counter that is not there yet would make it.
    return dict(counters[name]) if counters is not None and name in counters else None if counters is None else {}


def _gained(before: Counts | None, after: Counts | None) -> dict[str, int] | None:
    if before is None or after is None:
        return None
    gains = {str(reason): number - before.get(reason, 0) for reason, number in after.items()}
    return {reason: number for reason, number in gains.items() if number > 0}


def compilation(watched: Watched, *, compiler: str = "torch.compile", mode: str = "default") -> Compilation:
    """Describe what was seen as a profile does. What runs in a step (graphs, eager, opaque) is for the caller to add.

    seconds: time in which something was compiled [s], forward, backward and again; where one lies in another it
    counts once. guards: of all frames that were compiled. A note begins with "nothing was compiled" where no frame was.
    """
    notes: list[str] = []
    if watched.breaks is None:
        notes.append("this PyTorch does not tell graph breaks")
    if watched.records is None:
        notes.append("this PyTorch does not tell what it compiled, how long that took and how many guards there are")
        return Compilation(compiler=compiler, mode=mode, breaks=_breaks(watched, ()), notes=tuple(notes))
    records = [record for record in watched.records if not getattr(record, "is_runtime", False)]
    failed = [record for record in records if _text(record, "fail_reason")]
    if not any(_has_graph(record) for record in records):
        notes.append(_nothing(records, failed))
    notes += dict.fromkeys(_failure(record, records) for record in failed)
    seconds, tells_when = _seconds(records)
    if not tells_when:
        notes.append("this PyTorch does not tell when it compiled, so the time is not known")
    guards = [number for record in records if (number := getattr(record, "guard_count", None)) is not None]
    return Compilation(
        compiler=compiler,
        mode=mode,
        seconds=seconds,
        breaks=_breaks(watched, records),
        recompilations=tuple(_recompilation(record) for record in records if _again(record)),
        guards=sum(guards) if guards else None,
        notes=tuple(notes),
    )


def _seconds(records: Sequence[Any]) -> tuple[float | None, bool]:
    """Return the time in which something was compiled [s], and whether the records say when."""
    if not records:
        return None, True
    times = [[getattr(record, f"{end}_time_us", None) for record in records] for end in ("start", "end")]
    if any(time is None for column in times for time in column):
        return None, False
    return float(intervals.length(*(np.asarray(column, np.int64) for column in times))) * 1e-6, True


def _has_graph(record: Any) -> bool:
    """Tell whether a frame gave a graph: one of Python alone gives code with guards as well, around nothing."""
    return bool(getattr(record, "has_guarded_code", None)) and getattr(record, "graph_op_count", 1) not in (None, 0)


def _nothing(records: Sequence[Any], failed: Sequence[Any]) -> str:
    if failed:
        return (
            "nothing was compiled: no frame could be traced whole, and what is left of them runs as without compiling"
        )
    if records:
        return "nothing was compiled: the frames that were traced hold no op"
    return (
        "nothing was compiled: no frame was traced; PyTorch skips the frames of its own modules, so that compile() of "
        "an nn.Sequential does nothing, where torch.compile(module) compiles it"
    )


def _again(record: Any) -> bool:
    # A frame that was refused a further compilation has a reason too; its note says so.
    return bool(_text(record, "recompile_reason")) and not _text(record, "fail_reason")


def _recompilation(record: Any) -> str:
    return _short(f"{_frame(record)}: {_why(record)}")


def _why(record: Any) -> str:
    """Return the guard that failed, without the number of the compilation that it belongs to."""
    return re.sub(r"^[0-9/]+: ", "", _text(record, "recompile_reason").partition("\n")[0])


def _failure(record: Any, records: Sequence[Any]) -> str:
    reason = _text(record, "fail_reason")
    if _LIMIT in reason.partition("\n")[0].lower():
        frame = next((_frame(parent) for parent in records if _same_code(record, parent)), "a frame")
        return _short(f"{frame} reached the recompile limit and runs as without compiling: {_why(record)}")
    return _short(f"{_frame(record)} was not compiled and runs as without compiling: {_reason(reason)}")


def _same_code(record: Any, parent: Any) -> bool:
    """Tell whether a record is of its parent's code: a refused one has no names, but "0/8" is of the code of "0/0"."""
    first, second = (_text(compilation, "compile_id").partition("/")[0] for compilation in (record, parent))
    return first == second != "" and bool(_text(parent, "co_name"))


def _breaks(watched: Watched, records: Sequence[Any]) -> dict[str, int]:
    """Count how often traces ended, by reason, with the functions that it ended in where they are known."""
    counts = dict(watched.breaks or {})
    resumed = max(watched.resumed, sum(bool(_RESUMES.match(_text(record, "co_name"))) for record in records))
    unexplained = resumed > sum(counts.values())
    failures = [_text(record, "fail_reason") for record in records]
    for reason, number in watched.unhandled.items():
        # What PyTorch caught itself and traced in another way is here too; only what ended a trace is a break.
        ended = unexplained or any(reason in failure for failure in failures)
        if ended and _CHAINED not in reason and _LIMIT not in reason.partition("\n")[0].lower():
            counts[reason] = counts.get(reason, 0) + number
    described: dict[str, int] = {}
    for reason, number in counts.items():
        frames = dict.fromkeys(_frame(record) for record in records if _ends_at(record, reason))
        named = list(frames)[:_MOST]
        where = f" (in {', '.join(named)}{', ...' if len(frames) > _MOST else ''})" if named else ""
        words = _reason(reason, _LONGEST - len(where)) + where
        described[words] = described.get(words, 0) + number
    return described


def _ends_at(record: Any, reason: str) -> bool:
    return reason in (getattr(record, "restart_reasons", None) or ()) or reason in _text(record, "fail_reason")


def _frame(record: Any) -> str:
    """Return the function of a record in words: "forward at model.py:12"."""
    name, file = _text(record, "co_name"), _text(record, "co_filename")
    if "_dynamo" in PurePath(file).parts:
        return "the module"  # the wrapper that calls a module of PyTorch's own
    resumes = _RESUMES.match(name)
    line = resumes.group(2) if resumes else getattr(record, "co_firstlineno", None)
    place = f" at {PurePath(file).name}:{line}" if file and line else ""
    return f"{'the rest of ' + resumes.group(1) if resumes else name or 'a frame'}{place}"


def _reason(text: str, longest: int = _LONGEST) -> str:
    """Return the first line, and the explanation that PyTorch adds on another, without folders."""
    head = text.strip().partition("\n")[0].strip()
    explanation = _EXPLANATION.search(text)
    return _short(f"{head}: {explanation.group(1)}" if explanation else head, longest)


def _short(text: str, longest: int = _LONGEST) -> str:
    return cut(" ".join(_FOLDERS.sub("", _ADDRESS.sub("", text)).split()), longest)


def _text(record: Any, name: str) -> str:
    value = getattr(record, name, None)
    return value if isinstance(value, str) else ""
