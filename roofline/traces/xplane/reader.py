"""Reads a trace of XLA's profiler (XSpace), as JAX and TensorFlow write it, into columns; imports neither.

A plane holds the events of one device or of the host, a line those of one thread or stream. What an event is
about stands in its stats, of which this keeps the ones that link it to a program. The optimized programs
themselves lie in the trace, too. Times are whole picoseconds.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from roofline.core.files import read_at_most
from roofline.errors import InputError
from roofline.traces.xplane import columns as xplane_columns
from roofline.traces.xplane import stats as xplane_stats
from roofline.traces.xplane.proto import XEvents, XLine, XPlane, XSpace, XStat
from roofline.traces.xplane.stats import Names

LARGEST = 1 << 30
"""Bytes of a trace, inflated, that are read at most."""

_DEFLATED = 1032  # so many bytes at most come of each of a gzip file (zlib: Technical Details)
_DAY = 86_400 * 10**12  # [ps] no trace lasts a day: what lies further off is damage
_SINCE_1970 = 10**17  # [ns] a line's time is since 1970 if it is later than this, else since the profiler started
_OWN_NUMBERS = -(1 << 62)  # programs get numbers from here on where theirs is another's
_PIECE = 1 << 16  # events that are decoded at a time
# Devices are tens and threads hundreds; each plane and line costs, whatever is on it. By choice.
_PLANES, _LINES = 1000, 10_000
_LISTENER = b"ThreadpoolListener::"
_ENVIRONMENT = "Task Environment"  # the plane that tells when the profiler started
_HLO = {b"Hlo Proto", b"hlo_proto"}
_NUMBERED = re.compile(r"\((-?\d{1,20})\)\Z")  # the end of a program's name, "jit_train(50)"
_COPIED = re.compile(rb"\bsize:(\d{1,18})\b")


#: The name of a program and its HloProto, encoded.
Program = tuple[str, bytes]


@dataclass(frozen=True, slots=True)
class Line:
    """Identify one line of a plane: `plane` is the plane's name ("/host:CPU", "/device:GPU:0"), `name` the line's."""

    plane: str
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class XTrace:
    """Events of all lines, sorted by (line, start), of equal starts the longer first.

    The columns have one length n. `start`, `end`: int64 [ps] since `origin`. `name`: int32, into `names`.
    `line`: int32, into `lines`. `hlo_op`: int32, into `names`, the HLO instruction that the event belongs to,
    -1 where it belongs to none. `program`: int64, that one's module, a key of `modules`; 0 where `hlo_op` is
    -1, and -1 where the trace does not tell the module. `run`: int64, the execution, 0 where absent and -1 for
    TensorFlow, which does not tell. `produces`, `consumes`: int64, the stats _p and _c, by which the work that
    an event started finds its end; -1 where absent, though others are negative, too, where ids are hashes.
    `scope`: int32, into `names`, the framework's name of the op, -1 where absent. `bytes`: int64, what a copy
    moved, -1 where absent. `graph`: int64, the CUDA graph that an event was launched by, 0 where by none.

    `modules` is program id -> (name, bytes of the HloProto) of every program that was loaded, executed or not.
    `devices` is the name of a device's plane -> what that says of the device (see `stats.device`).
    `origin` is time 0 [ns] since 1970, None where the trace does not tell. `warnings`: what was mended or left
    out, one sentence each.
    """

    start: np.ndarray
    end: np.ndarray
    name: np.ndarray
    line: np.ndarray
    hlo_op: np.ndarray
    program: np.ndarray
    run: np.ndarray
    produces: np.ndarray
    consumes: np.ndarray
    scope: np.ndarray
    bytes: np.ndarray
    graph: np.ndarray
    names: tuple[str, ...]
    lines: tuple[Line, ...]
    modules: Mapping[int, Program]
    origin: int | None
    warnings: tuple[str, ...]
    devices: Mapping[str, Mapping[str, str | int]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.start)


def read(source: bytes | str | Path, planes: Callable[[str], bool] | None = None) -> XTrace:
    """The trace in `source`, the bytes or the path of a .xplane.pb or .xplane.pb.gz.

    Events of planes whose name `planes` does not accept are left out; programs are found in any plane. Marks of
    the profiler's own listener to thread pools are left out, as they last no time. Raises InputError if the
    source cannot be read, is larger than LARGEST, damaged, or no XSpace.
    """
    name = "the trace" if isinstance(source, bytes) else str(source)
    try:
        return _read(_load(source, name), planes or (lambda plane: True))
    except DecodeError as error:
        raise InputError(
            f"{name} is damaged or no profiler trace (XSpace): give the whole *.xplane.pb that jax.profiler or the "
            "TensorFlow profiler wrote."
        ) from error


def _load(source: bytes | str | Path, name: str) -> bytes:
    """The XSpace, inflated."""
    try:
        if isinstance(source, bytes):
            data = source
        else:
            with Path(source).open("rb") as file:
                data = read_at_most(file, LARGEST + 1, os.fstat(file.fileno()).st_size)
        if data[:2] == b"\x1f\x8b":
            # A file says its own size, modulo 2**32; if that is damaged, it is no more than deflate can make of it.
            size = min(int.from_bytes(data[-4:], "little"), _DEFLATED * len(data))
            with gzip.open(io.BytesIO(data)) as file:
                data = read_at_most(file, LARGEST + 1, size)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{name} is damaged gzip: copy the file again, or record the trace again.") from error
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror or error}; give the path of a trace.") from error
    if len(data) > LARGEST:
        raise InputError(f"{name} is larger than {LARGEST >> 20} MiB: record fewer steps, without the Python tracer.")
    return data


@dataclass(slots=True)
class _Gathered:
    """Gather names, programs and lines plane by plane; of each line its timestamp [ns], and times since that."""

    names: Names = field(default_factory=Names)
    module_names: Names = field(default_factory=Names)
    copies: Names = field(default_factory=Names)
    modules: dict[int, Program] = field(default_factory=dict)
    renumbered: dict[tuple[int, str], int] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    timestamps: list[int] = field(default_factory=list)
    columns: list[dict[str, np.ndarray]] = field(default_factory=list)
    started: int | None = None  # [ns] since 1970
    devices: dict[str, Mapping[str, str | int]] = field(default_factory=dict)
    mended: Counter[str] = field(default_factory=Counter)

    def table(self, stat: str) -> Names:
        """Return the names that number the texts of `stat`."""
        return {"hlo_module": self.module_names, "memcpy_details": self.copies}.get(stat, self.names)


@dataclass(frozen=True, slots=True)
class _Metadata:
    """Hold the kinds of events and stats that the events of one plane refer to.

    `keys`: sorted int64[k], the kinds of events; `name`, `wanted` and each of `stats` have a value for each of
    them. `stat_names`: the names of stats, and the texts that stats refer to.
    """

    keys: np.ndarray
    name: np.ndarray
    wanted: np.ndarray
    stats: dict[str, np.ndarray]
    stat_names: dict[int, bytes]


# Planes


def _read(data: bytes, accept: Callable[[str], bool]) -> XTrace:
    space = XSpace.FromString(data)
    messages = [f"The profiler reported: {_text(text)[:200]}" for text in (*space.errors, *space.warnings)]
    planes = list(space.planes)[:_PLANES][::-1]
    gathered, genuine, room = _Gathered(), False, _LINES
    gathered.mended[f"planes beyond the first {_PLANES:,}"] += len(space.planes) - len(planes)
    del space, data
    while planes:  # each is let go before the next is decoded
        plane = XPlane.FromString(planes.pop())
        name = _text(plane.name)
        genuine |= name.startswith("/") or name == _ENVIRONMENT
        stat_names = {entry.key: entry.value.name for entry in plane.stat_metadata}
        _take_programs(plane, stat_names, gathered)
        if name == _ENVIRONMENT:
            gathered.started = _start_time(plane, stat_names)
        if name.startswith("/device:"):
            gathered.devices[name] = xplane_stats.device(plane, stat_names)
        if plane.lines and accept(name):
            metadata = _metadata(plane, stat_names, gathered)
            lines = list(plane.lines)[:room][::-1]
            gathered.mended[f"lines beyond the first {_LINES:,}"] += len(plane.lines) - len(lines)
            room -= len(lines)
            del plane
            while lines:
                _take_line(name, XLine.FromString(lines.pop()), metadata, gathered)
    if not genuine:
        raise DecodeError("no plane has a name that the profiler gives")
    return _joined(gathered, messages)


def _start_time(plane: Any, stat_names: Mapping[int, bytes]) -> int | None:
    """When the profiler was started [ns since 1970]."""
    for stat in map(XStat.FromString, plane.stats):
        if stat_names.get(stat.metadata_id) == b"profile_start_time":
            return stat.uint64_value or stat.int64_value or None
    return None


def _take_programs(plane: Any, stat_names: Mapping[int, bytes], gathered: _Gathered) -> None:
    """The programs that `plane` describes."""
    if _HLO.isdisjoint(stat_names.values()):
        return
    for entry in plane.event_metadata:
        stats = {stat_names.get(stat.metadata_id): stat for stat in map(XStat.FromString, entry.value.stats)}
        for stat in _HLO & stats.keys():
            # The number in parentheses is what events call program_id; the key of the entry is one by chance.
            name = _text(entry.value.name)
            numbered = _NUMBERED.search(name)
            number = entry.key
            if numbered is not None:
                name, number = name[: numbered.start()], int(numbered[1])
            elif b"program_id" in stats:
                number = stats[b"program_id"].uint64_value or stats[b"program_id"].int64_value
            number = _signed(number)
            program = name, stats[stat].bytes_value or stats[stat].str_value
            registered = gathered.modules.setdefault(number, program)
            if registered[0] != name:  # of another copy of XLA in the process: that of a GPU counts anew
                number = gathered.renumbered.setdefault((number, name), _OWN_NUMBERS + len(gathered.renumbered))
                registered = gathered.modules.setdefault(number, program)
            if registered != program:
                gathered.mended["programs with the number and name of another"] += 1


def _metadata(plane: Any, stat_names: dict[int, bytes], gathered: _Gathered) -> _Metadata:
    by_key = {entry.key: entry.value for entry in plane.event_metadata}
    keys = np.array(sorted(by_key), np.int64)
    kinds = [by_key[key] for key in keys.tolist()]
    names = [kind.name or kind.display_name for kind in kinds]
    encoded = [stat for kind in kinds for stat in kind.stats]
    row = np.repeat(np.arange(len(kinds)), [len(kind.stats) for kind in kinds])
    stats = xplane_stats.empty(len(kinds))
    xplane_stats.fill(stats, row, encoded, stat_names, gathered.table)
    wanted = np.array([not name.startswith(_LISTENER) for name in names], bool)
    return _Metadata(keys, gathered.names.of(names), wanted, stats, stat_names)


# Lines


def _take_line(plane: str, line: Any, metadata: _Metadata, gathered: _Gathered) -> None:
    pieces = [
        _columns(line.events[low : low + _PIECE], metadata, gathered) for low in range(0, len(line.events), _PIECE)
    ]
    if not any(len(piece["start"]) for piece in pieces):
        return
    columns = {key: np.concatenate([piece.pop(key) for piece in pieces]) for key in list(pieces[0])}
    order = np.lexsort((-columns["end"], columns["start"]))
    gathered.lines.append(Line(plane, _text(line.display_name or line.name)))
    gathered.timestamps.append(line.timestamp_ns)
    gathered.columns.append({key: columns.pop(key)[order] for key in list(columns)})


def _columns(events: Sequence[bytes], metadata: _Metadata, gathered: _Gathered) -> dict[str, np.ndarray]:
    """The columns of some encoded events of a line; times are [ps] since the line's timestamp."""
    key, start, duration, occurrences = xplane_columns.numbers(
        XEvents, events, ("metadata_id", "offset_ps", "duration_ps", "num_occurrences")
    )
    at = np.searchsorted(metadata.keys, key).clip(max=max(len(metadata.keys) - 1, 0))
    named = metadata.keys[at] == key if len(metadata.keys) else np.zeros(len(key), bool)
    single = occurrences == 0
    timely = (abs(start.clip(-_DAY - 1, _DAY + 1)) <= _DAY) & (duration >= 0) & (duration <= _DAY)
    for description, good in (
        ("events without a name", named),
        ("events that stand for several, without times", single | ~named),
        ("events with impossible times", timely | ~single | ~named),
    ):
        gathered.mended[description] += int(np.count_nonzero(~good))
    chosen = np.flatnonzero(named & single & timely)
    chosen = chosen[metadata.wanted[at[chosen]]]
    at, start, duration = at[chosen], start[chosen], duration[chosen]
    columns = {stat: values[at] for stat, values in metadata.stats.items()}
    row, encoded = xplane_columns.stats(list(map(events.__getitem__, chosen.tolist())))
    xplane_stats.fill(columns, row, encoded, metadata.stat_names, gathered.table)
    return {"start": start, "end": start + duration, "name": metadata.name[at], **columns}


# Lines -> trace


def _joined(gathered: _Gathered, messages: list[str]) -> XTrace:
    near_lines, base = _together(gathered.timestamps)
    gathered.mended["lines further than a day from the others"] += len(gathered.lines) - len(near_lines)
    lines = tuple(gathered.lines[i] for i in near_lines)
    columns = [gathered.columns[i] for i in near_lines]
    line = np.repeat(np.arange(len(lines), dtype=np.int32), [len(of_line["start"]) for of_line in columns])
    shift = np.array([(gathered.timestamps[i] - base) * 1000 for i in near_lines], np.int64)[line]

    def column(key: str, kind: type = np.int64) -> np.ndarray:
        return np.concatenate([np.empty(0, kind), *(of_line.pop(key) for of_line in columns)])

    hlo_op, program = column("hlo_op", np.int32), column("program_id")
    program = _programs(hlo_op, program, column("hlo_module", np.int32), gathered)
    copied = np.array([-1, *map(_size, gathered.copies.encoded())])
    names = gathered.names.decoded()
    scope, nodes = _named_nodes(
        column("tf_op", np.int32), column("node", np.int32), column("kernel_type", np.int32), names
    )
    return XTrace(
        start=column("start") + shift,
        end=column("end") + shift,
        name=column("name", np.int32),
        line=line,
        hlo_op=hlo_op,
        program=program,
        run=column("run_id"),
        produces=column("_p"),
        consumes=column("_c"),
        scope=scope,
        bytes=copied[column("memcpy_details", np.int32) + 1],
        graph=column("cuda_graph_id"),
        names=(*names, *nodes),
        lines=lines,
        modules=MappingProxyType(gathered.modules),
        origin=base if base > _SINCE_1970 else gathered.started and gathered.started + base,
        warnings=(*messages, *(f"Left out {n:,} {description}." for description, n in gathered.mended.items() if n)),
        devices=MappingProxyType(gathered.devices),
    )


def _named_nodes(
    scope: np.ndarray, node: np.ndarray, kind: np.ndarray, names: tuple[str, ...]
) -> tuple[np.ndarray, tuple[str, ...]]:
    """The scopes with those of events that tell node and type of an op apart, and the names that come to the others."""
    named = np.flatnonzero((node >= 0) & (kind >= 0))
    pairs, pair_of = np.unique(np.stack((node[named], kind[named])), axis=1, return_inverse=True)
    scope[named] = len(names) + pair_of.ravel()
    return scope, tuple(f"{names[node_name]}:{names[type_name]}" for node_name, type_name in pairs.T.tolist())


def _together(timestamps: Sequence[int]) -> tuple[list[int], int]:
    """Return the lines with times [ns] within a day of the middle one's, and the earliest of these times."""
    if not timestamps:
        return [], 0
    middle = sorted(timestamps)[len(timestamps) // 2]
    near_lines = [i for i, time in enumerate(timestamps) if abs(time - middle) <= _DAY // 1000]
    return near_lines, min(timestamps[i] for i in near_lines)


def _programs(hlo_op: np.ndarray, program: np.ndarray, module: np.ndarray, gathered: _Gathered) -> np.ndarray:
    """The program of each event; older traces give its module's name only, which may be that of one program.

    Where two programs have one number, the module's name says which of them it is.
    """
    names = gathered.module_names.decoded()
    for (shared, name), renumbered in gathered.renumbered.items():
        program[(program == shared) & (np.array([*(module_name == name for module_name in names), False])[module])] = (
            renumbered
        )
    times = Counter(name for name, _ in gathered.modules.values())
    number = {name: number for number, (name, _) in gathered.modules.items() if times[name] == 1}
    of_module = np.array([-1, *(number.get(name, -1) for name in names)], np.int64)
    return np.where(hlo_op < 0, 0, np.where(program == -1, of_module[module + 1], program))


def _size(details: bytes) -> int:
    """Bytes that a copy moved, by the text that describes it; -1 where it does not tell."""
    match = _COPIED.search(details)
    return int(match[1]) if match else -1


def _signed(number: int) -> int:
    """`number` as the int64 of the same bits."""
    return (number + 2**63) % 2**64 - 2**63


def _text(encoded: bytes) -> str:
    return encoded.decode("utf-8", "replace")
