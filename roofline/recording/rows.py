"""Join counted ops and their times into the rows of a profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import msgspec
import numpy as np
from numpy.typing import NDArray

from roofline.core.cost import unknown
from roofline.core.schema import Op, Signature, Storages, Waits
from roofline.core.vocabulary import OpClass
from roofline.costs import kernel_names, precision
from roofline.costs.counted import PHASES, Costed, Counted, CountedOp
from roofline.costs.weight import weight
from roofline.timing.timed import Timed

Kernels = tuple[tuple[int, int], ...]
#: [byte] Addresses are counted from the start of a page of this size, so that no pointer of the process is published.
_PAGE = 4096


@dataclass(frozen=True, slots=True)
class OpTables:
    """Hold the tables of a profile's ops. source: the counted op of each, -1 for a kernel without one.

    addresses, storages, lines, waits: see `schema.Profile`.
    """

    ops: tuple[Op, ...]
    signatures: tuple[Signature, ...]
    blocks: tuple[str, ...]
    kernels: tuple[str, ...]
    source: tuple[int, ...]
    addresses: tuple[int | None, ...] = ()
    storages: Storages | None = None
    lines: tuple[str, ...] = ()
    waits: Waits | None = None


def op_rows(
    counted: Counted, timed: Timed | None, block_of_scope: Sequence[str], switches: Mapping[str, str], device: str
) -> OpTables:
    """Make a row per op that ran on the device, and per kernel without an op; `timed` None: counted only.

    block_of_scope: the block of each of `counted.scopes`; the optimizer's ops are a block of their own.
    switches: they decide the arithmetic of float32 contractions ("float32 matmul (oneDNN)": "ieee").
    """
    table = _Tables(switches, device, timed.kernel_names if timed else ())
    optimizer = PHASES.index("optimizer")
    for row, op in enumerate(counted.ops):
        launches = op.times if timed is None or timed.launches is None else int(timed.launches[row])
        if launches == 0 and timed is not None and not timed.own[row].any():
            continue  # beside a GPU: an op of the host, such as making a scalar
        kernels = table.renamed(timed.kernels[row]) if timed else ()
        phase, scope = int(counted.phase[row]), int(counted.scope[row])
        blocks = ["optimizer" if when == optimizer else block_of_scope[at] for at, when in op.places]
        table.add(
            table.signature(counted.names_of_ops[row], op.costed, kernels),
            scope=scope,
            phase=phase,
            block="optimizer" if phase == optimizer else _main_block(op, blocks) or block_of_scope[scope],
            timed=timed,
            row=row,
            launches=launches,
            times=op.times,
            reads=op.reads,
            writes=op.writes,
            kernels=kernels,
            constituents=tuple(table.signature(part.kind, part, ()) for part in op.costed.parts),
            places=tuple((at, when, block) for (at, when), block in zip(op.places, blocks, strict=True)),
            host_reads=None if counted.host_reads is None else int(counted.host_reads[row]),
            host_calls=None if timed is None or timed.calls is None else round(float(timed.calls[row])),
            python=None if timed is None or timed.python is None else float(np.median(timed.python[row])),
            line=op.line,
        )
    for number, name in enumerate(timed.extra if timed else ()):
        row = len(counted.ops) + number
        table.add(
            table.lost(name),
            scope=_top_scope(counted),
            phase=PHASES.index("forward"),
            block="(no op)",
            is_op=False,
            timed=timed,
            row=row,
            launches=1 if timed is None or timed.launches is None else int(timed.launches[row]),
            kernels=table.renamed(timed.kernels[row]) if timed else (),
        )
    rows = table.rows(counted.addresses)
    return replace(
        rows,
        storages=None if counted.storages is None else _of_rows(counted.storages, rows.source),
        waits=None if timed is None or timed.waits is None else table.waits(timed.waits),
    )


def _main_block(op: CountedOp, blocks: Sequence[str]) -> str | None:
    """Find the block of most of a fused op's work; None for an op without parts."""
    sums: dict[str, float] = {}
    for part, block in zip(op.costed.parts, blocks, strict=bool(blocks)):
        sums[block] = sums.get(block, 0.0) + weight(part.cost)
    return max(sums, key=sums.__getitem__, default=None)


def _top_scope(counted: Counted) -> int:
    return counted.scopes.index("") if "" in counted.scopes else 0


class _Tables:
    """Collect rows and the tables they point into."""

    def __init__(self, switches: Mapping[str, str], device: str, kernel_names: Sequence[str]) -> None:
        self._switches, self._device, self._kernel_names = switches, device, kernel_names
        self._signatures: dict[object, int] = {}
        self._made: list[Signature] = []
        self._blocks: dict[str, int] = {}
        self._buffers: dict[int, int] = {}
        self._kernels: dict[str, int] = {}
        self._lines: dict[str, int] = {}
        self._named: list[str] = []  # names of kernels in order, since there may be as many as ops
        self._ops: list[Op] = []
        self._source: list[int] = []
        self._row_of: dict[int, int] = {}  # of each number in a Timed the row that it is

    def rows(self, addresses: Mapping[int, int] = MappingProxyType({})) -> OpTables:
        return OpTables(
            ops=tuple(self._ops),
            signatures=tuple(self._made),
            blocks=tuple(self._blocks),
            kernels=tuple(self._named),
            source=tuple(self._source),
            addresses=_relative_addresses([addresses.get(storage) for storage in self._buffers]),
            lines=tuple(self._lines),
        )

    def waits(self, waits: Waits) -> Waits:
        """Number the ops of waits as the profile does; one that begins as the step ends may have no row."""
        kept = [place for place, number in enumerate(waits.op) if number in self._row_of]
        cause, of, ns = (tuple(column[place] for place in kept) for column in (waits.cause, waits.of, waits.ns))
        op = tuple(self._row_of[waits.op[place]] for place in kept)
        return msgspec.structs.replace(waits, op=op, cause=cause, of=of, ns=ns)

    def renamed(self, kernels: Kernels) -> Kernels:
        """Renumber kernels among those that occur in this step."""
        return tuple((self._kernel(self._kernel_names[name]), time) for name, time in kernels)

    def _kernel(self, name: str) -> int:
        if name not in self._kernels:
            self._kernels[name] = len(self._named)
            self._named.append(name)
        return self._kernels[name]

    def signature(self, name: str, costed: Costed, kernels: Kernels) -> int:
        # The kernel that ran proves a contraction's arithmetic, so it is part of what makes contractions equal.
        proof = tuple(sorted({number for number, _ in kernels})) if costed.cost.flops else ()
        names = self._named
        op_class: OpClass = costed.op_class
        if kernels and all(kernel_names.classify(names[number]) == "transfer" for number, _ in kernels):
            op_class = "transfer"  # such as a cast that became a copy from the host
        key = (name, id(costed), op_class, proof)
        if key not in self._signatures:
            self._signatures[key] = len(self._made)
            self._made.append(self._signature(name, costed, op_class, [names[number] for number in proof]))
        return self._signatures[key]

    def _signature(self, name: str, costed: Costed, op_class: OpClass, kernels: Sequence[str]) -> Signature:
        arithmetic = None
        if costed.cost.flops:
            contraction = "convolution" if costed.kind.startswith("convolution") else "matmul"
            # Each framework has its own switches, and each of torch's libraries as well.
            torchs = {"cpu": "oneDNN"}.get(self._device, "cuDNN" if contraction == "convolution" else "cuBLAS")
            names = (f"float32 {contraction} ({library})" for library in (torchs, "XLA", "TensorFlow"))
            switch = costed.arithmetic or next((self._switches[name] for name in names if name in self._switches), None)
            arithmetic = precision.contraction(costed.dtype, costed.output, kernels, switch)
        return Signature(
            name=name,
            kind=costed.kind,
            op_class=op_class,
            shapes=costed.shapes,
            dtype=costed.output or costed.dtype,
            cost=costed.cost,
            precision=arithmetic,
            reads=tuple(size for _, _, size in costed.reads),
            writes=tuple(size for _, _, size in costed.writes),
            inplace=costed.inplace,
            executor=costed.executor,
            layout=costed.layout,
            arithmetic=None if costed.dtype == (costed.output or costed.dtype) else costed.dtype,
        )

    def lost(self, kernel: str) -> int:
        """Add the signature of a kernel that no op launched, and return its number."""
        if kernel not in self._signatures:
            self._signatures[kernel] = len(self._made)
            self._made.append(
                Signature(
                    name=kernel,
                    kind="kernel",
                    op_class=kernel_names.classify(kernel),
                    shapes="",
                    dtype=None,
                    cost=unknown("a kernel that no recorded op launched"),
                )
            )
        return self._signatures[kernel]

    def add(
        self,
        signature: int,
        *,
        scope: int,
        phase: int,
        block: str,
        timed: Timed | None,
        row: int,
        launches: int,
        times: int = 1,
        reads: Sequence[int] = (),
        writes: Sequence[int] = (),
        kernels: Kernels = (),
        constituents: tuple[int, ...] = (),
        places: tuple[tuple[int, int, str], ...] = (),
        host_reads: int | None = None,
        host_calls: int | None = None,
        python: float | None = None,
        line: str | None = None,
        is_op: bool = True,
    ) -> None:
        self._source.append(row if is_op else -1)
        self._row_of[row] = len(self._ops)
        self._ops.append(
            Op(
                signature=signature,
                scope=scope,
                phase=phase,
                block=self._blocks.setdefault(block, len(self._blocks)),
                own_ns=() if timed is None else tuple(np.rint(timed.own[row] * 1e9).astype(np.int64).tolist()),
                overlap_ns=0 if timed is None else round(float(timed.overlap[row]) * 1e9),
                start_ns=0 if timed is None else round(float(timed.start[row]) * 1e9),
                host_ns=None if timed is None else _nanoseconds(timed.host[row]),
                host_reads=host_reads,
                host_calls=host_calls,
                python_ns=None if python is None else round(python * 1e9),
                launches=launches,
                times=times,
                reads=tuple(map(self._buffer, reads)),
                writes=tuple(map(self._buffer, writes)),
                kernels=kernels,
                constituents=constituents,
                line=None if line is None else self._lines.setdefault(line, len(self._lines)),
                places=tuple((at, when, self._blocks.setdefault(part, len(self._blocks))) for at, when, part in places),
            )
        )

    def _buffer(self, storage: int) -> int:
        """Number a buffer in this profile; each that was not recorded (-1) is a new one."""
        key = storage if storage >= 0 else -1 - len(self._buffers)
        return self._buffers.setdefault(key, len(self._buffers))


def _of_rows(storages: Storages, source: Sequence[int]) -> Storages | None:
    """Number ops as the profile does, which has no row for an op of the host. source: the counted op of each row.

    What was there during such ops only is left out; None where the profile has no op at all.
    """
    counted = np.asarray([op for op in source if op >= 0], np.int64)
    if not len(counted):
        return None
    first = np.searchsorted(counted, np.asarray(storages.first, np.int64))
    last = np.searchsorted(counted, np.asarray(storages.last, np.int64), side="right") - 1
    stays = np.flatnonzero(first <= last).tolist()
    return msgspec.structs.replace(
        storages,
        kind=tuple(storages.kind[number] for number in stays),
        bytes=tuple(storages.bytes[number] for number in stays),
        first=tuple(first[stays].tolist()),
        last=tuple(last[stays].tolist()),
    )


def _relative_addresses(addresses: Sequence[int | None]) -> tuple[int | None, ...]:
    """Count addresses [byte] from the page of the lowest one; empty where most of them are not known.

    Too few known buffers would show only a small part of those that overlap.
    """
    recorded = [address for address in addresses if address is not None]
    if 2 * len(recorded) <= len(addresses):
        return ()
    begin = min(recorded) // _PAGE * _PAGE
    return tuple(None if address is None else address - begin for address in addresses)


def _nanoseconds(pair: NDArray[np.float64]) -> tuple[int, int]:
    first, second = np.rint(pair * 1e9).astype(np.int64).tolist()
    return first, second
