"""A table as Nsight Compute prints it, of the steps that it counted on an H100 (docs/measured/h100).

No raw table was kept: what was kept are its sums per op, in which ops that were not joined lack theirs. It is written
again from the kernels of the profile and these sums, so that their arithmetic holds. The bytes of an op are divided
evenly over its launches. What all kernels of the step moved and no joined op did is given to the ops that lack theirs,
in proportion to their compulsory bytes: an assumption, which no test rests on. The time of a kernel is that of its op
in the profile, divided evenly, too.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path

from roofline.core.schema import Profile, load

H100 = Path(__file__).resolve().parents[1] / "docs" / "measured" / "h100"
NAMES = ("dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_bytes.sum", "gpu__time_duration.sum")
BEFORE = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size")
BEFORE += ("Grid Size", "Device", "CC")


@dataclass(frozen=True, slots=True)
class Launch:
    """One counted kernel: the number of its op, its name, and what the metrics say of it [byte, byte, byte, ns]."""

    op: int
    name: str
    amounts: tuple[float, float, float, float]


def profile(mode: str) -> Profile:
    """The profile of the counted step, by its mode."""
    return load(H100 / f"ncu-{mode}-profile.json")


def sums(mode: str) -> dict[str, float]:
    """Bytes of all kernels of the counted step, as ncu counted them: dram_read, dram_written, l2."""
    found: dict[str, float] = json.loads((H100 / f"ncu-{mode}-none.json").read_text())["all kernels"]
    return found


def of_ops(mode: str) -> dict[int, tuple[float, float, float]]:
    """Bytes read, written and through the cache by op of the profile, of the ops that were joined on the H100."""
    ops = profile(mode).ops
    order = sorted(range(len(ops)), key=lambda op: ops[op].start_ns)
    with (H100 / f"ncu-{mode}-none.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {
        op: (float(row["dram_read"]), float(row["dram_written"]), float(row["l2"]))
        for op, row in zip(order, rows, strict=True)
        if row["dram_read"]
    }


def launches(mode: str) -> list[Launch]:
    """The kernels of the step, op after op in the order in which the ops began."""
    step, counted, whole = profile(mode), of_ops(mode), sums(mode)
    order = sorted(range(len(step.ops)), key=lambda op: step.ops[op].start_ns)
    names = {
        op: [step.kernels[number] for number, _ in step.ops[op].kernels if not step.kernels[number].startswith("Mem")]
        for op in order
    }
    lacking = {
        op: step.signatures[step.ops[op].signature].cost.bytes or 0.0 for op in order if names[op] and op not in counted
    }
    whole_of_lacking = sum(lacking.values())
    rest = [whole[name] - sum(row[place] for row in counted.values()) for place, name in enumerate(whole)]
    found = []
    for op in order:
        if names[op]:
            number = step.ops[op].launches
            moved = counted.get(op) or tuple(part * lacking[op] / whole_of_lacking for part in rest)
            ns = sum(step.ops[op].own_ns) / len(step.ops[op].own_ns) / number
            for name in islice(cycle(names[op]), number):
                found.append(Launch(op, name, (moved[0] / number, moved[1] / number, moved[2] / number, ns)))
    return found


def raw(kernels: Sequence[Launch], units: Sequence[str] = ("byte", "byte", "byte", "ns")) -> str:
    """The raw page of these kernels, between lines of ncu's own; the amounts are in these units."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow([*BEFORE, *NAMES])
    writer.writerow([*[""] * len(BEFORE), *units])
    for number, kernel in enumerate(kernels):
        writer.writerow([*_before(number, kernel), *(f"{amount:.6f}" for amount in kernel.amounts)])
    return f"==PROF== Connected to process 4711 (/usr/bin/python3.12)\n{out.getvalue()}==PROF== Disconnected\n"


def details(kernels: Sequence[Launch]) -> str:
    """The same as the page of details prints it, with a row per metric, in kilobytes and with commas."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow([*BEFORE, "Section Name", "Metric Name", "Metric Unit", "Metric Value"])
    for number, kernel in enumerate(kernels):
        for name, amount in zip(NAMES, kernel.amounts, strict=True):
            unit, factor = ("us", 1e-3) if name.startswith("gpu") else ("Kbyte", 1e-3)
            writer.writerow([*_before(number, kernel), "Counters", name, unit, f"{amount * factor:,.9f}"])
    return out.getvalue()


def _before(number: int, kernel: Launch) -> Iterator[str]:
    yield from (str(number), "4711", "python3.12", "somewhere", kernel.name, "1", "7", "(128, 1, 1)", "(1, 1, 1)")
    yield from ("0", "9.0")


def counted(mode: str) -> Profile:
    """The profile of the step with its counters joined."""
    from roofline.counters import joining, nsight_compute

    step, kernels = profile(mode), nsight_compute.parse(raw(launches(mode)), "ncu.csv")
    return joining.count(step, joining.join(step, kernels), "ncu.csv")


def without(kernels: Sequence[Launch], ops: Sequence[int]) -> list[Launch]:
    """The kernels but for those of some ops."""
    return [replace(kernel) for kernel in kernels if kernel.op not in ops]
