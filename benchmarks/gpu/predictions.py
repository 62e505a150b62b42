"""The least time of each row on a device, from its counted work and the datasheet alone: said before measuring.

    python benchmarks/gpu/predictions.py --count     count the work anew (minutes on a CPU; no GPU), into counted.json
    python benchmarks/gpu/predictions.py             write the table into docs/a100.md

The rule is `roofs["ideal"]` of the analysis: no less than the model FLOPs at the matrix peak of the precision, and no
less than the bytes that come from before the step or outlive it (parameters, optimizer state, inputs, results), once,
at the bandwidth of main memory. It holds whatever the kernels are and however they are launched; so batch 1 will take
many times as long. Work is counted with PyTorch at two batches and continued in a straight line; the models of the
other frameworks ask for the same.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from item import Item, Setting
from plan import PUBLISHED, ROOT, pieces, row
from published import told

from roofline import devices
from roofline.analysis.caches.accesses import accesses, external_bytes
from roofline.core.device import Device
from roofline.core.schema import load

COUNTED = Path(__file__).with_name("counted.json")
PAGE = ROOT / "docs" / "a100.md"
MARKS = ("<!-- written by benchmarks/gpu/predictions.py -->", "<!-- to here -->")
#: Around the table of the rows of presets.
ROWS = ("<!-- rows of presets, written by benchmarks/gpu/predictions.py -->", "<!-- to here, rows -->")
#: The day on which the predictions were made, before any of them was measured.
DATE = "2026-11-22"
DEVICES = ("a100-sxm", "a100-40gb", "h100-sxm")
BATCHES = (2, 4)
#: What is counted in place of a precision, and has as many bytes: a CPU has no TF32, and float16 only slowly.
COUNTED_AS = {"tf32": "fp32", "fp16": "bf16"}


@dataclass(frozen=True, slots=True)
class Workload:
    """What decides the counted work of a row; `options` are those of the measurement that change it."""

    model: str
    mode: str
    batch: int
    seq: int
    precision: str
    options: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Of its count, which rows of several batches share."""
        counted = COUNTED_AS.get(self.precision, self.precision)
        return " ".join((self.model, self.mode, f"s{self.seq}", counted, *self.options))


@dataclass(frozen=True, slots=True)
class Prediction:
    """The least time of a step [s] by its FLOPs and by its bytes."""

    compute: float
    memory: float

    @property
    def least(self) -> float:
        """The longer of the two."""
        return max(self.compute, self.memory)

    @property
    def roof(self) -> str:
        """Which one that is."""
        return "compute" if self.compute >= self.memory else "memory"


@cache
def rows() -> dict[str, Workload]:
    """All profiles of the plan by the names of their rows, but for those of presets, whose work is known by shape."""
    return {
        item.name: workload(item)
        for items in pieces(Setting()).values()
        for item in items
        if item.command[:2] == ("roofline", "profile") and "--preset" not in item.command
    }


def workload(item: Item) -> Workload:
    """What a profile's command measures."""
    words = item.command
    given = {word: words[number + 1] for number, word in enumerate(words[:-1]) if word.startswith("--")}
    return Workload(
        model=words[2],
        mode=given["--mode"],
        batch=int(given["--batch"]),
        seq=int(given["--seq"]),
        precision=given["--precision"],
        options=("--no-optimizer",) if "--no-optimizer" in words else (),
    )


def predict(asked: Workload, device: Device, counted: dict[str, Any]) -> Prediction | None:
    """The least time of a row on a device; None where its work was not counted or the device lacks a ceiling."""
    count = counted["counts"].get(asked.key)
    peak, bandwidth = device.rate(f"matrix.{asked.precision}"), device.bandwidth
    if count is None or peak is None or bandwidth is None:
        return None
    flops, size = (line(count[name], asked.batch) for name in ("model_flops", "external_bytes"))
    return Prediction(flops / peak, size / bandwidth)


def line(values: dict[str, float], batch: int) -> float:
    """The straight line through the values at two batches, at another one; the lower value of what falls.

    A training step moves as many bytes at every batch, up to buffers of a few rows that it happens to use again.
    """
    (low, at_low), (high, at_high) = ((int(each), value) for each, value in values.items())
    if at_high <= at_low:
        return at_high
    return at_low + (at_high - at_low) / (high - low) * (batch - low)


def count(asked: Workload, folder: Path) -> dict[str, dict[str, float]]:
    """Model FLOPs and bytes from and to outside of a step at each of `BATCHES`, by one counted step each on a CPU."""
    found: dict[str, dict[str, float]] = {"model_flops": {}, "external_bytes": {}}
    for batch in BATCHES:
        file = folder / "counted.json"
        words = [sys.executable, "-P", "-m", "roofline", "profile", asked.model, "--backend", "torch"]
        words += ["--mode", asked.mode, "--batch", str(batch), "--seq", str(asked.seq), "--device", "cpu"]
        words += ["--precision", COUNTED_AS.get(asked.precision, asked.precision), *asked.options]
        subprocess.run(
            [*words, "--count-only", "-o", str(file), "--force"], cwd=folder, check=True, capture_output=True
        )
        profile = load(file)
        flops = [profile.signatures[op.signature].cost.model_flops for op in profile.ops]
        found["model_flops"][str(batch)] = sum(each for each in flops if each is not None)
        found["external_bytes"][str(batch)] = external_bytes(accesses(profile))
    return found


def table(counted: dict[str, Any]) -> str:
    """Every row with its least time on each device [ms], and what others published for it."""
    known = [devices.load(name) for name in DEVICES]
    said = {one["row"]: one for one in published()}
    head = ["row", *(device.name for device in known), "published"]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * len(known) + "---|"]
    for name, asked in rows().items():
        cells = []
        for device in known:
            found = predict(asked, device, counted)
            cells.append("–" if found is None else f"{found.least * 1e3:.3f} ({found.roof})")
        other = said.get(name)
        cells.append(f"{other['published']:g} ms, {other['hardware']}" if other else "")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def published() -> list[dict[str, Any]]:
    """The entries of `PUBLISHED`, each with the name of its row."""
    entries: list[dict[str, Any]] = tomllib.loads(PUBLISHED.read_text(encoding="utf-8"))["row"]
    named = [
        row(one["backend"], one["mode"], one["batch"], one["precision"], model=one["model"], seq=one["seq"])
        for one in entries
    ]
    return [{**one, "row": name} for one, name in zip(entries, named, strict=True)]


def page(text: str, counted: dict[str, Any]) -> str:
    """A page with what stands between the marks written anew."""
    said = f"Least milliseconds of a step, and the roof that sets them; predicted on {counted['date']}."
    text = between(text, MARKS, f"{said}\n\n{table(counted)}")
    return between(text, ROWS, "\n".join(told.predicted(DEVICES)))


def between(text: str, marks: tuple[str, str], written: str) -> str:
    """A text with what stands between two marks replaced."""
    before, _, rest = text.partition(marks[0])
    _, _, after = rest.partition(marks[1])
    return f"{before}{marks[0]}\n\n{written}\n\n{marks[1]}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", action="store_true", help="count the work of the rows that were not counted yet")
    asked = parser.parse_args()
    counted = json.loads(COUNTED.read_text(encoding="utf-8")) if COUNTED.is_file() else {"date": DATE, "counts": {}}
    if asked.count:
        with tempfile.TemporaryDirectory() as folder:
            for one in rows().values():
                if one.key not in counted["counts"]:
                    counted["counts"][one.key] = count(one, Path(folder))
                    COUNTED.write_text(json.dumps(counted, indent=1, sort_keys=True) + "\n", encoding="utf-8")
                    print(f"counted {one.key}", flush=True)
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), counted), encoding="utf-8")
    print(f"Wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
