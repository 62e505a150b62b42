"""The tables of ten backends, of small networks and of two sweeps: docs/cpu-comparison.md, simplechains.md, grids.md.

python benchmarks/measured_tables.py     write them anew, from docs/measured and the profiles that ship
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import measured_grids

from roofline import units
from roofline.analysis.analysis import Analysis, analyze
from roofline.comparison.ranking import rank
from roofline.core import shipped
from roofline.core.schema import load

DOCS = Path(__file__).parents[1] / "docs"
_MARK = "<!-- {name}, written by benchmarks/measured_tables.py -->"
_END = "<!-- to here -->"
_BACKENDS = ("step", "matmuls, of the step", "of roof", "host", "times its minimum")
_SMALL = ("step", "time", "minimum time of its ops", "above it", "host", "the kernel's time, page faults")


@cache
def ten(folder: str) -> tuple[Analysis, ...]:
    """Analyze the runs of a folder of docs/measured under the best ceilings that any of them saw, the fastest first."""
    runs = rank([load(path) for path in sorted((DOCS / "measured" / folder).glob("*.json"))]).runs
    return tuple(sorted(runs, key=lambda run: run.wall))


def backends(folder: str) -> str:
    """Return the table of ten backends: step, matmuls and how close they are to the roof, host, minimum."""
    rows = []
    for run in ten(folder):
        matmul = run.by("group")["matmul"]
        contended = any(flag.startswith("contended") for flag in run.flags)
        shares = (matmul.seconds / run.wall, matmul.attained or 0.0, run.gap / run.wall)
        rows.append(
            (
                f"{run.profile.backend}{' !' if contended else ''}",
                units.seconds(run.wall),
                *(units.percent(share, 0) for share in shares),
                f"{run.wall / run.total.floor:.1f}",
            )
        )
    return _table(("backend", *_BACKENDS), rows)


def small_networks() -> str:
    """Return the table of the profiles of the SimpleChains comparison that ship."""
    rows = []
    for network, name in (("MLP", "mlp-train-b10000"), ("LeNet5", "lenet5-train-b16")):
        for backend in ("jax", "torch"):
            run = analyze(load(shipped.paths()[f"simplechains/{name}-{backend}"]))
            floor, host = run.total.floor / run.wall, run.gap / run.wall
            system, faults = (run.profile.conditions[f"{key}_per_step"] for key in ("system_seconds", "page_faults"))
            rows.append(
                (
                    f"{network}, {backend}",
                    units.seconds(run.wall),
                    f"{units.seconds(run.total.floor)}, {units.percent(floor, 0)}",
                    units.percent(1 - floor - host, 0),
                    units.percent(host, 0),
                    f"{units.seconds(system)}, {faults:.0f} faults",
                )
            )
    return _table(_SMALL, rows)


def _rows(make: Callable[..., list[tuple[str, ...]]], *of: Any) -> str:
    head, *rows = make(*of)
    return _table(head, rows)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ("---",) * len(head), *rows))


#: The tables of each page by their names.
TABLES: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "cpu-comparison.md": {"inference": partial(backends, "bert-infer-1-thread")},
    "simplechains.md": {
        "small networks": small_networks,
        "training": partial(backends, "mlp-train-1-thread"),
        "inference": partial(backends, "mlp-infer-1-thread"),
    },
    "grids.md": {
        "who is fastest": partial(_rows, measured_grids.winners, "hf2019"),
        "times of a step": partial(_rows, measured_grids.times, "hf2019"),
        "factors": partial(
            _rows,
            measured_grids.factors,
            "hf2019",
            [("torch", "torchscript"), ("torch", "tensorflow-xla"), ("torchscript", "tensorflow-xla")],
        ),
        "small networks": partial(_rows, measured_grids.times, "simplechains"),
    },
}


def page(name: str) -> str:
    """Return the page with its tables as they come out now."""
    text = (DOCS / name).read_text(encoding="utf-8")
    for table, made in TABLES[name].items():
        mark = _MARK.format(name=table)
        pattern = f"{re.escape(mark)}.*?{re.escape(_END)}"
        text, number = re.subn(pattern, f"{mark}\n\n{made()}\n\n{_END}", text, flags=re.DOTALL)
        assert number == 1, f"{name} has no place for the table {table}"
    return text


if __name__ == "__main__":
    for written in TABLES:
        (DOCS / written).write_text(page(written), encoding="utf-8")
