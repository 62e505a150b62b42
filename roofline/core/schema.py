"""The saved profile: one step's ops with their work, times and buffers, the ceilings, and where it all came from.

A profile holds what was recorded; every verdict is recomputed from it, so a better rule improves old files. It is
versioned JSON. Rows of ops are arrays that point into tables of signatures, scopes and kernels, which keeps a training
step of BERT-base below 1 MB.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from roofline.core import files, shipped, validate
from roofline.core.cost import Cost
from roofline.core.decoding import UndecodableError, from_json, undecodable
from roofline.core.device import Device
from roofline.core.vocabulary import RESIDENT, STORAGE_KINDS, OpClass, Phase
from roofline.errors import InputError
from roofline.repr_mixin import ReprMixin

SCHEMA = 1

#: One function per schema step: MIGRATIONS[n] turns the decoded JSON of schema n into that of schema n + 1.
MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}

#: A profile is a few hundred kilobytes; a file a hundred times larger is not one.
MAX_BYTES = 256 * 1024 * 1024

_MADE = "one is made by `roofline profile`, or of a trace by `roofline import`"


class Precision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The types that a contraction computes in: inputs, arithmetic, accumulator and output, and their evidence."""

    inputs: str
    arithmetic: str | None
    accumulate: str | None
    output: str | None
    evidence: str


class Signature(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The facts that ops with equal arguments share.

    name: the framework's op; kind: our op kind (costs/formulas.py); shapes: the arguments, for people.
    dtype: of most bytes that it writes (fp32, ...); arithmetic: the type it computes in, where that is another one. In
    older profiles dtype is that of the first input.
    reads, writes: bytes of each distinct buffer touched, in the order of `Op.reads` and `Op.writes`.
    inplace: whether a written buffer is also read. executor: what launches it ("launch.<executor>" is its floor); "":
    what launches the other ops of the step. layout: "channels_last" where a tensor is laid out so; "": contiguous, or
    not recorded.
    """

    name: str
    kind: str
    op_class: OpClass
    shapes: str
    dtype: str | None
    cost: Cost
    precision: Precision | None = None
    reads: tuple[float, ...] = ()
    writes: tuple[float, ...] = ()
    inplace: bool = False
    executor: str = ""
    layout: str = ""
    arithmetic: str | None = None

    @property
    def computes_in(self) -> str | None:
        """Return the type that vector work is done in, and of what a product multiplies."""
        return self.arithmetic or self.dtype


#: Times of a host [ns] and what it is counted to have done: bounds that cost nothing while rows of ops are decoded.
_Host = Annotated[int, msgspec.Meta(ge=0, le=validate.LONGEST)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=validate.MOST)]
#: Where a buffer begins [byte].
_Address = Annotated[int, msgspec.Meta(ge=0, le=validate.LAST_ADDRESS)]


class Op(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An op of the step, in the order of dispatch. Indices point into the profile's tables.

    own_ns: its own time in each kept profiled step [ns], after the profiler's cost per event was subtracted.
    overlap_ns: mean own time minus share: time it ran beside other ops [ns].
    start_ns: its start in the representative profiled step [ns].
    launches: times the device was launched (1 on a CPU).
    reads, writes: buffers touched, by number.
    kernels: (name, mean own time [ns]) of each kernel, of all its launches together.
    constituents: signatures of the ops that were fused into it; empty for an op that stands for itself.
    places: (scope, phase, block) of each constituent; empty: they are those of the op.
    host_ns: how long no op ran before it [ns], mean over the kept steps: while the host was in the framework's events,
    and while it was outside of them (Python). What a device takes between queued kernels is in neither. None: not
    recorded.
    host_reads: results that the host read (`.item()`) after the op before it. None: not recorded.
    host_calls: calls of the framework in that time that run no op (views). None: not recorded.
    python_ns: what of that time is outside of the framework, median over the kept steps [ns]. None: not recorded.
    times: how often the step runs it, as a loop does; its times and work are of all of them.
    line: the line of the program that asked for it, an index into `Profile.lines`. None: not known.
    """

    signature: int
    scope: int
    phase: int
    block: int
    own_ns: tuple[int, ...]
    overlap_ns: int
    start_ns: int
    launches: int
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    kernels: tuple[tuple[int, int], ...] = ()
    constituents: tuple[int, ...] = ()
    places: tuple[tuple[int, int, int], ...] = ()
    host_ns: tuple[_Host, _Host] | None = None
    host_reads: _Count | None = None
    host_calls: _Count | None = None
    python_ns: _Host | None = None
    times: int = 1
    line: _Count | None = None


class Turns(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Fresh processes of a step, in turns with those of other steps (docs/comparing.md).

    token: names these turns: profiles that have it were measured in them. medians: of the plain steps of its process in
    each turn [s]; None: it had none. waited: how long a thread of each process waited for a core, per step [s]; None:
    not recorded. disturbed: whether other programs used the cores of each. All three by turn.
    """

    token: str
    medians: tuple[float | None, ...]
    waited: tuple[float | None, ...]
    disturbed: tuple[bool, ...]


class Wall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Times of plain steps [s] (the T run).

    steps: by the protocol, none where the step was counted and not timed; single: with a synchronisation after each
    step; first: the first step of the process, which builds and compiles, and which a process that only counts runs,
    too; processes: the steps of each further process (`--rounds`). turns: of these, those
    that took turns with other steps. numbers: how many steps the process ran before each of `steps`, from the first of
    them on, where others ran in between, as profiled ones do; empty: none did.
    protocol: "steady" (enqueued back to back) or "single"; source: "plain", or "profiled" for an imported trace.
    """

    steps: tuple[float, ...]
    numbers: tuple[_Count, ...] = ()
    protocol: str = "steady"
    source: str = "plain"
    first: float | None = None
    single: tuple[float, ...] = ()
    processes: tuple[tuple[float, ...], ...] = ()
    turns: tuple[Turns, ...] = ()


class Api(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The time of the step in the function of a library that a published benchmark timed (`name`), such as "fit" [s].

    steps: of each batch but the first, from the end of the batch before it, the first of them from its own begin: their
    mean is what the benchmark's clock says. after: plain steps right behind them, by the protocol of `Wall`.
    data: what hands it the batches. waiting: per step, how long it waited for the next batch; None: it hides that.
    alone: of a batch that is taken from the same data and given to no model; None: not measured.
    """

    name: str
    steps: tuple[float, ...]
    after: tuple[float, ...] = ()
    data: str = ""
    waiting: float | None = None
    alone: float | None = None


class Profiled(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The profiled steps (the P run) as they describe themselves. Times in seconds per step.

    walls: of the kept steps, as profiled; corrected: after the profiler's cost per event was subtracted.
    dropped: outlying steps left out whole. events: profiler events per step; event_cost: taken off for each, mean [s].
    idle: observed time in which no op ran, corrected, per kept step. idle_causes: its mean by cause.
    joined: share of the union of all leaf events whose event has a counted record.
    """

    walls: tuple[float, ...]
    corrected: tuple[float, ...]
    dropped: int
    events: int
    event_cost: float
    idle: tuple[float, ...]
    idle_causes: Mapping[str, float]
    joined: float | None
    mechanism: str = "eager"


class Memory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Bytes of memory: the measured peak and how it was read (`source`), parameters, optimizer state.

    resident: the peak of all memory of the process, its libraries included, which is not the step's. gradients: of the
    parameters, after a step.
    """

    peak: float | None = None
    parameters: float | None = None
    optimizer: float | None = None
    source: str = ""
    resident: float | None = None
    gradients: float | None = None


class Energy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The energy of plain steps by the counter of a GPU, all of its board [J].

    per_step: the mean, sure to within `uncertainty`, as the counter moves in ticks of `tick` [s]. steps: how many it
    was measured over, in `seconds`: the plain ones and those that fill the queue before them. alone: whether the driver
    names the processes on the GPU, and all of them are of this measurement; False: it does not name them.
    """

    per_step: float
    uncertainty: float
    tick: float
    seconds: float
    steps: _Count
    alone: bool = False

    @property
    def relative(self) -> float | None:
        """Return the uncertainty as a share of the energy; None where the counter did not move."""
        return self.uncertainty / self.per_step if self.per_step else None

    def per_sample(self, samples: int | None) -> float | None:
        """Return the energy of a sample [J]; None where the step does not say how many it has."""
        return self.per_step / samples if samples else None


class Storages(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The memory of a step, storage by storage: columns of one length.

    source: who told: "allocator" or "buffer assignment". kind: index into `vocabulary.STORAGE_KINDS`. bytes: of each.
    first, last: numbers of the first and the last op during which it is there; what was there before the step begins
    with op 0, and what outlives it ends with the last op. assigned: bytes that are there throughout, however few of
    them are in use, as of XLA's programs; None: memory is taken when it is needed. at_least: whether more may be there
    than is recorded.
    """

    source: str
    kind: tuple[_Count, ...]
    bytes: tuple[_Address, ...]
    first: tuple[_Count, ...]
    last: tuple[_Count, ...]
    assigned: float | None = None
    at_least: bool = False

    def fits(self, ops: int) -> bool:
        """Return whether the columns are of one length and point at kinds and ops that there are."""
        lengths = {len(column) for column in (self.kind, self.bytes, self.first, self.last)}
        return (
            len(lengths) == 1
            and max(self.kind, default=0) < len(STORAGE_KINDS)
            and max(self.last, default=-1) < ops
            and all(first <= last for first, last in zip(self.first, self.last, strict=True))
        )


class Compilation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The effect of a compiler on the step. Unknown is None.

    compiler: "torch.compile", "TorchScript"; mode: the compiler's own name of its settings.
    seconds: compile time, inside the first step [s]. graphs: compiled graphs that one step runs, forward and backward
    apart. breaks: graph breaks, reason -> how often one was made while tracing. recompilations: why a frame was
    compiled again, one entry per recompilation. guards: checks that decide whether compiled code still fits.
    eager: what runs outside compiled graphs, phase -> (ops per step, their mean own time per step [s]).
    opaque: compiled regions whose inside is not known. notes: sentences for the reader.
    """

    compiler: str
    mode: str = "default"
    seconds: float | None = None
    graphs: int = 0
    breaks: Mapping[str, int] = {}
    recompilations: tuple[str, ...] = ()
    guards: int | None = None
    eager: Mapping[str, tuple[int, float]] = {}
    opaque: int = 0
    notes: tuple[str, ...] = ()


class EngineSteps(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The steps of one kind that a serving engine ran in a trace, without its first.

    phase: "prefill", "decode" or "mixed". seconds: of all of them together [s]. sequences, tokens: of all of them, the
    new tokens that they compute; a sequence that several steps continue counts in each.
    """

    phase: Phase
    steps: _Count
    seconds: float
    sequences: _Count
    tokens: _Count


class Imported(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A trace recorded elsewhere as it describes itself. Times in seconds, of the whole trace; unknown is None.

    files: names of the traces, without folders. span: from the first device event to the end of the last one; busy: the
    union of all device events, of all steps; idle: the rest of the span. Of a CPU's trace they are those of its ops.
    steps: how many the trace holds; marks: what marks them ("ProfilerStep#", ...; "" where it is one step as a whole);
    rule: what was taken as a step, in words ("from one Optimizer.step to the next"); inferred: by what repeats alone.
    linked, launched, twinned: shares of the summed time of device events that have an op, that have a launch, and whose
    op is known from a twin alone. communication, exposed: time in collectives per step, and of it what no computation
    hides [s]. waiting: of it what this rank waited for slower ones, known only beside the traces of the other ranks.
    rank: of how many (`ranks`). buffers: whether the trace says which buffers ops share; without it floors are
    intervals. modules: whether scopes are modules, whose calls are in the trace. warnings: what was mended, left out or
    assumed, in sentences. notes: what to record for a fuller profile. engine: the steps of a serving engine by their
    kind, none where the trace is of no such engine.
    """

    files: tuple[str, ...] = ()
    span: float | None = None
    busy: float | None = None
    idle: float | None = None
    steps: int = 1
    marks: str = ""
    rule: str = ""
    inferred: bool = False
    linked: float | None = None
    launched: float | None = None
    twinned: float | None = None
    communication: float | None = None
    exposed: float | None = None
    waiting: float | None = None
    rank: int | None = None
    ranks: int | None = None
    buffers: bool = False
    modules: bool = False
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    engine: tuple[EngineSteps, ...] = ()


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What collectives of one kind exchange, as a trace says it. Unknown is None.

    name: of the operation ("all_reduce"). kernel: what ran it on the device, which names algorithm and protocol. group:
    the process group's name; ranks: how many are in it; members: these, where they are listed. sent, received: by one
    rank [byte].
    """

    name: str
    kernel: str
    group: str = ""
    ranks: int | None = None
    members: tuple[int, ...] = ()
    sent: float | None = None
    received: float | None = None

    @property
    def among(self) -> str:
        """Name the ranks that exchange: those that are listed, else the group; "" where neither is recorded."""
        return ",".join(map(str, self.members)) or self.group


#: Whole numbers of a collective: an index, and times [ns].
_Index = Annotated[int, msgspec.Meta(ge=0, le=validate.MOST)]
_Step = Annotated[int, msgspec.Meta(ge=0, le=validate.LONGEST)]


class Collectives(msgspec.Struct, frozen=True, kw_only=True):
    """The collectives of the steps of a trace, column by column, in the order in which they began on the device.

    message: index into `messages`. step: its number, as annotated. start: since the trace's first event [ns]. duration
    [ns]. before: time between the end of the collectives before it, or the begin of the first step, and its start [ns];
    computing: of that, how long the device ran anything [ns].
    """

    messages: tuple[Message, ...]
    message: tuple[_Index, ...]
    step: tuple[_Step, ...]
    start: tuple[_Step, ...]
    duration: tuple[_Step, ...]
    before: tuple[_Step, ...]
    computing: tuple[_Step, ...]

    @property
    def fits(self) -> bool:
        """Return whether the columns are of one length, and each index points into the messages."""
        lengths = {len(column) for column in (self.message, self.step, self.start, self.duration, self.before)}
        return lengths == {len(self.computing)} and max(self.message, default=-1) < len(self.messages)


class Waits(msgspec.Struct, frozen=True):
    """Times in which no op ran before an op, whose causes a trace tells, column by column.

    causes: of idle time, as in `Profiled.idle_causes`; names: of streams, events, copies and functions of Python. op:
    row of the op that ended it; cause: index into `causes`; of: index into `names`, what was waited for or what the
    host was in, -1 where nothing says so; ns: mean per kept step [ns].
    """

    causes: tuple[str, ...]
    names: tuple[str, ...]
    op: tuple[_Index, ...]
    cause: tuple[_Index, ...]
    of: tuple[Annotated[int, msgspec.Meta(ge=-1, le=validate.MOST)], ...]
    ns: tuple[_Step, ...]

    def fits(self, ops: int) -> bool:
        """Return whether the columns are of one length, and each index points into its table."""
        lengths = {len(column) for column in (self.op, self.cause, self.of, self.ns)}
        tables = ((self.op, ops), (self.cause, len(self.causes)), (self.of, len(self.names)))
        return len(lengths) == 1 and all(max(column, default=-1) < size for column, size in tables)


class Counters(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Bytes of one step by hardware counters, joined to its ops (docs/counters.md).

    tool: "Nsight Compute"; file: name of its table, without folders. kernels: that it counted; unjoined: of these, the
    kernels that belong to no op of the profile. joined: share of their time that was joined, of their number where the
    table has no times; busy: share of the profile's time of kernels in ops with counted bytes.
    read, written: bytes from and to main memory per op, in the order of `Profile.ops`; None: not all kernels of the op
    were counted. through_cache: the same through the last-level cache [byte]; seconds: time of the kernels while they
    were counted [s]. Either is empty where the table lacks it.
    """

    tool: str
    file: str
    kernels: int
    unjoined: int
    joined: float
    busy: float
    read: tuple[float | None, ...]
    written: tuple[float | None, ...]
    through_cache: tuple[float | None, ...] = ()
    seconds: tuple[float | None, ...] = ()


class Profile(ReprMixin, msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, weakref=True):
    """A measured step and its provenance. See the module docstring and docs/profile-format.md.

    framework: the distribution that ran the ops; None: not recorded. written_in: the high-level library of the model
    (Keras); None: there is none. new_tokens: that each sample gets in mode generate. sources: of a
    step in a file of the user's, the SHA-256 of that file, by its name, and of the modules that it imported from its
    folder. preset: the published benchmark whose set-up was asked for; None: none. api: the step in the function that
    it timed; None: not measured, or that is the bare step. counters: bytes by hardware counters; None: not counted.
    addresses: of each buffer, by its number, where its first byte lies [byte], from the begin of the page of the lowest
    one; None: not known; empty: not recorded. Buffers whose ranges overlap share memory. storages: None: not recorded.
    lines: of the user's program, "model.py:88", by which ops were asked for; empty: not recorded.
    waits: idle time whose cause is more than a part of the gap; None: none was looked for, as on a CPU.
    devices: how many share the step; work and bytes are those of all of them together. collectives: of a trace of one
    rank of several; None: it has none, or they are not known. energy: None: nobody counts it, or it is not known.

    It prints as its verdict and the table of groups, and shows itself in a notebook.

    >>> profile = roofline.load("p.json")
    >>> slowest = profile.to_pandas().nlargest(5, "seconds")
    """

    schema: int
    model: str
    backend: str
    mode: str
    size: str
    precision: str
    command: str
    date: str
    device: Device
    wall: Wall
    scopes: tuple[str, ...]
    phases: tuple[str, ...]
    blocks: tuple[str, ...]
    signatures: tuple[Signature, ...]
    ops: tuple[Op, ...]
    kernels: tuple[str, ...] = ()
    profiled: Profiled | None = None
    framework: str | None = None
    written_in: str | None = None
    options: Mapping[str, str] = {}
    batch: int | None = None
    seq: int | None = None
    layers: int | None = None
    versions: Mapping[str, str] = {}
    switches: Mapping[str, str] = {}
    environment: Mapping[str, str] = {}
    conditions: Mapping[str, float] = {}
    parameters: int | None = None
    trainable: int | None = None
    samples: int | None = None
    tokens: int | None = None
    new_tokens: int | None = None
    memory: Memory = Memory()
    flags: tuple[str, ...] = ()
    compilation: Compilation | None = None
    imported: Imported | None = None
    sources: Mapping[str, str] = {}
    preset: str | None = None
    api: Api | None = None
    addresses: tuple[_Address | None, ...] = ()
    devices: Annotated[int, msgspec.Meta(ge=1)] = 1
    counters: Counters | None = None
    collectives: Collectives | None = None
    storages: Storages | None = None
    lines: tuple[str, ...] = ()
    energy: Energy | None = None
    waits: Waits | None = None

    def __repr__(self) -> str:
        ops = f"{len(self.ops)} op{'' if len(self.ops) == 1 else 's'}"
        return f"<Profile of {self.model!r}, {self.mode}, {self.backend!r} on {self.device.name!r}: {ops}>"

    @property
    def has_times(self) -> bool:
        """Return whether ops have times: not where the step was only counted, or no profiled step was kept."""
        return self.profiled is not None and bool(self.profiled.corrected)

    def source_line(self, op: Op) -> str | None:
        """Return the line of the user's program that asked for an op, "model.py:88"; None where it is not known."""
        return None if op.line is None else self.lines[op.line]

    @property
    def own_step(self) -> bool:
        """Return whether its step stands in a file of the user's, and not in a model of ours."""
        return bool(self.sources) or ":" in self.model or self.model.endswith(".py")


def slug(flag: str) -> str:
    """Return the name of a flag: a recorder may write "_" for "-", and add details after a colon."""
    return flag.partition(":")[0].strip().replace("_", "-")


class _Peek(msgspec.Struct):
    schema: Any = None


def encode(profile: Profile) -> bytes:
    """Write a profile as JSON. Raises InputError for one that could not be read again: NaN, what does not fit."""
    # Rows of ops hold whole numbers, of which `validate` checks all by columns: there may be a million.
    plain = msgspec.to_builtins(replace(profile, ops=()))
    validate.check_finite(plain)
    validate.check(profile, "The profile")
    try:
        return msgspec.json.encode(profile) + b"\n"
    except UnicodeEncodeError:  # names of files are bytes, of which not all are text: what is none becomes "?"
        document = msgspec.to_builtins(profile)
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def decode(data: bytes, source: str = "the profile") -> Profile:
    """Read the profile in `data`, migrated to this version's schema; InputError says what is wrong with it."""
    if len(data) > MAX_BYTES:
        raise InputError(f"{source} is larger than {MAX_BYTES >> 20} MiB, so it is not a profile; {_MADE}.")
    try:
        profile = _current(data)
        if profile is None:
            version = from_json(data, _Peek).schema
            if not isinstance(version, int) or isinstance(version, bool) or version < 1:
                raise InputError(f"{source} is not a roofline profile: it has no schema number; {_MADE}.")
            if version > SCHEMA:
                raise InputError(
                    f"{source} was made by a newer roofline (schema {validate.reported(version)}, this one reads up to "
                    f"{SCHEMA}): upgrade."
                )
            plain = from_json(data, dict[str, Any])
            for step in range(version, SCHEMA):
                plain = MIGRATIONS[step](plain)
            with undecodable():
                profile = msgspec.convert(plain, type=Profile)
    except UndecodableError as error:
        raise InputError(f"{source} cannot be read as a profile: {error}; {_MADE}.") from None
    validate.check(profile, source, decoded=True)
    return _with_known_memory(profile if profile.profiled is not None else _without_steps(profile))


def _without_steps(profile: Profile) -> Profile:
    """Drop the first step that older versions wrote as a plain one of a step that was only counted."""
    return replace(profile, wall=replace(profile.wall, steps=(), numbers=(), single=(), processes=()))


def _with_known_memory(profile: Profile) -> Profile:
    """Take what was written of a step's memory for what it is.

    Older versions wrote all memory of its process as its peak, and 0 for parameters of a Keras model that PyTorch did
    not tell.
    """
    memory = profile.memory
    if memory.source == RESIDENT:
        memory = replace(memory, peak=None, source="", resident=memory.peak)
    if memory.parameters == 0 and profile.parameters:
        memory = replace(memory, parameters=None)
    return profile if memory is profile.memory else replace(profile, memory=memory)


def _current(data: bytes) -> Profile | None:
    """Read the profile in `data`; None for one of another schema. Raises UndecodableError.

    While it is decoded nothing becomes garbage, and looking for some in a million tuples takes longer than decoding.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        profile = from_json(data, Profile)
    except UndecodableError:
        schema = from_json(data, _Peek).schema
        if type(schema) is int and schema == SCHEMA:
            raise
        return None
    finally:
        if collecting:
            gc.enable()
    return profile if profile.schema == SCHEMA else None


def load(path: str | os.PathLike[str]) -> Profile:
    """Load a saved profile, of this version or of one before it.

    path: a file, or the short name of a profile that ships, as `roofline show` lists them; a file of that name wins.
    Raises InputError where it cannot be read.

    >>> print(roofline.load("p.json"))
    >>> print(roofline.load("h100/bert-torch-infer-b32-tf32"))
    """
    file = shipped.locate(path)
    if file is None and (problem := shipped.missing(path)):
        raise InputError(problem)
    return decode(files.read(file or Path(path), MAX_BYTES, "a profile"), str(path))


def save(profile: Profile, path: str | os.PathLike[str], *, replace: bool = True) -> None:
    """Write the profile as JSON, whole or not at all. InputError where it cannot be written.

    replace: an existing file is replaced; else it stays, and `files.TakenError` is raised.

    >>> roofline.save(profile, "mine.json")
    """
    files.write_atomically(Path(path), encode(profile), replace=replace)
