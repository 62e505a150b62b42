"""Find which memory a step of XLA's programs holds, and from which op to which: what the compiler assigned.

A program has its arguments, its results and one block for all that it makes in between as long as it runs, whatever of
that block is in use. Arguments and results of one program may outlive it, so of a step of several programs no more is
known than that it holds at least what the largest of them does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from roofline.core.lifetimes import lifetimes
from roofline.core.schema import Storages
from roofline.core.vocabulary import STORAGE_KINDS
from roofline.costs.counted import PHASES
from roofline.xla.executed import Executed
from roofline.xla.hlo import module as hlo

SOURCE = "buffer assignment"
_MAKING = tuple(map(PHASES.index, ("forward", "prefill", "decode")))


def storages(
    ops: Sequence[Executed], phases: Sequence[int], programs: Mapping[int, hlo.Module], devices: Mapping[int, int]
) -> Storages | None:
    """Number the ops between which memory is in use; None where a program has no assignment.

    phases: of the ops. devices: how many share a program, each with memory of its own; else 1.
    """
    rows: dict[int, list[int]] = {}
    for row, op in enumerate(ops):
        rows.setdefault(op.key[0], []).append(row)
    if not rows or not all(programs[program].held for program in rows):
        return None
    columns: list[tuple[int, int, int, int]] = []
    for program, mine in rows.items():
        module = programs[program]
        many = devices.get(program, 1)
        columns += (
            (STORAGE_KINDS.index(kind), module.allocations[number] * many, mine[0], mine[-1])
            for number, kind in module.held.items()
            if kind != "temporary"
        )
        columns += _temporaries(ops, phases, module, mine)
    kinds, sizes, firsts, lasts = zip(*columns, strict=True) if columns else ((),) * 4
    assigned = max(
        devices.get(program, 1) * sum(programs[program].allocations[number] for number in programs[program].held)
        for program in rows
    )
    return Storages(
        source=SOURCE,
        kind=kinds,
        bytes=sizes,
        first=firsts,
        last=lasts,
        assigned=float(assigned),
        at_least=len(rows) > 1,
    )


def _temporaries(
    ops: Sequence[Executed], phases: Sequence[int], module: hlo.Module, rows: Sequence[int]
) -> list[tuple[int, int, int, int]]:
    """Return kind, bytes, first and last op of what the ops of a program make and others use."""
    numbers = module.memo.get("buffers", {})
    temporary = {number for (allocation, _), number in numbers.items() if module.held.get(allocation) == "temporary"}
    accesses = [
        (row, number, size, written)
        for row in rows
        for written, buffers, of in (
            (False, ops[row].reads, ops[row].costed.reads),
            (True, ops[row].writes, ops[row].costed.writes),
        )
        for number, (_, _, size) in zip(buffers, of, strict=True)
        if number in temporary
    ]
    columns = np.asarray(accesses, np.float64).reshape(-1, 4).T
    row, buffer = columns[:2].astype(np.int64)
    lives = lifetimes(row, buffer, columns[2], columns[3] > 0)
    used = np.isin(np.asarray(phases, np.int64)[lives.first], _MAKING) & lives.read
    kinds = np.where(used, STORAGE_KINDS.index("activations"), STORAGE_KINDS.index("workspace"))
    sizes = np.rint(lives.bytes).astype(np.int64)
    return list(zip(*(column.tolist() for column in (kinds, sizes, lives.first, lives.last)), strict=True))
