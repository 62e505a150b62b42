"""The bytes of one step by hardware counters (Nsight Compute), joined to the ops of a saved profile.

    python benchmarks/gpu/counters.py --profile P.json --cache-control none --rows ROWS.csv > TOTALS.json

ROWS.csv has one line per op: what the profile says it must move, what of that the rule for caches sends to main memory,
and what the counters saw. Without cache control a kernel finds the cache as the kernel before it left it, which is what
happens in a step as long as the metrics fit one pass; with it every kernel begins with an empty cache.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, fields
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from roofline.analysis.analysis import Analysis, analyze
from roofline.analysis.cache_traffic import cold_traffic
from roofline.core.schema import load

HERE = Path(__file__).resolve().parent
#: Of one_step.py, which this module cannot import without PyTorch.
NOTHING = 10
DRAM_READ, DRAM_WRITTEN, L2 = "dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_bytes.sum"
METRICS = (DRAM_READ, DRAM_WRITTEN, L2)
#: What may stand before a number's unit where it is not asked for in bytes.
_UNITS = {"byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "": 1.0}


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel that the counters saw, with bytes from and to main memory and through the last-level cache."""

    name: str
    dram_read: float
    dram_written: float
    l2: float


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
    return words


def main() -> int:
    asked = parser().parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ncu.csv"
        done = subprocess.run(command(asked.profile, asked.cache_control, log), check=False)
        if done.returncode or not log.is_file():
            print(log.read_text() if log.is_file() else "ncu left no log", file=sys.stderr)
            return done.returncode or 1
        seen = kernels(log.read_text(encoding="utf-8", errors="replace"))
    nothing, step = seen[:NOTHING], seen[NOTHING:]
    analysis = analyze(load(asked.profile))
    rows = joined(analysis, step)
    write(rows, asked.rows)
    json.dump({"cache control": asked.cache_control, **totals(rows, step, nothing)}, sys.stdout, indent=1)
    print()
    return 0


def command(profile: Path, control: str, log: Path) -> list[str]:
    """ncu on one step. Clocks are left alone: a machine that is lent does not let them be set."""
    words = ["ncu", "--profile-from-start", "off", "--cache-control", control, "--clock-control", "none"]
    words += ["--target-processes", "application-only", "--metrics", ",".join(METRICS)]
    words += ["--csv", "--page", "raw", "--print-units", "base", "--log-file", str(log)]
    return [*words, sys.executable, "-P", str(HERE / "one_step.py"), str(profile)]


def kernels(text: str) -> list[Kernel]:
    """The kernels of ncu's raw page as CSV, in the order of their launches. Raises ValueError where there is none."""
    lines = text.splitlines()
    first = next((number for number, line in enumerate(lines) if line.startswith('"ID"')), None)
    if first is None:
        raise ValueError("ncu's log holds no table: look at what it says in the log of this item.")
    table = list(csv.DictReader(line for line in lines[first:] if line.startswith('"')))
    units, found = table[0], table[1:]
    missing = [name for name in METRICS if name not in units]
    if missing:
        raise ValueError(f"ncu's table has no column {missing[0]}.")

    def value(row: dict[str, str], name: str) -> float:
        return float(row[name].replace(",", "")) * _UNITS[units[name]]

    return [
        Kernel(row["Kernel Name"], value(row, DRAM_READ), value(row, DRAM_WRITTEN), value(row, L2)) for row in found
    ]


def joined(analysis: Analysis, step: Sequence[Kernel]) -> list[Row]:
    """Each op with what the counters saw of its kernels, joined by their order and the names of their functions.

    Ops are in the order in which they began; copies and fills by the driver are no kernels.
    """
    profile = analysis.profile
    cold = cold_traffic(profile, analysis.device)
    order = sorted(range(len(profile.ops)), key=lambda number: profile.ops[number].start_ns)
    ours: list[tuple[int, str]] = []
    for number in order:
        for index, _ in profile.ops[number].kernels:
            if not re.match(r"Mem(cpy|set)\b", profile.kernels[index]):
                ours.append((number, function(profile.kernels[index])))
    theirs = [function(kernel.name) for kernel in step]
    partner: dict[int, list[Kernel]] = {}
    matcher = SequenceMatcher(None, [name for _, name in ours], theirs, autojunk=False)
    for a, b, size in matcher.get_matching_blocks():
        for offset in range(size):
            partner.setdefault(ours[a + offset][0], []).append(step[b + offset])
    number_of: dict[int, int] = {}
    for number, _ in ours:
        number_of[number] = number_of.get(number, 0) + 1
    rows = []
    for number in order:
        op = profile.ops[number]
        signature, matched, has = profile.signatures[op.signature], partner.get(number, []), number_of.get(number, 0)
        whole = has > 0 and len(matched) == has
        rows.append(
            Row(
                op=f"{signature.name} {signature.shapes}".strip(),
                op_class=analysis.op_class(op),
                phase=profile.phases[op.phase],
                block=profile.blocks[op.block],
                own_us=float(analysis.table.own[number]) * 1e6,
                kernels=has,
                joined=len(matched),
                read=signature.cost.bytes_read,
                written=signature.cost.bytes_written,
                cold_read=cold.read[number],
                cold_written=cold.written[number],
                dram_read=sum(one.dram_read for one in matched) if whole else None,
                dram_written=sum(one.dram_written for one in matched) if whole else None,
                l2=sum(one.l2 for one in matched) if whole else None,
            )
        )
    return rows


def function(name: str) -> str:
    """The name of a kernel's function alone: no result, namespaces, template arguments and parameters.

    Kineto writes `void at::native::f<4, (anonymous namespace)::g<float> >(int)`, ncu some of that in other ways.
    """
    name = re.sub(r"\(anonymous namespace\)::|<unnamed>::|\banonymous-namespace::", "", name)
    name = name.replace("->", "")
    depth, kept = 0, []
    for letter in name.removeprefix("void ").strip():
        if letter == "(" and not depth:
            break
        depth += (letter == "<") - (letter == ">")
        if not depth and letter != ">":
            kept.append(letter)
    return "".join(kept).strip().rpartition("::")[2]


def write(rows: Sequence[Row], file: Path) -> None:
    """One line per op; unknown is empty."""
    names = [field.name for field in fields(Row)]
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(names)
        for row in rows:
            values = [getattr(row, name) for name in names]
            writer.writerow(["" if one is None else round(one, 3) if isinstance(one, float) else one for one in values])


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
            "dram_read": _middle([one.dram_read for one in nothing]),
            "dram_written": _middle([one.dram_written for one in nothing]),
            "l2": _middle([one.l2 for one in nothing]),
        },
        "all kernels": {
            "dram_read": sum(one.dram_read for one in step),
            "dram_written": sum(one.dram_written for one in step),
            "l2": sum(one.l2 for one in step),
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
    except ValueError as error:
        sys.exit(f"{error}")
