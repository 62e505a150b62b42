"""The bytes of one step by hardware counters (Nsight Compute), joined to the ops of a saved profile.

    python benchmarks/gpu/counters.py --profile P.json --cache-control none --rows OPS.csv --kernels K.csv > TOTALS.json

OPS.csv has one line per op: what the profile says it must move, what of that the rule for caches sends to main memory,
and what the counters saw; K.csv has one per kernel, in their order; TOTALS.json the totals. Without cache control a
kernel finds the cache as the kernel before it left it, which is what happens in a step as long as the metrics fit one
pass; with it every kernel begins with an empty cache.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from roofline.analysis.analysis import Analysis, analyze
from roofline.analysis.caches.traffic import cold_traffic
from roofline.core.schema import Op, Profile, load

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
    words.add_argument("--kernels", type=Path, required=True, help="where the counted kernels go (.csv)")
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
    write(Row, rows, asked.rows)
    write(Kernel, [replace(kernel, name=function(kernel.name)) for kernel in step], asked.kernels)
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
    names_of = {number: _functions(profile, profile.ops[number]) for number in order}
    has_of = {number: profile.ops[number].launches if names else 0 for number, names in names_of.items()}
    ours = [(number, name) for number in order for name in _launched(names_of[number], has_of[number])]
    partner: dict[int, list[Kernel]] = {}
    for number, kernel in zip(_owners(ours, names_of, [function(kernel.name) for kernel in step]), step, strict=True):
        if number is not None:
            partner.setdefault(number, []).append(kernel)
    rows = []
    for number in order:
        op = profile.ops[number]
        signature, matched, has = profile.signatures[op.signature], partner.get(number, []), has_of[number]
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
                cold_read=float(cold.read[number]),
                cold_written=float(cold.written[number]),
                dram_read=sum(one.dram_read for one in matched) if whole else None,
                dram_written=sum(one.dram_written for one in matched) if whole else None,
                l2=sum(one.l2 for one in matched) if whole else None,
            )
        )
    return rows


def _functions(profile: Profile, op: Op) -> list[str]:
    """The functions of an op's kernels, each once, in the order in which they were first launched."""
    names = [profile.kernels[index] for index, _ in op.kernels]
    return list(dict.fromkeys(function(name) for name in names if not re.match(r"Mem(cpy|set)\b", name)))


def _launched(names: Sequence[str], launches: int) -> Sequence[str]:
    """What is known of an op's launches: all of them for one function, of several that each was launched."""
    return list(names) * launches if len(names) == 1 else names


def _owners(
    ours: Sequence[tuple[int, str]], names_of: Mapping[int, Sequence[str]], theirs: Sequence[str]
) -> list[int | None]:
    """The op of each kernel that the counters saw; None where none can be told.

    A profile does not say how often each of an op's functions was launched, nor in which order the further ones came: a
    kernel that is left over belongs to the op of its neighbour where that has such a function.
    """
    found: list[int | None] = [None] * len(theirs)
    matcher = SequenceMatcher(None, [name for _, name in ours], theirs, autojunk=False)
    for a, b, size in matcher.get_matching_blocks():
        found[b : b + size] = [number for number, _ in ours[a : a + size]]
    for step in (1, -1):
        for place in range(len(theirs))[::step]:
            before = place - step
            neighbour = found[before] if 0 <= before < len(theirs) else None
            if found[place] is None and neighbour is not None and theirs[place] in names_of[neighbour]:
                found[place] = neighbour
    return found


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


def write(kind: type[Row] | type[Kernel], rows: Sequence[Row | Kernel], file: Path) -> None:
    """One line per op or kernel; unknown is empty."""
    names = [field.name for field in fields(kind)]
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
