"""Figures of the claims on the page of Keras 3 about its table, version of April 2024."""

from __future__ import annotations

from collections.abc import Mapping

from roofline.published.implied import Implied, implied
from roofline.published.publication import Publication

#: (task, batch) of a row.
Row = tuple[str, str]

_EAGER, _COMPILED, _KERAS2 = "Native PyTorch (eager)", "Native PyTorch (compiled)", "Keras 2 (TF)"
_JAX, _TENSORFLOW, _TORCH = "Keras 3 (JAX)", "Keras 3 (TF)", "Keras 3 (PyTorch eager)"
_BACKENDS = (_TENSORFLOW, _JAX, _TORCH)
_FIRST = "2024-03 first (v0.0.1)"
_NAMES = {"fp32": "IEEE FP32", "tf32": "TF32", "bf16": "BF16", "fp16": "FP16"}
#: Whose float32 matmuls are IEEE FP32 in PyTorch by default and TF32 in TensorFlow and JAX.
_FLOAT32_MATMULS = ("SAM fit", "SAM predict", "BERT fit", "BERT predict")


class _Table:
    """A version of the table by row and column, as times [s]."""

    def __init__(self, publication: Publication, version: str) -> None:
        self.publication = publication
        self.cells = {
            (cell.task, cell.batch, cell.column): cell for cell in publication.cells if cell.version == version
        }
        self.seconds = {place: cell.seconds for place, cell in self.cells.items() if cell.seconds is not None}
        self.rows: tuple[Row, ...] = tuple(dict.fromkeys((task, batch) for task, batch, _ in self.cells))

    def of(self, task: str, column: str) -> float:
        """Find the time of a task that has one row [s]."""
        (batch,) = (batch for name, batch in self.rows if name == task)
        return self.seconds[task, batch, column]

    def best(self, row: Row) -> float:
        """Find the time of the best backend of Keras 3 [s]."""
        return min(self.seconds[*row, column] for column in _BACKENDS)

    def gains(self, column: str) -> dict[Row, float]:
        """Divide a column by the best backend of Keras 3, in the rows that the column has."""
        return {row: self.seconds[*row, column] / self.best(row) for row in self.rows if (*row, column) in self.seconds}

    def implied(self, task: str, column: str, batch: str = "") -> Implied:
        """Put a cell under its ceilings; KeyError where the task has several rows and no batch is given."""
        return implied(self.publication, self.publication.find(task, column, batch=batch))

    def wins(self, columns: tuple[str, ...]) -> dict[str, int]:
        """Count the rows in which each of some columns is the fastest."""
        fastest = [
            min((self.seconds[*row, column], column) for column in columns if (*row, column) in self.seconds)[1]
            for row in self.rows
        ]
        return {column: fastest.count(column) for column in columns}

    def overall(self) -> dict[str, int]:
        """Count the rows in which each column of the table is the fastest."""
        return self.wins(tuple(dict.fromkeys(column for _, _, column in self.seconds)))


def figures(publication: Publication) -> dict[str, Mapping[str, float | str]]:
    """Compute the figures of each claim: ratios of times, shares, counts of rows, and rates in words."""
    table, first = _Table(publication, publication.versions[0]), _Table(publication, _FIRST)
    return {
        **_backends(table, first),
        **_against_eager(table),
        **_against_compiled(table),
        **_about_pytorch(table),
        **_against_keras2(table, first),
    }


def _backends(table: _Table, first: _Table) -> dict[str, Mapping[str, float | str]]:
    wins = table.wins(_BACKENDS)
    slow = [
        table.seconds[*row, _TORCH] / table.seconds[*row, _EAGER] for row in table.rows if row[0].endswith("generate")
    ]
    return {
        "no-best-backend": {"jax": wins[_JAX], "tensorflow": wins[_TENSORFLOW], "pytorch": wins[_TORCH]},
        "jax-first": {
            "backends": wins[_JAX],
            "all_columns": table.overall()[_JAX],
            "first_version": first.overall()[_JAX],
            "sd_fit": table.of("SD fit", _TENSORFLOW) / table.of("SD fit", _JAX) - 1,
        },
        "padding": {
            "least": min(slow),
            "most": max(slow),
            "share": _share(table.implied("Mistral generate", _TORCH, "1")),
        },
    }


def _against_eager(table: _Table) -> dict[str, Mapping[str, float | str]]:
    gains = table.gains(_EAGER)
    native = table.implied("BERT predict", _EAGER)
    return {
        "faster-than-pytorch": {"rows": len(gains), "faster": _above(gains, 1), "least": min(gains.values())},
        "twice-pytorch": {
            "of_ten": _above(_ten(gains), 2),
            "of_twelve": _above(gains, 2),
            "most": max(gains.values()),
            "jax": _rate(table.implied("BERT predict", _JAX)),
            "native": _rate(native),
            "floor": native.floors["fp32"],
            "floor_of_jax": native.floors["fp32"] / table.of("BERT predict", _JAX),
            "gain": gains["BERT predict", "256"],
        },
    }


def _against_compiled(table: _Table) -> dict[str, Mapping[str, float | str]]:
    gains = table.gains(_COMPILED)
    slower = {task: 1 - gain for (task, _), gain in _ten(gains).items() if gain < 1}
    sam = table.implied("SAM predict", _COMPILED)
    work, rate = {}, {}
    for task in ("Gemma fit", "Mistral fit"):
        native, keras = table.implied(task, _COMPILED), table.implied(task, _TENSORFLOW)
        work[task] = _flops(keras) / _flops(native) - 1
        rate[task] = 1 - _known_rate(keras) / _known_rate(native)
    apart = (
        abs(table.seconds[*row, _EAGER] / table.seconds[*row, _COMPILED] - 1)
        for row in table.rows
        if row[0].endswith("generate")
    )
    return {
        "slower-than-compiled": {
            "rows": len(slower),
            **{_key(task): less for task, less in slower.items()},
            **{f"{_key(task)}_work": more for task, more in work.items()},
            **{f"{_key(task)}_rate": less for task, less in rate.items()},
            "bert": _rate(table.implied("BERT fit", _COMPILED)),
        },
        "faster-than-compiled": {
            "of_ten": _above(_ten(gains), 1.5),
            "of_twelve": _above(gains, 1.5),
            "most": max(gains.values()),
            "native": _rate(sam),
            "floor": sam.floors["fp32"],
            "floor_of_jax": sam.floors["fp32"] / table.of("SAM predict", _JAX),
            "apart": max(apart),
        },
    }


def _about_pytorch(table: _Table) -> dict[str, Mapping[str, float | str]]:
    eager, compiled = ({task: gain for (task, _), gain in _ten(table.gains(c)).items()} for c in (_EAGER, _COMPILED))
    widest = sorted(table.gains(_EAGER), key=lambda row: -table.gains(_EAGER)[row])[: len(_FLOAT32_MATMULS)]
    return {
        "small-batches": {
            **{
                model: table.seconds[f"{model.title()} generate", "32", _EAGER]
                / table.seconds[f"{model.title()} generate", "1", _EAGER]
                for model in ("gemma", "mistral")
            },
            "weights": table.implied("Mistral generate", _EAGER, "1").shares["memory"],
            "sam": _rate(table.implied("SAM fit", _EAGER)),
        },
        "library-versions": {
            "gap": eager["SD predict"],
            "older_gap": 2 * eager["SD predict"],  # 100 % more throughput is twice as fast
        },
        "segment-anything": {
            "fit": eager["SAM fit"],
            "predict": eager["SAM predict"],
            "bert_predict": eager["BERT predict"],
            "float32_among_widest": sum(task in _FLOAT32_MATMULS for task, _ in widest),
            "compiled_sam_fit": compiled["SAM fit"],
            "compiled_sam_predict": compiled["SAM predict"],
            "compiled_bert_fit": compiled["BERT fit"],
            "compiled_bert_predict": compiled["BERT predict"],
        },
    }


def _against_keras2(table: _Table, first: _Table) -> dict[str, Mapping[str, float | str]]:
    gains = {task: gain for (task, _), gain in table.gains(_KERAS2).items()}
    upgrade = {task: table.of(task, _KERAS2) / table.of(task, _TENSORFLOW) for task in gains}
    first_bert = min(first.of("BERT fit", column) for column in (_TENSORFLOW, _JAX))
    return {
        "faster-than-keras2": {"rows": len(gains), "faster": _above(gains, 1), "least": min(gains.values())},
        "sam-predict": {
            "now": gains["SAM predict"],
            "first_version": first.of("SAM predict", _KERAS2) / first.of("SAM predict", _JAX),
            "keras2": _rate(table.implied("SAM predict", _KERAS2)),
            "jax": _rate(table.implied("SAM predict", _JAX)),
        },
        "sd-fit": {
            "now": gains["SD fit"],
            "keras2": _rate(table.implied("SD fit", _KERAS2)),
            "jax": _rate(table.implied("SD fit", _JAX)),
        },
        "bert-fit": {
            "now": gains["BERT fit"],
            "first_version": first.of("BERT fit", _KERAS2) / first_bert,
            "keras2": _rate(table.implied("BERT fit", _KERAS2)),
            "tensorflow": _rate(table.implied("BERT fit", _TENSORFLOW)),
        },
        "upgrade": {
            "rows": len(upgrade),
            "faster": _above(upgrade, 1),
            "least": min(upgrade.values()) - 1,
            "close": len(upgrade) - _above(upgrade, 1.1),
        },
        "fused-ops": {"sam_predict": gains["SAM predict"], "sd_fit": gains["SD fit"]},
    }


def _ten(gains: Mapping[Row, float]) -> dict[Row, float]:
    """Leave out the rows that generate for one prompt: the page counts ten tasks, its table has twelve rows."""
    return {row: gain for row, gain in gains.items() if not (row[0].endswith("generate") and row[1] == "1")}


def _above(gains: Mapping[Row, float] | Mapping[str, float], ratio: float) -> int:
    """Count the rows whose gain is above `ratio`."""
    return sum(gain > ratio for gain in gains.values())


def _flops(cell: Implied) -> float:
    """Find the work of a cell [FLOP]."""
    if cell.work is None:
        raise ValueError(f"the work of {cell.cell.task} is not counted")
    return cell.work.flops


def _share(cell: Implied) -> float:
    """Find the share of its nearest roof that a cell implies."""
    if cell.share is None:
        raise ValueError(f"{cell.cell.task}, {cell.cell.column} implies no share of a roof")
    return cell.share


def _rate(cell: Implied) -> str:
    """Say the rate that a cell implies: "13.4 TFLOP/s (69 % of IEEE FP32)"."""
    return f"{_known_rate(cell) / 1e12:.1f} TFLOP/s ({100 * _share(cell):.0f} % of {_NAMES[cell.roof]})"


def _known_rate(cell: Implied) -> float:
    """Return the rate that a cell implies [FLOP/s]; ValueError where it implies none."""
    if cell.rate is None:
        raise ValueError(f"{cell.cell.task}, {cell.cell.column} implies no rate")
    return cell.rate


def _key(task: str) -> str:
    """Name the figure of a task: "SD fit" is "sd_fit"."""
    return task.lower().replace(" ", "_")
