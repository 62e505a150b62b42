"""Fit what `roofline whatif` assumes of other kernels, on the profiles of the repository.

What a library's kernels typically reach is fitted on all of them, and how far they differ from device to device on the
steps that ran on two.

python benchmarks/projection_fit.py [TRACES]     write the table of constants of docs/whatif.md anew

The constants themselves stand in roofline/projection/kernels.py; a test holds both equal. TRACES: the folder of the
public traces that the page names; without it ../shared/traces. They are not kept here. The CPU profiles are: those in
docs/measured/threads were recorded by

    for n in 1 2; do roofline profile MODEL --backend torch --threads $n -o docs/measured/threads/MODEL-$n.json; done
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import numpy as np

from roofline import devices
from roofline.analysis.analysis import Analysis, analyze
from roofline.content.wording import counted
from roofline.core.device import Device
from roofline.core.schema import load
from roofline.importing import read
from roofline.projection.devices import Change
from roofline.projection.kernels import CODES, LIBRARY, Fitted, Spread
from roofline.projection.sides import find_sides

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "whatif.md"
MEASURED = ROOT / "docs" / "measured"
TRACES = ROOT.parent / "shared" / "traces"
MARKS = ("<!-- written by benchmarks/projection_fit.py -->", "<!-- to here -->")

#: The changes of device: what each is a projection to.
CHANGES: dict[Change, str] = {"processor": "the same processor", "cpu": "another CPU", "gpu": "another GPU"}
#: The traces of one step on two devices, and the names of the devices.
RECORDED = {
    "small BERT": (("h100_bert_small_infer", "h100-sxm"), ("mi300x_bert_small_infer", "mi300x")),
    "Qwen 0.5B": (("h100_qwen_0.5b_infer", "h100-sxm"), ("mi300x_qwen_0.5b_infer", "mi300x")),
}
#: The profiles of one step on several CPUs.
PROFILED = {
    "bert-infer, PyTorch": (
        MEASURED / "bert-infer-1-thread" / "torch.json",
        MEASURED / "bert-infer-in-turns" / "torch.json",
        MEASURED / "threads" / "bert-infer-1.json",
        MEASURED / "threads" / "bert-infer-2.json",
        ROOT / "profiles" / "bert-torch-infer-b1-s128-amd-epyc-1.json",
    ),
    "bert-infer, JAX": (MEASURED / "bert-infer-1-thread" / "jax.json", MEASURED / "bert-infer-in-turns" / "jax.json"),
    "bert-infer, TensorFlow": (
        MEASURED / "bert-infer-1-thread" / "tensorflow.json",
        MEASURED / "bert-infer-in-turns" / "tensorflow.json",
    ),
    "bert-train, PyTorch": (MEASURED / "threads" / "bert-train-1.json", MEASURED / "threads" / "bert-train-2.json"),
    "mlp-infer, PyTorch": (
        MEASURED / "mlp-infer-1-thread" / "torch.json",
        MEASURED / "threads" / "mlp-infer-1.json",
        MEASURED / "threads" / "mlp-infer-2.json",
    ),
    "mlp-train, PyTorch": (
        MEASURED / "mlp-train-1-thread" / "torch.json",
        MEASURED / "threads" / "mlp-train-1.json",
        MEASURED / "threads" / "mlp-train-2.json",
    ),
}


@dataclass(frozen=True, slots=True)
class Pair:
    """A step that ran on two devices, here and there, and the datasheet of the device here."""

    step: str
    here: Analysis
    there: Analysis
    target: Device
    sheet: Device | None


@dataclass(frozen=True, slots=True)
class Times:
    """Hold sums over the ops of one class of a pair's step [s].

    kinds: of both devices; here, there: measured; before, after: of work and start-up at the ceilings here and there.
    share: of the step, mean of both devices. run: which run the times here are of.
    """

    step: str
    change: Change | None
    kinds: tuple[str, str]
    name: str
    run: str
    here: float
    there: float
    before: float
    after: float
    share: float


def pairs(traces: Path) -> Iterator[Pair]:
    """List the pairs of runs of one step, both ways."""
    for step, sides in RECORDED.items():
        runs = [(analyze(*read([traces / f"{name}.json.gz"])), devices.load(device)) for name, device in sides]
        yield from _both_ways(step, runs)
    for step, files in PROFILED.items():
        yield from _both_ways(step, [(run := analyze(load(file)), run.device) for file in files])


def _both_ways(step: str, runs: Sequence[tuple[Analysis, Device]]) -> Iterator[Pair]:
    for (here, _), (there, target) in permutations(runs, 2):
        device = here.profile.device
        yield Pair(step, here, there, target, devices.datasheet(device.name, device.memory, device.kind))


def alone() -> Iterator[Times]:
    """Sum the times of the other profiles of the repository, whose steps ran on one device."""
    paired = {file for files in PROFILED.values() for file in files}
    for file in sorted({*(ROOT / "profiles").rglob("*.json"), *MEASURED.glob("*-1-thread/*.json")} - paired):
        run = analyze(load(file))
        yield from times(Pair(str(file.relative_to(ROOT)), run, run, run.device, None))


def times(pair: Pair) -> Iterator[Times]:
    """Sum the times of a pair by class; of what a framework's own code runs, as one."""
    sides = find_sides(pair.here, pair.target, pair.sheet)
    before, after = (_by_class(pair.here, column, sides.by_work) for column in (sides.before, sides.after))
    here = _by_class(pair.here, pair.here.table.own, sides.by_work)
    there = _by_class(pair.there, pair.there.table.own, np.ones(len(pair.there.profile.ops), bool))
    shares = [{name: seconds / sum(sums.values()) for name, seconds in sums.items()} for sums in (here, there)]
    for name in here.keys() & there.keys():
        yield Times(
            step=pair.step,
            change=sides.change,
            kinds=(sides.source.kind, sides.target.kind),
            name=name,
            run=f"{pair.step} on {pair.here.device.name} {pair.here.wall}",
            here=here[name],
            there=there[name],
            before=before[name],
            after=after[name],
            share=(shares[0][name] + shares[1][name]) / 2,
        )


def _by_class(run: Analysis, seconds: np.ndarray, chosen: np.ndarray) -> dict[str, float]:
    sums: dict[str, float] = defaultdict(float)
    signatures = run.profile.signatures
    spent = np.bincount(run.table.columns.signature[chosen], seconds[chosen], len(signatures))
    for signature, value in zip(signatures, spent.tolist(), strict=True):
        sums[signature.op_class if signature.op_class in LIBRARY else "own"] += value
    return {name: value for name, value in sums.items() if value > 0}


def fit(rows: Sequence[Times]) -> Fitted:
    """Fit all constants: the spreads by steps that were left out of the others."""
    central = _central(rows)
    errors: dict[Change, list[tuple[str, str, float, float]]] = defaultdict(list)
    for step in sorted({row.step for row in rows if row.change is not None}):
        others = _central([row for row in rows if row.step != step])
        for row in rows:
            if row.step == step and row.change is not None:
                errors[row.change].append((step, row.name, row.share, off(row, others)))
    return Fitted(
        {kind: {name: round(value, 2) for name, value in of.items()} for kind, of in central.typical.items()},
        round(central.carried, 2),
        _spreads(errors),
    )


def _central(rows: Sequence[Times]) -> Fitted:
    typical = _typical(rows)
    return Fitted(typical, _carried(rows, typical), {})


def off(row: Times, fitted: Fitted) -> float:
    """Return the logarithm of the time there over the projected one."""
    factor = row.after / row.before
    here, there = (fitted.typical.get(kind, {}).get(row.name) for kind in row.kinds)
    if row.change != "processor" and here is not None and there is not None:
        efficiency = math.log(row.before / row.here)
        factor *= math.exp(efficiency - there - fitted.carried * (efficiency - here))
    return math.log(row.there / (row.here * factor))


def _typical(rows: Iterable[Times]) -> dict[str, dict[str, float]]:
    """Average ln e of the runs of each kind of device, weighted by the share of time."""
    runs: dict[tuple[str, str], dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.name in LIBRARY:
            runs[row.kinds[0], row.name][row.run].append((math.log(row.before / row.here), row.share))
    typical: dict[str, dict[str, float]] = defaultdict(dict)
    for (kind, name), found in sorted(runs.items()):
        logs, weights = zip(*(np.mean(values, axis=0) for values in found.values()), strict=True)
        typical[kind][name] = float(np.average(logs, weights=weights))
    return dict(typical)


def _carried(rows: Iterable[Times], typical: Mapping[str, Mapping[str, float]]) -> float:
    """Fit the share of an efficiency's difference from the typical one that another device shares."""
    products = squares = 0.0
    for row in rows:
        here, there = (typical.get(kind, {}).get(row.name) for kind in row.kinds)
        if row.change not in (None, "processor") and here is not None and there is not None:
            deviation = math.log(row.before / row.here) - here
            products += row.share * deviation * (math.log(row.after / row.there) - there)
            squares += row.share * deviation**2
    return min(1.0, max(0.0, products / squares)) if squares else 1.0


def _spreads(errors: Mapping[Change, Sequence[tuple[str, str, float, float]]]) -> dict[Change, Spread]:
    """Find the deviation of logarithms from 0 by change and code, each weighted by its share of time.

    A code that no step of a change has is given the widest deviation of it by another change, or else of any code.
    """
    known: dict[tuple[Change, str], float] = {}
    for change, found in errors.items():
        for code in {name for _, name, *_ in found}:
            shares, logs = np.asarray([error[2:] for error in found if error[1] == code], np.float64).T
            known[change, code] = round(float(np.sqrt(np.average(logs**2, weights=shares))), 2)
    widest = {
        code: max([deviation for (_, name), deviation in known.items() if name == code] or known.values())
        for code in CODES
    }
    return {
        change: Spread(
            tuple(known.get((change, code), widest[code]) for code in CODES),
            tuple(len({step for step, name, *_ in found if name == code}) for code in CODES),
        )
        for change, found in errors.items()
    }


def table(rows: Sequence[Times]) -> str:
    """Write one line per constant; of the share that is carried over also what CPUs and GPUs alone would give."""
    fitted = fit(rows)
    cpus, gpus = (_central([row for row in rows if row.change in (None, change)]).carried for change in ("cpu", "gpu"))
    lines = ["| constant | value |", "|---|---:|"]
    for kind, classes in fitted.typical.items():
        lines += [f"| typical e of {name}, {kind} | {math.exp(value):.2f} |" for name, value in classes.items()]
    lines.append(
        "| share of the difference from it that is carried over "
        f"(CPUs alone {cpus:.2f}, GPUs alone {gpus:.2f}) | {fitted.carried:.2f} |"
    )
    for change, words in CHANGES.items():
        spread = fitted.spreads[change]
        lines += [
            f"| deviation of ln t, {words}, {code} ({counted(number, 'step')}) | {deviation:.2f} |"
            for code, deviation, number in zip(CODES, spread.deviations, spread.values, strict=True)
        ]
    return "\n".join(lines)


def page(text: str, written: str, marks: tuple[str, str] = MARKS) -> str:
    """Return the page with the table between its marks written anew."""
    before, _, rest = text.partition(marks[0])
    _, _, after = rest.partition(marks[1])
    return f"{before}{marks[0]}\n\n{written}\n\n{marks[1]}{after}"


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else TRACES
    found = [*alone(), *(row for pair in pairs(folder) for row in times(pair))]
    print(fit(found))
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), table(found)), encoding="utf-8")
