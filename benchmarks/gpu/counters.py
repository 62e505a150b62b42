"""The bytes of one step by hardware counters (Nsight Compute), joined to the ops of a saved profile.

    python benchmarks/gpu/counters.py --profile P.json --cache-control none --rows OPS.csv --table NCU.csv > TOTALS.json

OPS.csv has one line per op: what the profile says it must move, what of that the rule for caches sends to main memory,
and what the counters saw; NCU.csv is ncu's own table; TOTALS.json the totals. Without cache control a kernel finds the
cache as the kernel before it left it, which is what happens in a step as long as the metrics fit one pass; with it
every kernel begins with an empty cache. Tables are read and joined as `roofline counters` does it.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from roofline.analysis.analysis import Analysis, analyze
from roofline.analysis.caches.traffic import cold_traffic
from roofline.core.schema import load
from roofline.counters import nsight_compute
from roofline.counters.joining import join
from roofline.counters.nsight_compute import Kernel
from roofline.errors import InputError

HERE = Path(__file__).resolve().parent
#: Of one_step.py, which this module cannot import: nothing of its folder is imported with `-P`.
NOTHING = 10


@dataclass(frozen=True, slots=True)
class Row:
    """One op. Bytes: compulsory by its formula (None: unknown), cold by the rule for caches, counted by the hardware.

    kernels: how many it has; joined: how many of them the counters saw. Counted bytes are None unless all were.
    """

    op: str
    op_class: str
    phase: str
    block: str
    own_us: float
    kernels: int
    joined: int
    read: float | None
    written: float | None
    cold_read: float
    cold_written: float
    dram_read: float | None
    dram_written: float | None
    l2: float | None


def parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--profile", type=Path, required=True)
    words.add_argument("--cache-control", choices=("all", "none"), required=True)
    words.add_argument("--rows", type=Path, required=True, help="where the table of ops goes (.csv)")
    words.add_argument("--table", type=Path, required=True, help="where ncu's own table goes (.csv)")
    return words


def main() -> int:
    asked = parser().parse_args()
    program = [sys.executable, "-P", str(HERE / "one_step.py"), str(asked.profile)]
    done = subprocess.run(nsight_compute.command(program, str(asked.table), asked.cache_control), check=False)
    if done.returncode or not asked.table.is_file():
        print(asked.table.read_text() if asked.table.is_file() else "ncu left no table", file=sys.stderr)
        return done.returncode or 1
    kernels = nsight_compute.read(asked.table)
    nothing, step = kernels[:NOTHING], kernels[NOTHING:]
    rows = rows_of(analyze(load(asked.profile)), step)
    write(rows, asked.rows)
    json.dump({"cache control": asked.cache_control, **totals(rows, step, nothing)}, sys.stdout, indent=1)
    print()
    return 0


def rows_of(analysis: Analysis, step: Sequence[Kernel]) -> list[Row]:
    """Each op with what the counters saw of its kernels, in the order in which the ops began."""
    profile = analysis.profile
    cold, joined = cold_traffic(profile, analysis.device), join(profile, step)
    rows = []
    for number in sorted(range(len(profile.ops)), key=lambda op: profile.ops[op].start_ns):
        op, kernels, complete = profile.ops[number], joined.kernels[number], joined.complete(number)
        signature = profile.signatures[op.signature]
        rows.append(
            Row(
                op=f"{signature.name} {signature.shapes}".strip(),
                op_class=analysis.op_class(op),
                phase=profile.phases[op.phase],
                block=profile.blocks[op.block],
                own_us=float(analysis.table.own[number]) * 1e6,
                kernels=joined.launches[number],
                joined=len(kernels),
                read=signature.cost.bytes_read,
                written=signature.cost.bytes_written,
                cold_read=float(cold.read[number]),
                cold_written=float(cold.written[number]),
                dram_read=sum(kernel.read for kernel in kernels) if complete else None,
                dram_written=sum(kernel.written for kernel in kernels) if complete else None,
                l2=sum(kernel.through_cache or 0.0 for kernel in kernels) if complete else None,
            )
        )
    return rows


def write(rows: Sequence[Row], file: Path) -> None:
    """One line per op; unknown is empty."""
    names = [field.name for field in fields(Row)]
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(names)
        for row in rows:
            cells = [getattr(row, name) for name in names]
            writer.writerow(
                ["" if cell is None else round(cell, 3) if isinstance(cell, float) else cell for cell in cells]
            )


def totals(rows: Sequence[Row], step: Sequence[Kernel], nothing: Sequence[Kernel]) -> dict[str, Any]:
    """Sums over the ops whose bytes are known on both sides, by class and in all, beside what was not joined."""
    both = [row for row in rows if row.l2 is not None and row.read is not None and row.written is not None]
    classes = sorted({row.op_class for row in both})
    return {
        "kernels": {
            "of the profile": sum(row.kernels for row in rows),
            "of the counters": len(step),
            "joined": sum(row.joined for row in rows),
        },
        "of a kernel on one element": {
            "dram_read": _middle([kernel.read for kernel in nothing]),
            "dram_written": _middle([kernel.written for kernel in nothing]),
            "l2": _middle([kernel.through_cache or 0.0 for kernel in nothing]),
        },
        "all kernels": {
            "dram_read": sum(kernel.read for kernel in step),
            "dram_written": sum(kernel.written for kernel in step),
            "l2": sum(kernel.through_cache or 0.0 for kernel in step),
        },
        "all ops": _sums(both),
        "classes": {name: _sums([row for row in both if row.op_class == name]) for name in classes},
    }


def _middle(values: Sequence[float]) -> float | None:
    return sorted(values)[len(values) // 2] if values else None


def _sums(rows: Sequence[Row]) -> dict[str, float]:
    names = ("read", "written", "cold_read", "cold_written", "dram_read", "dram_written", "l2")
    return {"ops": len(rows), **{name: sum(getattr(row, name) for row in rows) for name in names}}


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InputError as error:
        sys.exit(f"{error}")
